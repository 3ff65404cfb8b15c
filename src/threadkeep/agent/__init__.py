"""An assistant: one graph, configured by a folder, that answers out of memory."""
