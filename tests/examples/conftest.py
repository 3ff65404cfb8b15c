from tests.mapped.conftest import empty_url, make_module, redis_url, sql_url

__all__ = ["empty_url", "make_module", "redis_url", "sql_url"]
