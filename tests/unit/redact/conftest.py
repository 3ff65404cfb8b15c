import pytest

from threadkeep.policy.redact import warm_up


@pytest.fixture(scope="session", autouse=True)
def _the_phone_registry_is_loaded() -> None:
    """Else the first example with a number would pay for it, and miss its deadline on a busy machine."""
    warm_up()
