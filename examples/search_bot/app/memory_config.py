"""What does not persist, for how long work may be in flight, and for how many days what persists is kept."""

from threadkeep.adapters.adk import TurnLimits
from threadkeep.settings import Settings

TENANT = "search-bot"
NOT_PERSISTED = ("tool.temp.", "retrieval.cache.", "features.")  # add the prefixes of your own scratch state here
TURN_LIMITS = TurnLimits(
    in_flight_seconds=30 * 60,
    long_running_seconds=7 * 24 * 60 * 60,
    lease_seconds=60,
    not_persisted=NOT_PERSISTED,
)

SESSION_RETENTION_DAYS = 90  # the filtered session log: what was said
MEMORY_RETENTION_DAYS = 730  # what outlives it: summary and intent; None keeps them until they are erased


def retention_settings():
    return Settings(
        THREADKEEP_TURN_RETENTION_DAYS=SESSION_RETENTION_DAYS, THREADKEEP_MEMORY_RETENTION_DAYS=MEMORY_RETENTION_DAYS
    )
