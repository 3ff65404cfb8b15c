"""What is measured: decorators over the ports, what the stores tell of themselves, and how Prometheus gets it."""
