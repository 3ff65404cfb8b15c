"""Items of a store: how a batch of operations on them is done, how a search filters them, and how near they are to it.

Filters on an item's value and namespace are compared in Python: no key of an application stands in SQL. Embedders get
redacted text only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import ge, gt, le, lt
from typing import Any, cast

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
)

from threadkeep.adapters.langgraph.checkpoint_rows import fact_of, facts_of, opened
from threadkeep.adapters.langgraph.codec import Codec, packed
from threadkeep.adapters.langgraph.pages import squeezed
from threadkeep.errors import CheckpointCorrupt, InvalidInput, TooLarge
from threadkeep.ports.agent_rows import (
    ItemSearch,
    ItemStore,
    NewItem,
    StoredItem,
    decoded_namespace,
    encoded_namespace,
    item_key,
    space_of,
)
from threadkeep.ports.models import Embedder, model_of
from threadkeep.scope import Scope

Redact = Callable[[str], str]


class ItemVectors:
    def __init__(self, embedder: Embedder, fields: Sequence[str], redact: Redact) -> None:
        self._embedder = embedder
        self._fields = tuple(fields)
        self._redact = redact
        self._model: bytes | None = None

    async def model(self) -> bytes:
        """Sixteen bytes for its name and size: vectors of two models are never compared."""
        if self._model is None:
            model = await model_of(self._embedder)
            named = f"{model.name}:{model.dimensions}".encode()
            self._model = hashlib.blake2b(named, digest_size=16).digest()
        return self._model

    def texts(self, value: Mapping[str, Any], index: Any) -> list[str]:
        """At the paths that the item names, or else the store's own; none for `index=False`."""
        if index is False:
            return []
        if index is not None and not isinstance(index, list | tuple):
            raise InvalidInput("index", f"is a {type(index).__name__}", "give a list of paths, False or None")
        found: list[str] = []
        for path in self._fields if index is None else index:  # pyright: ignore[reportUnknownVariableType]
            found += get_text_at_path(dict(value), path if path == "$" else tokenize_path(str(path)))  # pyright: ignore[reportUnknownArgumentType]
        return [self._redact(text) for text in found if text and not text.isspace()]

    async def vectors(self, texts: Sequence[str]) -> list[bytes]:
        if not texts:
            return []
        rows = await self._embedder.embed(texts)
        return [row.astype("<f4").tobytes() for row in rows]

    async def nearest(self, query: str, held: Sequence[tuple[bytes, bytes]]) -> list[tuple[float, bytes]]:
        """Score and key of each item, best first; an item is as near as the nearest of its texts."""
        import numpy as np

        if not held:
            return []
        asked = (await self._embedder.embed([self._redact(query)]))[0].astype("<f4")
        matrix = np.frombuffer(b"".join(vector for _, vector in held), dtype="<f4").reshape(len(held), -1)
        best: dict[bytes, float] = {}
        for (key, _), score in zip(held, (matrix @ asked).tolist(), strict=True):
            best[key] = max(score, best.get(key, -1.0))
        return sorted(((score, key) for key, score in best.items()), key=lambda one: (-one[0], one[1]))

    async def close(self) -> None:
        await self._embedder.close()


_ORDER: dict[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_OPERATORS = {"$eq", "$ne", *_ORDER}


def checked(given: Any) -> dict[str, Any]:
    """Raises `InvalidInput` on what is no filter: another type, or an operator that is not known."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in cast("Iterable[Any]", given)):
        raise InvalidInput("filter", "is not a mapping of texts", "give the fields of a value, and what they should be")
    _check_operators(given)
    return dict(cast("Mapping[str, Any]", given))


def _check_operators(value: Any) -> None:
    if isinstance(value, Mapping):
        asked = cast("Mapping[Any, Any]", value)
        if any(_is_operator(key) and key not in _OPERATORS for key in asked):
            raise InvalidInput("filter", "has an unknown operator", f"use {', '.join(sorted(_OPERATORS))}")
        if len({_is_operator(key) for key in asked}) > 1:
            raise InvalidInput("filter", "has operators and fields side by side", "give one or the other")
        for inner in asked.values():
            _check_operators(inner)


def _is_operator(key: object) -> bool:
    return isinstance(key, str) and key.startswith("$")


def facts_in(wanted: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Those that a matching item must have: of fields that are to equal a plain value."""
    plain = {key: value for key, value in wanted.items() if isinstance(value, str | int | float)}
    return tuple(fact for key, value in plain.items() if (fact := fact_of(key, value)) is not None)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_fits(value.get(key), asked) for key, asked in wanted.items())


def _fits(value: Any, asked: Any) -> bool:
    if isinstance(asked, Mapping):
        return _fits_mapping(value, cast("Mapping[str, Any]", asked))
    if isinstance(asked, list | tuple):
        inner = cast("Sequence[Any]", asked)
        if not isinstance(value, list | tuple) or len(cast("Sequence[Any]", value)) != len(inner):
            return False
        return all(_fits(one, other) for one, other in zip(cast("Sequence[Any]", value), inner, strict=True))
    return bool(value == asked)


def _fits_mapping(value: Any, asked: Mapping[str, Any]) -> bool:
    if any(map(_is_operator, asked)):
        return all(_compares(value, operator, other) for operator, other in asked.items())
    if not isinstance(value, Mapping):
        return False
    return all(_fits(cast("Mapping[str, Any]", value).get(key), other) for key, other in asked.items())


def _compares(value: Any, operator: str, other: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return (value == other) is (operator == "$eq")
    number, other_number = _number(value), _number(other)
    if number is not None and other_number is not None:
        return _ORDER[operator](number, other_number)
    return isinstance(value, str) and isinstance(other, str) and _ORDER[operator](value, other)


def _number(value: Any) -> float | None:
    """Also of a text that spells one, as LangGraph's own stores do; None of anything else. Large ones as they are."""
    if isinstance(value, int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def fits_namespace(namespace: Sequence[str], conditions: Sequence[MatchCondition]) -> bool:
    return all(_has_end(namespace, condition) for condition in conditions)


def _has_end(namespace: Sequence[str], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidInput("match_type", "is not a choice", 'use "prefix" or "suffix"')
    end = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(end, path, strict=True))


def fixed_prefix(conditions: Sequence[MatchCondition]) -> tuple[str, ...]:
    """Labels that every matching namespace begins with."""
    longest: tuple[str, ...] = ()
    for condition in conditions:
        path = tuple(condition.path)
        fixed = path[: path.index("*")] if "*" in path else path
        if condition.match_type == "prefix" and len(fixed) > len(longest):
            longest = fixed
    return longest


_PAGE = 200


@dataclass(frozen=True, slots=True)
class Shelf:
    """Whose items, and how they are kept."""

    tenant: str
    user: str | None
    user_label: int | None  # which label of a namespace names the user, where the store is for all
    codec: Codec
    vectors: ItemVectors | None
    max_value_bytes: int

    @property
    def space(self) -> bytes:
        return space_of(self.tenant, self.user)

    def owner(self, namespace: Sequence[str]) -> str:
        if self.user is not None:
            return self.user
        if self.user_label is None or self.user_label >= len(namespace):
            return ""
        return Scope(self.tenant, namespace[self.user_label]).user  # checked there


class Batch:
    def __init__(self, shelf: Shelf, store: ItemStore) -> None:
        self._shelf = shelf
        self._store = store

    async def run(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        puts = {(_labels(op.namespace), str(op.key)): op for op in given if isinstance(op, PutOp)}
        changes = [await self._new_item(*place, op) for place, op in puts.items() if op.value is not None]
        found = {item.key: item for item in await self._gotten([op for op in given if isinstance(op, GetOp)])}
        results = [await self._result(op, found) for op in given]
        deleted = [self._key(*place) for place, op in puts.items() if op.value is None]
        if changes or deleted:
            await self._store.change(changes, deleted)
        return results

    def _key(self, namespace: tuple[str, ...], name: str) -> bytes:
        return item_key(self._shelf.space, encoded_namespace(namespace), _name(name))

    async def _gotten(self, gets: Sequence[GetOp]) -> Sequence[StoredItem]:
        if not gets:
            return []
        keys = {self._key(_labels(op.namespace), str(op.key)): op.refresh_ttl for op in gets}
        return await self._store.get([*keys], [key for key, refreshed in keys.items() if refreshed])

    async def _result(self, op: Op, found: Mapping[bytes, StoredItem]) -> Result:
        if isinstance(op, GetOp):
            item = found.get(self._key(_labels(op.namespace), str(op.key)))
            return None if item is None else self._item(item)
        if isinstance(op, SearchOp):
            return cast("Result", await self._search(op))
        if isinstance(op, ListNamespacesOp):
            return await self._namespaces(op)
        if isinstance(op, PutOp):  # pyright: ignore[reportUnnecessaryIsInstance]
            return None
        raise InvalidInput("ops", f"holds a {type(op).__name__}", "use the operations of langgraph.store.base")

    async def _new_item(self, namespace: tuple[str, ...], name: str, op: PutOp) -> NewItem:
        shelf, value = self._shelf, _checked_value(op.value)
        kind, data, _ = shelf.codec.encode(value, f"item {name!r}")
        if len(data) > shelf.max_value_bytes:
            raise TooLarge(f"item {name!r}", f"has {len(data):,} bytes", f"the limit is {shelf.max_value_bytes:,}")
        encoded = encoded_namespace(namespace)
        item = NewItem(
            key=item_key(shelf.space, encoded, _name(name)),
            space=shelf.space,
            namespace=encoded,
            name=_name(name),
            tenant=shelf.tenant,
            user=shelf.owner(namespace),
            value=squeezed(packed([kind, data])),
            facts=facts_of(value) if shelf.codec.plain else b"",
            ttl_minutes=_checked_ttl(op.ttl),
        )
        texts = shelf.vectors.texts(value, op.index) if shelf.vectors else []
        if shelf.vectors is None or not texts:
            return item
        return replace(item, model=await shelf.vectors.model(), vectors=await shelf.vectors.vectors(texts))

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted, limit, offset = checked(op.filter), _whole("limit", op.limit), _whole("offset", op.offset)
        prefix = encoded_namespace(_labels(op.namespace_prefix))
        search = ItemSearch(self._shelf.space, prefix, facts_in(wanted))
        if op.query and self._shelf.vectors is not None:
            found = await self._nearest(search, wanted, op.query, (limit, offset))
        elif wanted:
            matching = await self._matching(search, wanted, limit + offset)
            found = [(None, item) for item in matching[offset:]]
        else:
            found = [(None, item) for item in await self._store.find(search, limit, offset)]
        if op.refresh_ttl and found:
            keys = [item.key for _, item in found]
            await self._store.get(keys, keys)
        return [self._search_item(item, score) for score, item in found]

    async def _matching(self, search: ItemSearch, wanted: Mapping[str, Any], most: int | None) -> list[StoredItem]:
        """What the filter lets through, latest first; all of it without `most`."""
        found: list[StoredItem] = []
        while most is None or len(found) < most:
            page = await self._store.find(search, _PAGE)
            found += [item for item in page if matches(self._value(item), wanted)]
            if len(page) < _PAGE:
                break
            search = replace(search, after=page[-1])
        return found[:most]

    async def _nearest(
        self, search: ItemSearch, wanted: Mapping[str, Any], query: str, part: tuple[int, int]
    ) -> list[tuple[float | None, StoredItem]]:
        """Nearest first; where they do not fill the page, items without vectors do."""
        assert self._shelf.vectors is not None
        limit, offset = part
        held = await self._store.vectors(search, await self._shelf.vectors.model())
        allowed: set[bytes] | None = None
        if wanted:
            allowed = {item.key for item in await self._matching(search, wanted, None)}
            held = [one for one in held if one[0] in allowed]
        ranked = await self._shelf.vectors.nearest(query, held)
        chosen = ranked[offset : offset + limit]
        items = {item.key: item for item in await self._store.get([key for _, key in chosen])}
        found: list[tuple[float | None, StoredItem]] = [(score, items[key]) for score, key in chosen if key in items]
        if len(found) < limit:
            scored = {key for key, _ in held}
            rest = await self._matching(search, wanted, limit + offset + len(scored))
            others = [item for item in rest if item.key not in scored]
            skipped = max(0, offset - len(ranked))
            found += [(None, item) for item in others[skipped : skipped + limit - len(found)]]
        return found

    async def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        limit, offset = _whole("limit", op.limit), _whole("offset", op.offset)
        conditions = op.match_conditions or ()
        stored = await self._store.namespaces(self._shelf.space, encoded_namespace(fixed_prefix(conditions)))
        found = [labels for one in stored if fits_namespace(labels := decoded_namespace(one), conditions)]
        depth = None if op.max_depth is None else _whole("max_depth", op.max_depth)
        shown = sorted({labels if depth is None else labels[:depth] for labels in found})
        return shown[offset : offset + limit]

    def _value(self, item: StoredItem) -> dict[str, Any]:
        where = f"item {item.name.decode('utf-8', 'surrogatepass')!r}"
        kind, data = opened(item.value, where)
        value = self._shelf.codec.decode(kind, data, where)
        if not isinstance(value, dict):
            raise CheckpointCorrupt(f"{where} is no mapping")
        return cast("dict[str, Any]", value)

    def _item(self, item: StoredItem) -> Item:
        return Item(
            value=self._value(item),
            key=item.name.decode("utf-8", "surrogatepass"),
            namespace=decoded_namespace(item.namespace),
            created_at=_time(item.created_at),
            updated_at=_time(item.updated_at),
        )

    def _search_item(self, stored: StoredItem, score: float | None) -> SearchItem:
        item = self._item(stored)
        return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)


def _labels(namespace: Any) -> tuple[str, ...]:
    if not isinstance(namespace, list | tuple) or not all(isinstance(one, str) for one in cast("list[Any]", namespace)):
        raise InvalidInput("namespace", "is not a tuple of texts", 'give labels, such as ("memories", "u42")')
    return tuple(cast("list[str]", namespace))


def _name(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _checked_value(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput("value", f"is a {type(value).__name__}", "give a mapping")
    return dict(cast("Mapping[str, Any]", value))


def _checked_ttl(ttl: Any) -> float | None:
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < 1e9:
        raise InvalidInput("ttl", "is not a number of minutes above zero", "give minutes, or None to keep the item")
    return float(ttl)


def _whole(field: str, number: Any) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise InvalidInput(field, "is not a whole number", "give zero or more")
    return number


def _time(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
