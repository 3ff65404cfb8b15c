"""Weights of the features, as data. One list serves every kind of conversation: what differs is in the features.

Learnt on open sets of three kinds at once (people chatting, short notes of one side, long written answers), and judged
on talks left out; `python -m bench recall` shows what they are worth.
"""

from __future__ import annotations

DEFAULT: dict[str, float] = {
    "own": 0.583,
    "near": 0.214,
    "leaning near": 1.511,
    "around": 7.966,
    "leaning around": -6.751,
    "best of conversation": -5.349,
    "leaning best of conversation": 7.192,
    "user's own words": 6.803,
    "the other's words": 0.683,
    "alike in conversation": 3.311,
    "leaning alike in conversation": -3.24,
    "alike": 2.834,
    "leaning long": 7.351,
    "asks": -0.87,
    "addressed": -0.644,
    "speaker": 0.485,
    "time": 2.468,
    "covered near": 2.128,
    "answers": 3.61,
    "previous": -1.916,
    "short": -0.793,
    "number": 2.328,
}
