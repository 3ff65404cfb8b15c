"""The contestants on SQLite files."""

from __future__ import annotations

from bench.sessions_ours import Threadkeep, ThreadkeepUnredacted
from bench.sessions_peers import GoogleADK, LangGraph, OpenAIAgents

SQLITE = (Threadkeep, ThreadkeepUnredacted, OpenAIAgents, GoogleADK, LangGraph)
