"""The I/O contract: whatever a route hands in, checked, redacted, with its tokens, under one set of names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from threadkeep.errors import InvalidInput, InvalidScope, TooLarge
from threadkeep.ports.journal import TurnRecord, TurnReflection, TurnTokens
from threadkeep.scope import Scope

Pack = Callable[[str | None, str | None, Mapping[str, Any] | None], TurnTokens]
Decode = Callable[[Sequence[int], str | None], str]

_LARGEST_TOKEN = 2**31


@dataclass(frozen=True, slots=True)
class IoContract:
    """`redact` masks personal data, `pack` turns texts into token numbers, `decode` reads them."""

    redact: Callable[[str], str]
    pack: Pack
    decode: Decode
    now: Callable[[], datetime]
    max_bytes: int = 1_048_576

    def validate_and_normalize(self, payload: Mapping[str, Any]) -> TurnRecord:
        """Raises `InvalidInput` naming the field. Nothing that was masked here can be read from the answer."""
        given = checked_object("payload", payload)
        conversation_id, user_id = checked_id(given, "conversation_id"), checked_id(given, "user_id")
        user, assistant = (self._text(name, given.get(name)) for name in ("user_message", "assistant_message"))
        tokens = checked_object("token_data", given.get("token_data") or {})
        reflection = self._reflection(given.get("reflection") or self._reflection_in(tokens))
        return TurnRecord(
            conversation_id=conversation_id,
            user_id=user_id,
            user_message=user,
            assistant_message=assistant,
            reflection=reflection,
            token_data=self._tokens(tokens, user, assistant, reflection),
            cid=checked_cid(given.get("cid")),
            created_at=moment_of(given.get("created_at"), self.now).isoformat(),
        )

    def _text(self, field: str, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise InvalidInput(field, f"is a {type(value).__name__}", "give a string or None")
        if len(value.encode("utf-8", "surrogatepass")) > self.max_bytes:
            raise TooLarge(field, "is too long", f"the limit is {self.max_bytes:,} (THREADKEEP_MAX_MESSAGE_BYTES)")
        return self.redact(value)

    def _reflection(self, value: Any) -> TurnReflection | None:
        if value is None or value == {}:
            return None
        given = checked_object("reflection", value)
        causes: Any = given.get("causes") or ()
        if not isinstance(causes, list | tuple):
            raise InvalidInput("reflection.causes", f"is a {type(causes).__name__}", "give a list of strings")
        listed = cast("Sequence[Any]", causes)
        texts = [self._text(f"reflection.causes[{place}]", cause) for place, cause in enumerate(listed)]
        return TurnReflection(
            summary=self._text("reflection.summary", given.get("summary")) or "",
            causes=[text for text in texts if text is not None],
        )

    def _reflection_in(self, tokens: Mapping[str, Any]) -> Any:
        text = self._read("reflection", tokens)
        try:
            return None if text is None else json.loads(text)
        except ValueError:
            raise InvalidInput("token_data.reflection", "is not JSON", "leave token_data out") from None

    def _tokens(
        self, given: Mapping[str, Any], user: str | None, assistant: str | None, reflection: TurnReflection | None
    ) -> TurnTokens:
        """From the redacted texts. Where there are only numbers, they are read and redacted like any text."""
        user = self._read("user", given) if user is None else user
        assistant = self._read("assistant", given) if assistant is None else assistant
        return self.pack(user, assistant, cast("Mapping[str, Any] | None", reflection))

    def _read(self, part: str, tokens: Mapping[str, Any]) -> str | None:
        field, numbers, encoding = f"token_data.{part}", tokens.get(part), tokens.get("encoding")
        if not numbers:
            return None
        if not isinstance(numbers, list) or not all(is_token(number) for number in cast("list[Any]", numbers)):
            raise InvalidInput(field, "is not a list of token numbers", "give integers, or leave token_data out")
        if encoding is not None and not isinstance(encoding, str):
            raise InvalidInput("token_data.encoding", "is not a name", "give the name of an encoding")
        try:
            return self._text(field, self.decode(cast("list[int]", numbers), encoding))
        except InvalidInput as error:
            raise InvalidInput(field, error.problem, error.fix) from None


def checked_id(given: Mapping[str, Any], field: str) -> str:
    """Ids are never masked: they are what a row is found by. Raises `InvalidInput`."""
    value = given.get(field)
    if value is None or value == "":
        raise InvalidInput(field, "is missing", "every record names its conversation and its user")
    try:
        Scope(user=value)
    except InvalidScope as error:
        raise InvalidInput(field, error.problem, error.fix) from None
    return value


def moment_of(value: Any, now: Callable[[], datetime]) -> datetime:
    """In UTC. A time without a zone is taken to be UTC already."""
    if value is None:
        return now()
    try:
        when = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        fix = "give ISO 8601, such as 2026-01-31T12:00:00+00:00, or leave it out"
        raise InvalidInput("created_at", "is no time", fix) from None


def checked_count(field: str, value: Any, least: int = 1) -> int:
    if type(value) is not int or value < least:
        raise InvalidInput(field, "is no number of turns", f"give an integer, {least} or more")
    return value


def checked_object(field: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(field, f"is a {type(value).__name__}", "give an object")
    return cast("Mapping[str, Any]", value)


def checked_cid(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.isascii() or not value.isalnum() or len(value) > 128:
        raise InvalidInput("cid", "is no content id", "give a CID, or leave it out")
    return value


def is_token(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST_TOKEN
