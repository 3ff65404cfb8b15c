"""One SQLite file shared by the embedded sessions, archive and index."""
