"""What does not persist, and for how long work may be in flight. Retention in days: `threadkeep retention --help`."""

from threadkeep.adapters.adk import TurnLimits

TENANT = "search-bot"
NOT_PERSISTED = ("tool.temp.", "retrieval.cache.", "features.")  # known to the session service by these names
TURN_LIMITS = TurnLimits(in_flight_seconds=30 * 60, long_running_seconds=7 * 24 * 60 * 60, lease_seconds=60)
