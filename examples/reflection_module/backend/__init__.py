"""An existing chat backend with the memory module mounted."""
