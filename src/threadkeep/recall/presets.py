"""Weights of the features, as data. One list serves every kind of conversation: what differs is in the features.

Learnt on open sets of three kinds at once (people chatting, short notes of one side, long written answers), and judged
on talks left out; `python -m bench recall` shows what they are worth.
"""

from __future__ import annotations

DEFAULT: dict[str, float] = {
    # legs
    "near": 2.12,
    "around": 2.22,
    "covered": 1.61,
    "together": 3.6,
    "told there": 1.5,
    "as written": 2.0,
    "alike": 3.0,
    "alike in conversation": 1.59,
    # who said it, and when
    "user's own words": 5.0,
    "the other's words": 0.71,
    "speaker": 0.79,
    "addressed": -0.39,
    "dated": 5.06,
    # where it was said, and how long ago: enough to choose between what answers alike, by hand
    "fresh": 0.2,
    "same conversation": 0.5,
    # what kind of turn it is
    "answers": 3.08,
    "previous": -1.68,
    "time": 2.11,
    "number": 1.96,
    "asks": -0.76,
    "short": -0.93,
    "leaning long": 5.2,
    "given before": -2.0,
}
