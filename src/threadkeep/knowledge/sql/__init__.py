"""Knowledge documents on PostgreSQL, MySQL and MariaDB."""
