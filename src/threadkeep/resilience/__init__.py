"""Living with stores that come and go."""
