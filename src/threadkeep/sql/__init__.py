"""PostgreSQL, MySQL and MariaDB, shared by the archive, sessions and index that live on them."""
