"""One protocol per concern. Backends implement them; the core knows nothing else about a backend."""
