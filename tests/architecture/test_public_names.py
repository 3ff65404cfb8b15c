"""Names that other people's code is written against: add to them, never take one away."""

import inspect

import threadkeep
from threadkeep import Memory, Receipt, Scope

PROMISED = {
    "open_memory", "SyncMemory", "Scope", "UserMessage", "ModelResponse", "ToolRequest", "ToolResult", "Thought",
    "DebugTrace", "SystemNote", "Memory", "Message", "Turn", "Session", "Reflection", "Receipt", "ConversationRecord",
}  # fmt: skip

VERBS = {
    "append": ["scope", "events", "key"],
    "history": ["scope", "limit", "before"],
    "recall": ["scope", "query", "k", "budget", "conversation"],
    "conversations": ["scope", "after", "limit"],
    "stats": ["scope"],
    "erase": ["scope", "message_id"],
    "export": ["scope"],
    "flushed": ["timeout"],
}


def test_every_promised_name_can_be_imported_from_the_package() -> None:
    assert set(threadkeep.__all__) >= PROMISED
    assert all(hasattr(threadkeep, name) for name in threadkeep.__all__)


def test_the_list_of_public_names_is_sorted_and_has_no_doubles() -> None:
    assert threadkeep.__all__ == sorted(set(threadkeep.__all__))


def test_the_verbs_take_what_they_were_promised_to_take() -> None:
    for verb, parameters in VERBS.items():
        taken = list(inspect.signature(getattr(Memory, verb)).parameters)[1:]
        assert taken[: len(parameters)] == parameters, verb


def test_a_receipt_has_its_promised_fields() -> None:
    assert {"status", "seq", "kept", "refused", "redacted"} <= set(Receipt.__dataclass_fields__)


def test_a_scope_is_named_by_tenant_user_and_conversation() -> None:
    assert Scope("shop", "u42", "c1") == Scope(tenant="shop", user="u42", conversation="c1")


def test_the_memory_tools_are_in_compat_under_their_own_names() -> None:
    import threadkeep.compat as compat

    for name in ("redact", "is_persistable_event", "persist_memory_from_session", "put_tool_cache"):
        assert callable(getattr(compat, name))


def test_redact_has_its_promised_entry_point() -> None:
    from threadkeep.policy.redact import redact

    result = redact("mail an@example.com", language=None)
    assert result.text == "mail [REDACTED:EMAIL]"
    assert [tuple(span) for span in result.spans] == [(5, 19, "EMAIL")]
