"""Work behind the request path."""
