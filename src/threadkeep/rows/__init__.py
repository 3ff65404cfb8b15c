"""Rows beside the archive, on any of the databases: agent sessions, reflections, what models cost."""
