"""The archive on PostgreSQL, MySQL and MariaDB, on SQLAlchemy Core."""
