"""The server's answers out of bytes as they come in: RESP 2, as Redis and Valkey speak it."""

from __future__ import annotations

from typing import Any

from threadkeep.sessions.redis.errors import error_of

_END = b"\r\n"
_NUMBER, _WORD, _TEXT, _LIST, _ERROR = b":+$*-"


class NoAnswer(ValueError):
    """No Redis writes this."""


class Answers:
    """Feed it what was received; it gives back the answers that are complete. An error is an answer too."""

    def __init__(self) -> None:
        self._received: list[bytes] = []
        self._size = 0
        self._needed = 0  # bytes, before another look is worth it
        self._lists: list[tuple[list[Any], int]] = []  # those that are not complete yet, and how long each will be

    def feed(self, data: bytes) -> list[Any]:
        self._received.append(data)
        self._size += len(data)
        if self._size < self._needed:
            return []
        data = data if len(self._received) == 1 else b"".join(self._received)
        complete: list[Any] = []
        read = self._read(data, complete)
        self._received = [data[read:]] if read < len(data) else []
        self._size = len(data) - read
        return complete

    def _read(self, data: bytes, complete: list[Any]) -> int:
        """How far it came."""
        at, size = 0, len(data)
        self._needed = 0
        while at < size:
            end = data.find(_END, at)
            if end < 0:
                break
            kind, after = data[at], end + 2
            if kind == _TEXT:
                length = int(data[at + 1 : end])
                after += length + 2 if length >= 0 else 0
                if after > size:
                    self._needed = after - at
                    break
                self._place(data[end + 2 : after - 2] if length >= 0 else None, complete)
            elif kind == _LIST:
                self._open_list(int(data[at + 1 : end]), complete)
            else:
                self._place(_plain(kind, data[at + 1 : end]), complete)
            at = after
        return at

    def _open_list(self, length: int, complete: list[Any]) -> None:
        if length > 0:
            self._lists.append(([], length))
        else:
            self._place([] if length == 0 else None, complete)

    def _place(self, value: Any, complete: list[Any]) -> None:
        """In the innermost list that still lacks something; a list that is full is a value of the next one."""
        while self._lists:
            values, length = self._lists[-1]
            values.append(value)
            if len(values) < length:
                return
            self._lists.pop()
            value = values
        complete.append(value)


def _plain(kind: int, word: bytes) -> Any:
    if kind == _NUMBER:
        return int(word)
    if kind == _WORD:
        return word
    if kind == _ERROR:
        return error_of(word.decode("utf-8", "replace"))
    raise NoAnswer(f"an answer begins with {chr(kind)!r}")
