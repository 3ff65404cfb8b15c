"""The archive's contract, one file per promise."""
