"""Where checkpoints of graph runs are kept."""
