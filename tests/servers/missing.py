"""What a missing server means: a skipped test on a laptop, a failed one in CI."""

from collections.abc import Mapping
from typing import Literal

Verdict = Literal["skip", "fail"]


def verdict_on_missing(environment: Mapping[str, str]) -> Verdict:
    """In CI a skipped test would pass for a proof, so there a server that cannot be had is a failure."""
    return "fail" if environment.get("CI") == "true" else "skip"
