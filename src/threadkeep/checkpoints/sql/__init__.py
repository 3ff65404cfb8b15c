"""Checkpoints on PostgreSQL, MySQL and MariaDB."""
