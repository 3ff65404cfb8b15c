"""The contract of the `HotStore` port and of the `Journal` behind it: subclass, and give it a fixture `open_hot`.

    @pytest.fixture
    def open_hot(server):
        @asynccontextmanager
        async def open_(limits=SessionLimits(), stale_seconds=60):
            archive = ArchiveAsked()
            ...
            yield HotUnderTest(hot, journal, archive)
        return open_

Tests keep to scopes of their own, but a journal is one for all: give each test run a journal of its own.
"""

from __future__ import annotations

from threadkeep.testing.hot_cases.erasure import HotErasureCases
from threadkeep.testing.hot_cases.isolation import HotIsolationCases
from threadkeep.testing.hot_cases.journal import JournalCases
from threadkeep.testing.hot_cases.order import HotOrderCases
from threadkeep.testing.hot_cases.retry import HotRetryCases
from threadkeep.testing.hot_cases.seeding import HotSeedingCases
from threadkeep.testing.hot_cases.window import HotWindowCases


class HotContract(
    HotOrderCases,
    HotRetryCases,
    HotWindowCases,
    HotIsolationCases,
    HotSeedingCases,
    HotErasureCases,
    JournalCases,
):
    """See above for the fixture."""
