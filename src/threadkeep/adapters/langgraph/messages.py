"""Messages, the items that matter most: compared and copied without going through the serializer each time.

Encoding a message takes 3 µs and decoding 10, and a conversation of 200 turns has 400 of them in every state. A
fingerprint takes 0.4 and a copy 1. What a message holds besides plain values goes through the serializer.

Lists are compared as a whole: is this list the one before, with something added? Asking each message takes 0.65 µs.
`ListSnapshot` compares the fields of all in a few calls; texts are mostly the very same objects, which needs no look at
their letters. It is as exact: a message that was mutated, in its depths too, or is of another class, makes a
difference. What is left (0.15 µs a message, 0.4 where it is no longer in the processor's cache) is mostly the time to
touch each field.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from gc import get_referents
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, NamedTuple, cast

import ormsgpack
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

from threadkeep.ports.checkpoints import Run
from threadkeep.ports.threads import Thread

PACKING = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
_ATOMS = (str, int, float, bool, bytes, type(None))
# The slots themselves: half the time of setting attributes by name, which a model would look at first.
_slots: dict[str, Any] = {**BaseModel.__dict__}
_set_fields = _slots["__dict__"].__set__
_set_given = _slots["__pydantic_fields_set__"].__set__
_set_extra = _slots["__pydantic_extra__"].__set__
_set_private = _slots["__pydantic_private__"].__set__
_new: Any = object.__new__
_kind_of, _given_of = attrgetter("kind"), attrgetter("given")


def fingerprint(value: Any) -> int | None:
    """Equal for messages that are equal to the last field; None for what is no message of plain values.

    It is taken from the fields as they are now: a mutated message has another one.
    """
    if not isinstance(value, BaseMessage):
        return None
    try:
        data = ormsgpack.packb(value.__dict__, None, PACKING)
        extra = value.__pydantic_extra__
        if extra:
            data += ormsgpack.packb(extra, None, PACKING)
    except (TypeError, ValueError):
        return None
    return hash((type(value), data))


def plain_fingerprint(value: Any) -> int | None:
    """Equal for equal messages and plain values; None for what is more, and may hold what is not visible here."""
    found = fingerprint(value)
    if found is not None:
        return found
    try:
        return hash(ormsgpack.packb(value, None, PACKING))
    except (TypeError, ValueError):
        return None


class Template:
    """One decoded message, to make copies of that share no mutable part with each other."""

    __slots__ = ("dicts", "extra", "fields", "given", "kind", "lists", "nested")

    def __init__(self, message: BaseMessage) -> None:
        """Raises `ValueError` when it holds more than plain values."""
        if message.__pydantic_private__ is not None:
            raise ValueError("private attributes")
        self.kind = type(message)
        self.fields = dict(message.__dict__)
        self.given = frozenset(message.__pydantic_fields_set__)
        self.extra = _packed_alone(message.__pydantic_extra__) if message.__pydantic_extra__ else None
        containers = {name: value for name, value in self.fields.items() if type(value) not in _ATOMS}
        self.dicts = [name for name, value in containers.items() if type(value) is dict and not value]
        self.lists = [name for name, value in containers.items() if type(value) is list and not value]
        self.nested = [(name, _packed_alone(value)) for name, value in containers.items() if value not in ({}, [])]


def copies(templates: Sequence[Template]) -> list[BaseMessage]:
    """One of each, in their order. Step by step for all of them takes three quarters of the time of one by one."""
    messages: list[BaseMessage] = [*map(_new, map(_kind_of, templates))]
    _for_each(_set_fields, messages, _own_fields(templates))
    _for_each(_set_given, messages, map(set, map(_given_of, templates)))
    _for_each(_set_extra, messages, map(_own_extra, templates))
    _for_each(_set_private, messages, repeat(None))
    return messages


def _own_extra(template: Template) -> dict[str, Any]:
    return {} if template.extra is None else ormsgpack.unpackb(template.extra)


def _own_fields(templates: Sequence[Template]) -> list[dict[str, Any]]:
    copied = [template.fields.copy() for template in templates]
    for template, fields in zip(templates, copied, strict=True):
        for name in template.dicts:
            fields[name] = {}
        for name in template.lists:
            fields[name] = []
        for name, data in template.nested:
            fields[name] = ormsgpack.unpackb(data, option=ormsgpack.OPT_NON_STR_KEYS)
    return copied


def _for_each(call: Callable[..., None], *arguments: Iterable[Any]) -> None:
    deque(map(call, *arguments), maxlen=0)  # a loop with no step of Python's own in it


def made(kind: type[BaseMessage], fields: dict[str, Any], given: set[str], extra: dict[str, Any]) -> BaseMessage:
    """Without validation: of values that were a valid message's before."""
    message = kind.__new__(kind)
    _set_fields(message, fields)
    _set_given(message, given)
    _set_extra(message, extra)
    _set_private(message, None)
    return message


def template_of(value: Any) -> Template | None:
    if not isinstance(value, BaseMessage) or not type(value).__module__.startswith("langchain_core.messages."):
        return None
    try:
        return Template(value)
    except (TypeError, ValueError):
        return None


def _packed_alone(value: Any) -> bytes:
    """Only what comes back from it exactly as it was."""
    _refuse_all_but_plain(value)
    return ormsgpack.packb(value, None, PACKING)


def _refuse_all_but_plain(value: Any) -> None:
    if type(value) is dict:
        for key, one in [*value.items()]:  # pyright: ignore  # another thread may add to it now
            if type(key) is not str:  # pyright: ignore[reportUnknownArgumentType]
                raise ValueError("a key that is no text")
            _refuse_all_but_plain(one)
    elif type(value) is list:
        for one in value:  # pyright: ignore[reportUnknownVariableType]
            _refuse_all_but_plain(one)
    elif type(value) not in _ATOMS:
        raise ValueError("more than plain values")


_PYDANTIC = 5  # the serializer's code for a pydantic model: module, class, fields, method
_KINDS: dict[tuple[str, str], type[BaseMessage]] = {
    (kind.__module__, kind.__name__): kind for kind in (HumanMessage, AIMessage, SystemMessage, ToolMessage)
}
_FIELDS = {kind: [*kind.model_fields] for kind in _KINDS.values()}
_TYPES = {kind: kind.model_fields["type"].default for kind in _KINDS.values()}
_TEXT_OR_NONE = (str, type(None))
_TOOL_CALL = {"name", "args", "id", "type"}
_USAGE = {"input_tokens", "output_tokens", "total_tokens"}
_DICT: Any = dict  # of what is in it the type checker shall not worry
_LIST: Any = list
MORE: Any = object()


def plain_value(data: bytes) -> Any:
    """What the serializer's msgpack says; `MORE` where that is damaged, or more than plain values and messages."""
    try:
        return ormsgpack.unpackb(data, ext_hook=_message, option=ormsgpack.OPT_NON_STR_KEYS)
    except (ValueError, TypeError):
        return MORE


def as_read(message: object) -> BaseMessage | None:
    """What `plain_value` would make of this message's bytes, without them; None where that is not certain."""
    kind: Any = type(message)
    if kind not in _FIELDS:
        return None
    given: Any = message
    if given.__pydantic_extra__ or given.__pydantic_private__ is not None or not _is_simple(kind, given.__dict__):
        return None
    return made(kind, {**given.__dict__}, {*given.__dict__}, {})


def _message(code: int, data: bytes) -> BaseMessage:
    if code == _PYDANTIC:
        module, name, fields, _ = ormsgpack.unpackb(data, ext_hook=_refuse)
        kind = _KINDS.get((module, name))
        if kind is not None and _is_simple(kind, fields):
            return made(kind, fields, {*fields}, {})
    raise ValueError("more than plain values")


def _refuse(code: int, data: bytes) -> Any:
    raise ValueError("more than plain values")


def _is_simple(kind: type[BaseMessage], fields: Any) -> bool:
    return (
        type(fields) is _DICT
        and [*fields] == _FIELDS[kind]
        and type(fields["content"]) is str
        and type(fields["additional_kwargs"]) is dict
        and type(fields["response_metadata"]) is dict
        and fields["type"] == _TYPES[kind]
        and type(fields["name"]) in _TEXT_OR_NONE
        and type(fields["id"]) in _TEXT_OR_NONE
        and (kind is not AIMessage or _is_simple_answer(fields))
        and (kind is not ToolMessage or _is_simple_result(fields))
    )


def _is_simple_answer(fields: dict[str, Any]) -> bool:
    """Calls of tools in the form that validation gives them, and none hidden where it would look for them."""
    calls, others, usage = fields["tool_calls"], fields["invalid_tool_calls"], fields["usage_metadata"]
    if type(calls) is not _LIST or type(others) is not _LIST or others:
        return False
    if not calls and "tool_calls" in fields["additional_kwargs"]:
        return False
    return (usage is None or _is_usage(usage)) and (not calls or all(map(_is_tool_call, calls)))


def _is_usage(usage: Any) -> bool:
    return type(usage) is _DICT and usage.keys() == _USAGE and all(type(count) is int for count in usage.values())


def _is_tool_call(call: Any) -> bool:
    return (
        type(call) is _DICT
        and call.keys() == _TOOL_CALL
        and type(call["name"]) is str
        and type(call["args"]) is dict
        and type(call["id"]) in _TEXT_OR_NONE
        and call["type"] == "tool_call"
    )


def _is_simple_result(fields: dict[str, Any]) -> bool:
    return (
        type(fields["tool_call_id"]) is str and fields["artifact"] is None and fields["status"] in ("success", "error")
    )


_MAX_BYTES = 16 << 20
_OVERHEAD = 300  # bytes of Python objects around a message's texts, roughly
_dict_of = attrgetter("__dict__")
_extra_of = attrgetter("__pydantic_extra__")
_NO_DICT: dict[str, Any] = {}
_NO_LIST: list[Any] = []


def _chained(*dicts: dict[str, Any]) -> list[Any]:
    return [*chain.from_iterable(one.values() for one in dicts)]


class _Probe:
    def __init__(self) -> None:
        self.text, self.nothing, self.more = "text", None, dict[str, Any]()


def _collector_tells_all() -> bool:
    """Whether it visits each value of a dictionary, an object's own too: from 3.13 on it leaves those to the object."""
    probes: list[dict[str, Any]] = [{"a": "text", "b": None, "c": []}, {}, _Probe().__dict__, {"d": 1}]
    return get_referents(*probes) == _chained(*probes)


# What a dictionary refers to, in the collector's eyes, are its values: the same list in less than half the time.
_values_of = get_referents if _collector_tells_all() else _chained


def _parts_of_a_message() -> tuple[int, int, int, int]:
    """How many things a message refers to, in the collector's eyes, and which of them are these. Zero if not all are.

    To ask it for the parts of all messages at once takes half the time of asking each for three attributes.
    """
    probe = HumanMessage("text")
    places = {id(part): position for position, part in enumerate(get_referents(probe))}
    asked = (probe.__pydantic_extra__, probe.__dict__, type(probe))
    if not all(id(part) in places for part in asked):
        return (0, 0, 0, 0)
    extra, dict_, type_ = (places[id(part)] for part in asked)
    return len(places), extra, dict_, type_


_PARTS, _EXTRA, _OWN_DICT, _TYPE = _parts_of_a_message()


class ListSnapshot:
    """The messages as they were; nothing in it is shared with them that could change. It grows as its list does."""

    __slots__ = ("_fields", "_kinds", "_nested", "_packed", "questions", "size")

    def __init__(self) -> None:
        self._kinds: list[type] = []
        self._fields: list[Any] = []  # of all messages, one after the other; each class has its number of them
        self._nested: list[int] = []  # indexes of those that equality alone does not distinguish (1 and True)
        self._packed = bytearray()  # those, as bytes
        self.questions = 0  # how many messages are a user's
        self.size = 0

    def __len__(self) -> int:
        return len(self._kinds)

    def common_with(self, values: Sequence[Any]) -> int:
        """How many messages this has, if `values` begins with all of them; else 0."""
        try:
            return self._common_with(values)
        except Exception:  # what was put into a message may refuse to be compared; another thread may just add to this
            return 0

    def may_begin(self, values: Sequence[Any]) -> bool:
        """A quick look at its last message: where a list has lost some, another one is there."""
        count = len(self._kinds)
        if not 0 < count <= len(values) or type(values[count - 1]) is not self._kinds[-1]:
            return False
        fields = [*_dict_of(values[count - 1]).values()]
        try:
            return fields == self._fields[-len(fields) :]
        except Exception:  # as above
            return False

    def _common_with(self, values: Sequence[Any]) -> int:
        count = len(self._kinds)
        head = values[:count]
        fields = self._fields_of(head)
        if fields is None or fields != self._fields:
            return 0
        if self._nested and not self._same_depths([*map(fields.__getitem__, self._nested)]):
            return 0
        if fields[0] is not self._fields[0] and type(fields[0]) is str:
            self._adopt_texts(fields)
        return count

    def _fields_of(self, head: Sequence[Any]) -> list[Any] | None:
        """None if they are not all messages of the same classes as these, or have more than their classes' fields."""
        parts = get_referents(*head) if _PARTS else []
        if parts and len(parts) == _PARTS * len(head) and parts[_TYPE::_PARTS] == self._kinds:
            extras, dicts = parts[_EXTRA::_PARTS], parts[_OWN_DICT::_PARTS]
        elif [*map(type, head)] == self._kinds:
            extras, dicts = map(_extra_of, head), map(_dict_of, head)
        else:
            return None
        return None if any(extras) else _values_of(*dicts)

    def _same_depths(self, nested: list[Any]) -> bool:
        """All in one call: a list's bytes are those of its elements, behind a header with their number."""
        data = _packed(nested)
        header = 1 if len(nested) < 16 else 3 if len(nested) < 1 << 16 else 5
        return len(data) == header + len(self._packed) and data.endswith(self._packed)

    def _adopt_texts(self, fields: Sequence[Any]) -> None:
        """Equal ones, so that the next look finds the very same objects: those that reading hands out by now."""
        self._fields[:] = [new if type(new) is str else old for new, old in zip(fields, self._fields, strict=True)]

    def add(self, message: BaseMessage) -> None:
        """Raises `TypeError` or `ValueError` on one that is more than plain values."""
        if message.__pydantic_extra__:
            raise ValueError("fields of its own")
        for value in _values_of(_dict_of(message)):
            if value is None or type(value) is str:
                self._fields.append(value)
                self.size += len(value or "")
            elif type(value) in (dict, list) and not value:
                self._fields.append(_NO_DICT if type(value) is dict else _NO_LIST)
            else:
                data = _packed(value)
                self._nested.append(len(self._fields))
                self._packed += data
                self.size += 4 * len(data)  # as bytes, and as what they say
                self._fields.append(ormsgpack.unpackb(data, option=ormsgpack.OPT_NON_STR_KEYS))
        self._kinds.append(type(message))
        self.questions += isinstance(message, HumanMessage)
        self.size += _OVERHEAD

    def grow(self, more: ListSnapshot) -> None:
        offset = len(self._fields)
        self._nested += [offset + position for position in more._nested]
        self._packed += more._packed
        self._fields += more._fields
        self._kinds += more._kinds
        self.questions += more.questions
        self.size += more.size


def snapshot(values: Sequence[Any]) -> ListSnapshot | None:
    """None unless all are messages of plain values."""
    taken = ListSnapshot()
    try:
        for value in values:
            if not isinstance(value, BaseMessage):
                return None
            taken.add(value)
    except (TypeError, ValueError):
        return None
    return taken


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, None, PACKING)


class Known(NamedTuple):
    """A list that seems to begin with all that `snapshot` had, so many messages."""

    snapshot: ListSnapshot
    length: int
    questions: int  # so many of them are a user's
    values: Sequence[Any]

    def holds(self) -> bool:
        """Whether it does begin so, and the snapshot has not grown with another run's list."""
        return self.snapshot.common_with(self.values) == self.length


class Continued(NamedTuple):
    """A list that was `before` and has become `after`: by adding `added` to what is known, or as a whole."""

    before: tuple[Run, ...]
    after: tuple[Run, ...]
    known: Known | None
    added: ListSnapshot


class LatestLists:
    """Snapshots of lists that were put lately, by the runs they became. Bounded; safe to share."""

    def __init__(self) -> None:
        self._lists: OrderedDict[tuple[bytes, tuple[Run, ...]], ListSnapshot] = OrderedDict()
        self._bytes = 0
        self._changing = threading.Lock()

    def known(self, thread: Thread, runs: tuple[Run, ...], values: Sequence[Any]) -> Known | None:
        """None where nothing is known, or the list has surely changed elsewhere than at its end."""
        with self._changing:
            taken = self._lists.get((thread.key, runs))
            if taken is None or not taken.may_begin(values):
                return None
            return Known(taken, len(taken), taken.questions, values)

    def stored(self, thread: Thread, continued: Continued) -> None:
        """Only what was stored: until then its positions may become another's. Its state before is dropped."""
        with self._changing:
            before = self._pop((thread.key, continued.before))
            self._pop((thread.key, continued.after))
            whole = continued.added
            if continued.known is not None:
                whole, length = continued.known.snapshot, continued.known.length
                if whole is not before or len(whole) != length:
                    return  # another run has continued from there: the next put looks at what is stored
                whole.grow(continued.added)
            self._lists[thread.key, continued.after] = whole
            self._bytes += whole.size
            while self._bytes > _MAX_BYTES and self._lists:
                self._bytes -= self._lists.popitem(last=False)[1].size

    def forget(self, thread: Thread) -> None:
        with self._changing:
            for key in [key for key in self._lists if key[0] == thread.key]:
                self._pop(key)

    def _pop(self, key: tuple[bytes, tuple[Run, ...]]) -> ListSnapshot | None:
        removed = self._lists.pop(key, None)
        self._bytes -= removed.size if removed else 0
        return removed


def text_of(message: BaseMessage) -> str:
    """Of its text blocks; thoughts, pictures and calls are others."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    blocks = (one if isinstance(one, str) else _text_block(one) for one in content)
    return "\n".join(block for block in blocks if block)


def _text_block(block: Any) -> str:
    if isinstance(block, Mapping) and cast("Mapping[str, Any]", block).get("type") == "text":
        return str(cast("Mapping[str, Any]", block).get("text") or "")
    return ""
