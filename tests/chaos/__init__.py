"""Stores and processes are killed, wiped and cut off while turns arrive; one oracle counts what became of them.

`make test` runs the short forms, `make chaos` (`CHAOS=full`) the full ones.
"""
