"""What a service exposes, read the way Prometheus reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class Exposed:
    types: dict[str, str]
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float]

    def __call__(self, name: str, **labels: str) -> float:
        return self.samples[name, tuple(sorted(labels.items()))]

    def by(self, name: str, label: str) -> dict[str, float]:
        """Of one counter, each value of the label that was ever counted."""
        found = {dict(labels)[label]: value for (one, labels), value in self.samples.items() if one == name}
        return {value: count for value, count in found.items() if count}

    def total(self, name: str) -> float:
        return sum(value for (one, _), value in self.samples.items() if one == name)


def exposed(client: httpx.Client, **headers: str) -> Exposed:
    answer = client.get("/metrics", headers=headers).raise_for_status()
    return read(answer.text)


def read(text: str) -> Exposed:
    types: dict[str, str] = {}
    samples: dict[Any, float] = {}
    for family in text_string_to_metric_families(text):
        types.setdefault(family.name, family.type)  # a series of a histogram's bare name follows it, of no type
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in samples, f"{key} is told twice"
            samples[key] = sample.value
    return Exposed(types, samples)
