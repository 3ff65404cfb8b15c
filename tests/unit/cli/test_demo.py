"""`threadkeep demo`: what it shows is true."""

from tests.unit.cli.conftest import Command
from threadkeep.cli.demo import SCRIPT


def test_four_languages_are_kept_masked_recalled_and_erased_with_proof(threadkeep: Command) -> None:
    ended = threadkeep("demo", "--json")

    report = ended.json
    assert (ended.code, report["ok"]) == (0, True)
    assert [turn["language"] for turn in report["turns"]] == ["vi", "pl", "zh-Hant", "en"]
    assert report["proof"]["complete"] is True
    assert report["found_in_files"] == {"kept_texts_before": 8, "refused_or_masked": 0, "kept_texts_after": 0}


def test_it_shows_every_kind_of_refusal_and_masking(threadkeep: Command) -> None:
    turns = threadkeep("demo", "--json").json["turns"]

    refused = {reason for turn in turns for reason in turn["refused"]}
    assert refused == {
        "tool_request", "tool_result", "thought", "debug_trace", "system_note", "media_without_summary",
    }  # fmt: skip
    assert {kind for turn in turns for kind in turn["redacted"]} == {"PHONE", "EMAIL", "CREDIT_CARD"}


def test_for_people_it_prints_what_was_kept_and_none_of_the_secrets(threadkeep: Command) -> None:
    ended = threadkeep("demo")

    assert ended.code == 0
    assert "[REDACTED:PHONE]" in ended.stdout
    assert "0 after it" in ended.stdout
    assert not any(secret in ended.stdout for step in SCRIPT for secret in step.secrets)


def test_it_can_be_repeated_on_a_store_of_ones_own(threadkeep: Command, store: str) -> None:
    for _ in range(2):
        assert threadkeep("demo", "--url", store, "--json").json["ok"] is True

    assert threadkeep("stats", "--url", store, "--json").json["messages"] == 4
