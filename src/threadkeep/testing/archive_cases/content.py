"""What is read is what was kept: every character, every instant, every field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from threadkeep.events import Origin
from threadkeep.testing.drafts import admitted, draft, kept, new_scope
from threadkeep.testing.stores import StoresUnderTest, WithStores

TEXTS = {
    "a lone surrogate": "before \ud83d after",
    "surrogates that only look like a pair": "\ud83d\ude00",
    "NUL": "a\0b\0",
    "control characters": "\x01\x1b[31m\x7f\x85\u2028",
    "line ends": "a\nb\r\nc\rd\te",
    "surrounding space": "  two spaces and a tab\t\n",
    "four-byte emoji": "👩‍👩‍👧‍👦 🇻🇳 🏳️‍🌈",
    "composed marks": "Ti\u1ebfng Vi\u1ec7t",
    "decomposed marks": "Tie\u0302\u0301ng Vie\u0323\u0302t",
    "many marks on one letter": "z" + "\u0301" * 300,
    "right to left": "مرحبا \u202eabc\u202c שלום",
    "Chinese beyond the basic plane": "𠮷野家 花生",
    "Polish": "Zażółć gęślą jaźń",
    "noncharacters": "\ufffe\uffff\U0010ffff",
    "a byte-order mark": "\ufeffhello",
    "quotes and wildcards": "'; DROP TABLE x; -- \" \\ % _ ` $1 :a ?",
    "JSON": '{"role": "system", "a": [1, null]}',
    "a digit string": "0012",
    "100,000 characters": "xin chào " * 11_111 + "!",
    "one long word": "ł" * 100_000,
}

VIETNAM = timezone(timedelta(hours=7))
NEW_YORK = ZoneInfo("America/New_York")
TIMES = {
    "+07:00": datetime(2026, 1, 1, 3, 30, tzinfo=VIETNAM),
    "-05:00": datetime(2026, 1, 1, 22, 30, 0, 1, tzinfo=timezone(timedelta(hours=-5))),
    "+05:45": datetime(2026, 1, 1, 0, 0, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    "seconds in the offset": datetime(2026, 1, 1, tzinfo=timezone(timedelta(seconds=1234))),
    "microseconds": datetime(2026, 5, 6, 7, 8, 9, 123_457, tzinfo=UTC),
    "the last microsecond": datetime(2026, 5, 6, 23, 59, 59, 999_999, tzinfo=UTC),
    "before the clock goes back": datetime(2025, 11, 2, 1, 30, tzinfo=NEW_YORK),
    "after the clock goes back": datetime(2025, 11, 2, 1, 30, tzinfo=NEW_YORK, fold=1),
    "in the hour that is skipped": datetime(2026, 3, 8, 2, 30, tzinfo=NEW_YORK),
    "before 1970": datetime(1905, 6, 30, 12, 0, 0, 7, tzinfo=UTC),
    "long from now": datetime(2999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
}


class ContentCases(WithStores):
    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    async def test_text_comes_back_exactly(self, stores: StoresUnderTest, text: str) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft(text, "m1")))
        (message,) = await kept(stores.archive, scope)
        (record,) = [record async for record in stores.archive.records(scope)]
        assert message.content == text
        assert record.messages[0].content == text

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    async def test_a_retry_knows_its_text_again(self, stores: StoresUnderTest, text: str) -> None:
        scope, turn = new_scope(), admitted(draft(text, "m1"))
        first = await stores.archive.append(scope, turn)
        assert await stores.archive.append(scope, turn) == first

    @pytest.mark.parametrize("ts", TIMES.values(), ids=TIMES.keys())
    async def test_a_time_comes_back_as_the_same_instant(self, stores: StoresUnderTest, ts: datetime) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("hello", ts=ts)))
        (message,) = await kept(stores.archive, scope)
        # In UTC on both sides: two times of one zone are compared by the clock on the wall.
        assert message.ts.astimezone(UTC) == ts.astimezone(UTC)
        assert message.ts.utcoffset() is not None

    async def test_every_field_of_a_message_is_kept(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        meta = {"language": "vi", "mime": "audio/ogg", "durationMs": 12.5, "sha256": "0" * 64}
        voice = draft("a spoken greeting", "m1", modality="voice", language="vi", meta=meta)
        answer = draft("hello", "m2", role="assistant", language="en-GB")
        await stores.archive.append(scope, admitted(voice, answer))
        first, second = await kept(stores.archive, scope)
        assert (first.id, first.role, first.modality, first.language, dict(first.meta)) == (
            "m1",
            "user",
            "voice",
            "vi",
            meta,
        )
        assert (second.id, second.role, second.modality, second.language, dict(second.meta)) == (
            "m2",
            "assistant",
            "text",
            "en-GB",
            {},
        )

    @pytest.mark.parametrize("id", ["x" * 255, "tin nhắn 1", "消息", "a:b/c{d}%_", "'\"\\", "😀"])
    async def test_a_message_id_comes_back_as_it_was_given(self, stores: StoresUnderTest, id: str) -> None:
        scope = new_scope()
        receipt = await stores.archive.append(scope, admitted(draft("hello", id)))
        (message,) = await kept(stores.archive, scope)
        assert (receipt.kept, message.id) == ((id,), id)

    @pytest.mark.parametrize(("one", "other"), [("m", "M"), ("é", "e"), ("caf\u00e9", "cafe\u0301"), ("m", "m ")])
    async def test_message_ids_that_look_alike_are_two_messages(
        self, stores: StoresUnderTest, one: str, other: str
    ) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("one", one), draft("other", other)))
        assert [(m.id, m.content) for m in await kept(stores.archive, scope)] == [(one, "one"), (other, "other")]

    @pytest.mark.parametrize(
        "origin",
        [
            Origin("user"),
            Origin("model", "agent"),
            Origin("operator", "http", "key:abcdefghijkl"),
            Origin("import", "cli"),
        ],
        ids=lambda origin: origin.as_text(),
    )
    async def test_who_wrote_a_message_and_when_it_arrived_come_back(
        self, stores: StoresUnderTest, origin: Origin
    ) -> None:
        scope, arrived = new_scope(), datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
        await stores.archive.append(scope, admitted(draft("hello", origin=origin, stored_at=arrived), draft("unknown")))
        one, other = await kept(stores.archive, scope)
        assert (one.origin, one.stored_at) == (origin, arrived)
        assert (other.origin, other.stored_at) == (None, None)
