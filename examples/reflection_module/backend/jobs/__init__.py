"""Work beside the API."""
