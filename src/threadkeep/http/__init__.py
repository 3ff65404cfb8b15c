"""The service: memory's verbs over HTTP. `create_app()` makes the ASGI application, `threadkeep serve` runs it."""
