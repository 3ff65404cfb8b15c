"""Knowledge documents: read from a folder, cut into chunks, kept where the archive is, found by who may read them."""
