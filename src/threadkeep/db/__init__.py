"""One database layer: a verb is written once and runs on SQLite, PostgreSQL, MySQL and MariaDB."""
