import pytest

pytest.register_assert_rewrite("threadkeep.testing")
