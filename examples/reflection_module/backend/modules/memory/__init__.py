"""Short-term memory in Redis, long-term memory in tables that exist already, both as tokens. See README.md."""
