"""Memory and retrieval as an MCP server: over stdio, one process per client, or over HTTP inside the service."""
