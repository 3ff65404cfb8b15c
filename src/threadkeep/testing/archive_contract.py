"""The contract of the `Archive` port, and of the `TermIndex` beside it: subclass, and give it `open_stores`."""

from __future__ import annotations

from threadkeep.testing.archive_cases.closing import ClosingCases
from threadkeep.testing.archive_cases.content import ContentCases
from threadkeep.testing.archive_cases.conversations import ConversationCases, CountingCases, RecordCases
from threadkeep.testing.archive_cases.erasure import ErasureCases, GenerationCases
from threadkeep.testing.archive_cases.isolation import IsolationCases
from threadkeep.testing.archive_cases.order import OrderCases, PagingCases
from threadkeep.testing.archive_cases.placing import PlacingCases
from threadkeep.testing.archive_cases.retry import RetryCases
from threadkeep.testing.archive_cases.seeding import SeedingCases


class ArchiveContract(
    IsolationCases,
    OrderCases,
    RetryCases,
    ContentCases,
    PagingCases,
    ConversationCases,
    CountingCases,
    RecordCases,
    ErasureCases,
    GenerationCases,
    PlacingCases,
    SeedingCases,
    ClosingCases,
):
    """See `threadkeep.testing.stores` for the fixture."""
