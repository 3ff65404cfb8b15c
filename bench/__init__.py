"""Ours beside the peers, on the same work, in one run: `python -m bench NAME [--json]`."""
