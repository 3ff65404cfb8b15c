"""Weights of the features, as data. One list serves every kind of conversation: what differs is in the features.

Learnt on open sets of three kinds at once (people chatting, short notes of one side, long written answers), and judged
on talks left out; `python -m bench recall` shows what they are worth.
"""

from __future__ import annotations

DEFAULT: dict[str, float] = {
    # legs
    "near": 1.74,
    "around": 2.33,
    "covered": 0.74,
    "covered near": 1.8,
    "together": 6.04,
    "alike": 5.46,
    "alike in conversation": 0.83,
    # who said it, and when
    "user's own words": 5.0,
    "the other's words": 0.8,
    "speaker": 0.48,
    "addressed": -0.68,
    "dated": 5.01,
    # what kind of turn it is
    "answers": 3.06,
    "previous": -1.64,
    "time": 2.11,
    "number": 1.93,
    "asks": -0.79,
    "short": -0.78,
    "leaning long": 5.9,
    "given before": -2.0,
}
