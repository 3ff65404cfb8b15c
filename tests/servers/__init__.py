"""Real servers for the tests: found or installed, started when a test asks, always cleaned up.

One module per server (`redis`, `redis_cluster`, `postgres`, `pgbouncer`, `mariadb`, `chromium`); `locate` and `install`
find their programs; `server` says what each can do. Tests use them through the fixtures in `tests/conftest.py`.
"""
