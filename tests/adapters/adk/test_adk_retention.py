"""ADK's sessions go with their turns, scratch state is in no database, and no name that an agent gives is kept raw."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions

from tests.adapters.adk.conftest import Open
from tests.adapters.adk.scripted import texts
from tests.adapters.adk.test_adk_sessions import said, with_state
from tests.adapters.database import every_value
from threadkeep import Settings
from threadkeep.adapters.adk import ThreadkeepSessionService, TurnLimits
from threadkeep.adapters.sealing import Seal
from threadkeep.adapters.stores_thread import StoresThread
from threadkeep.compose.memory import open_agent_stores
from threadkeep.compose.upkeep import open_retention
from threadkeep.testing.clock import FakeClock

DAY = timedelta(days=1).total_seconds()
SETTINGS = Settings()


@pytest.fixture
async def aging(place: dict[str, Any]) -> Any:
    """A service on each database, its clock, and a run of retention by that clock."""
    clock = FakeClock()
    stores = StoresThread(lambda: open_agent_stores(place["url"], SETTINGS, place.get("redis"), clock))
    service = ThreadkeepSessionService(stores, place["tenant"], Seal(None))

    async def retained() -> Any:
        await service.flush()
        async with open_retention(place["url"], redis=place.get("redis"), settings=SETTINGS, clock=clock) as retention:
            return await retention.run(force=True)

    yield service, clock, retained
    await service.close()


async def test_an_idle_session_goes_with_its_state_event_ids_and_authors(aging: Any, place: dict[str, Any]) -> None:
    service, clock, retained = aging
    state = {"flavour": "statecanary", "user:taste": "tastecanary", "app:theme": "themekept"}
    session = await service.create_session(app_name="a", user_id="u", session_id="the-first", state=state)
    await service.append_event(session, said("user", "wordscanary", id="idcanary"))
    await service.append_event(session, said("authorcanary", "a reply"))
    clock.advance(80 * DAY)
    await service.create_session(app_name="a", user_id="u", session_id="younger")
    await retained()
    assert len((await service.list_sessions(app_name="a")).sessions) == 2
    clock.advance(11 * DAY)
    assert (await retained()).rows >= 4
    left = await service.list_sessions(app_name="a")
    assert [one.id for one in left.sessions] == ["younger"]
    assert await service.get_user_state(app_name="a", user_id="u") == {}
    assert left.sessions[0].state == {"app:theme": "themekept"}
    kept = b"\n".join(await every_value(place["url"]))
    for canary in ("statecanary", "tastecanary", "wordscanary", "idcanary", "authorcanary"):
        assert canary.encode() not in kept


@pytest.mark.parametrize(("days", "stays"), [(365, True), (30, False)])
async def test_sessions_age_by_the_setting_of_the_run_as_their_turns_do(
    place: dict[str, Any], days: int, stays: bool
) -> None:
    """Whatever it was when they were written."""
    clock = FakeClock()

    def service_with(settings: Settings) -> ThreadkeepSessionService:
        stores = StoresThread(lambda: open_agent_stores(place["url"], settings, place.get("redis"), clock))
        return ThreadkeepSessionService(stores, place["tenant"], Seal(None))

    service = service_with(SETTINGS)
    session = await service.create_session(app_name="a", user_id="u", session_id="s", state={"user:taste": "sweet"})
    await service.append_event(session, said("user", "of a while ago"))
    await service.flush()
    await service.close()
    clock.advance((100 if stays else 40) * DAY)
    changed = Settings(turn_retention_days=days)
    async with open_retention(place["url"], redis=place.get("redis"), settings=changed, clock=clock) as retention:
        due = (await retention.run(dry_run=True)).rows
        assert (await retention.run(force=True)).rows == due
    service = service_with(changed)
    try:
        again = await service.get_session(app_name="a", user_id="u", session_id="s")
        assert (again is not None, due > 0) == (stays, not stays)
        if again is not None:
            assert texts(again) == ["of a while ago"]
        assert await service.get_user_state(app_name="a", user_id="u") == ({"taste": "sweet"} if stays else {})
    finally:
        await service.close()


async def test_a_session_that_is_used_stays_and_its_old_events_go(aging: Any) -> None:
    service, clock, retained = aging
    session = await service.create_session(app_name="a", user_id="u", session_id="s", state={"k": 1})
    await service.append_event(session, said("user", "of long ago", timestamp=clock().timestamp()))
    clock.advance(60 * DAY)
    await service.append_event(session, said("user", "of late", "i2", timestamp=clock().timestamp()))
    clock.advance(60 * DAY)
    await retained()
    again = await service.get_session(app_name="a", user_id="u", session_id="s")
    assert again is not None
    assert texts(again) == ["of late"]
    assert again.state == {"k": 1}
    await service.append_event(again, said("user", "and on", "i3"))
    assert texts(await service.get_session(app_name="a", user_id="u", session_id="s")) == ["of late", "and on"]


async def test_the_name_of_a_session_that_has_expired_is_free_before_anything_is_swept(aging: Any) -> None:
    service, clock, _ = aging
    await service.create_session(app_name="a", user_id="u", session_id="s")
    with pytest.raises(AlreadyExistsError):
        await service.create_session(app_name="a", user_id="u", session_id="s")
    clock.advance(91 * DAY)
    assert await service.get_session(app_name="a", user_id="u", session_id="s") is None
    assert (await service.create_session(app_name="a", user_id="u", session_id="s")).events == []


async def test_state_that_an_application_lists_is_in_no_database_in_any_scope(
    sqlite_place: dict[str, Any], opened: Open
) -> None:
    service = opened(**sqlite_place, limits=TurnLimits(not_persisted=("draft.",)))
    state = {"draft.mail": "draftcanary", "user:draft.x": "usercanary", "app:tool.temp.y": "appcanary", "kept": "stays"}
    session = await service.create_session(app_name="a", user_id="u", state=state)
    await service.append_event(session, with_state(**{"draft.later": "latercanary", "features.z": "featurecanary"}))
    again = await service.get_session(app_name="a", user_id="u", session_id=session.id)
    assert again is not None
    assert again.state["draft.mail"] == "draftcanary"
    assert again.state["draft.later"] == "latercanary"
    values = b"\n".join(await every_value(sqlite_place["url"]))
    assert b"stays" in values
    assert b"canary" not in values


async def test_names_that_hold_personal_data_are_masked(
    sqlite_place: dict[str, Any], sqlite_service: ThreadkeepSessionService
) -> None:
    state = {"ann@example.com": 1, "user:bob@example.com": 2, "deep": {"eve@example.com": {"joe@example.com": 3}}}
    session = await sqlite_service.create_session(app_name="a", user_id="u", state=state)
    event = Event(
        author="kim@example.com",
        branch="root.liz@example.com",
        error_code="E max@example.com",
        invocation_id="i",
        actions=EventActions(state_delta={"pat@example.com": 4}, transfer_to_agent="ron@example.com"),
    )
    await sqlite_service.append_event(session, event)
    again = await sqlite_service.get_session(app_name="a", user_id="u", session_id=session.id)
    assert again is not None
    assert again.events[0].author == "[REDACTED:EMAIL]"
    assert again.events[0].branch == "[REDACTED:EMAIL]"
    assert b"example.com" not in b"\n".join(await every_value(sqlite_place["url"]))
