"""Settings and URLs to a running system: what is composed stands in one file each. Only this package names backends."""
