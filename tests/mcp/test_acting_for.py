"""Every pair (real caller, user acted for) on every surface: HTTP, the assistant's routes, MCP and the console.

What may be read is computed here from the documents' access levels, by sets, and compared with what each surface shows.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.agent.recording import RecordingModel, turns_of
from tests.mcp.answers import told
from tests.mcp.library import SETTINGS, document, fill
from tests.mcp.serving import bearer, over_http, served, settings_for
from threadkeep import Memory, Scope, UserMessage, open_memory
from threadkeep.compose.assistant import open_assistant
from threadkeep.compose.service import open_keys
from threadkeep.identity.api_keys import new_key
from threadkeep.ports.clock import system_clock
from threadkeep.ports.keys import Role
from threadkeep.ports.knowledge import Document

HOTEL = Path(__file__).parents[2] / "examples" / "hotel_concierge"
KEY_SECRET = "k" * 32
QUESTION = "Where is the comet garden?"


@dataclass(frozen=True)
class Real:
    """A credential: `user` is None for a service key."""

    tenant: str
    user: str | None
    role: Role = "USER"

    @property
    def own(self) -> tuple[str, str]:
        return self.tenant, self.user or "default"

    def may_act_for(self, person: tuple[str, str]) -> bool:
        if self.role == "SUPER_ADMIN" or person == (self.tenant, self.user):
            return True
        return person[0] == self.tenant and (self.role == "ADMIN" or self.user is None)


REAL: dict[str, Real] = {
    "ann": Real("default", "ann"),
    "bob": Real("default", "bob"),
    "eve": Real("default", "eve"),
    "ann of hotel": Real("hotel", "ann"),
    "boss": Real("default", "boss", "ADMIN"),
    "root": Real("default", "root", "SUPER_ADMIN"),
    "front-end": Real("default", None),
    "front-end of hotel": Real("hotel", None),
    "admin service": Real("default", None, "ADMIN"),
}
ACTED_FOR = {
    "ann": ("default", "ann"),
    "bob": ("default", "bob"),
    "eve": ("default", "eve"),
    "boss": ("default", "boss"),
    "root": ("default", "root"),
    "anonymous": ("default", "anonymous"),
    "ann of hotel": ("hotel", "ann"),
}
PAIRS = [(real, acted) for real in REAL for acted in ACTED_FOR]

DOCUMENTS: dict[str, tuple[str, Document]] = {
    "public": ("default", document("public.md", "The comet garden opens in May.")),
    "ann's": ("default", document("anns.md", "The comet garden of Ann is an orchard.", "private", owner="ann")),
    "bob's": ("default", document("bobs.md", "The comet garden of Bob is a pond.", "private", owner="bob")),
    "boss's": ("default", document("boss.md", "The comet garden of the boss is a lawn.", "private", owner="boss")),
    "ann to bob": (
        "default",
        document("two.md", "The comet garden plan is for two.", "shared", owner="ann", readers=("bob",)),
    ),
    "ann to boss": (
        "default",
        document("plan.md", "The comet garden budget is for the boss.", "shared", owner="ann", readers=("boss",)),
    ),
    "hotel public": ("hotel", document("hotel.md", "The comet garden is behind the hotel.")),
    "ann of hotel's": ("hotel", document("suite.md", "The comet garden suite is Ann's.", "private", owner="ann")),
}


def read_by(person: tuple[str, str | None]) -> set[str]:
    """Return what a plain user may read; None is somebody unknown."""
    tenant, user = person
    return {
        kind
        for kind, (of, one) in DOCUMENTS.items()
        if of == tenant and (one.access == "public" or user in (one.owner, *one.readers))
    }


def read_through(real: Real) -> set[str]:
    """Return what a credential may read at most, whoever it acts for."""
    if real.role == "SUPER_ADMIN":
        return set(DOCUMENTS)
    if real.user is None and real.role == "USER":  # speaks for the users of its tenant
        return {kind for kind, (of, _) in DOCUMENTS.items() if of == real.tenant}
    return read_by((real.tenant, real.user))


def expected(real: Real, person: tuple[str, str]) -> set[str]:
    of_tenant = {kind for kind, (tenant, _) in DOCUMENTS.items() if tenant == person[0]}
    if person == (real.tenant, real.user):
        return read_through(real) & of_tenant
    known = None if person[1] == "anonymous" else person[1]
    return read_through(real) & read_by((person[0], known))


@dataclass
class Service:
    address: str
    model: RecordingModel
    credentials: dict[str, dict[str, str]]
    cookies: dict[str, str]
    wrong: list[Any] = field(default_factory=list[Any])
    asked: int = 0

    def check(self, found: Any, wanted: Any, *about: str) -> None:
        self.asked += 1
        if found != wanted:
            self.wrong.append((*about, found, wanted))


def headers_for(acted: str) -> dict[str, str]:
    tenant, user = ACTED_FOR[acted]
    return {"X-Tenant-ID": tenant, "X-User-ID": user}


def talk_of(person: tuple[str, str]) -> str:
    return "-".join(("talk", *person))


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    url = f"sqlite:///{tmp_path}/pairs.db"
    for tenant in ("default", "hotel"):
        await fill(url, *(one for of, one in DOCUMENTS.values() if of == tenant), tenant=tenant)
    settings = settings_for(url, THREADKEEP_API_KEY_SECRET=KEY_SECRET)
    credentials: dict[str, dict[str, str]] = {}
    cookies: dict[str, str] = {}
    async with open_keys(url, SETTINGS) as keys:
        for name, one in REAL.items():
            if one.user is None:
                cookies[name], kept = new_key(KEY_SECRET, system_clock(), (one.tenant, None), role=one.role)
                await keys.add(kept)
                credentials[name] = {"X-API-Key": cookies[name]}
            else:
                credentials[name] = bearer(one.user, tenant=one.tenant, role=one.role)
                cookies[name] = credentials[name]["Authorization"].removeprefix("Bearer ")
    async with open_memory(url) as memory:
        for person in EVERYBODY:
            said = f"My comet is the one of {talk_of(person)}"
            await memory.append(Scope(*person, talk_of(person)), [UserMessage(said, id=talk_of(person))])
    model = RecordingModel("In the park.")
    folder = _of_every_datasource(tmp_path / "assistant")

    def opener(memory: Memory) -> Any:
        return open_assistant(memory, settings, folder, url=url, model=model)

    async with served(settings, responder_opener=opener) as address:
        yield Service(address, model, credentials, cookies)


def _of_every_datasource(folder: Path) -> Path:
    shutil.copytree(HOTEL, folder)
    file = folder / "assistant.toml"
    file.write_text(re.sub(r"(?m)^datasources = .*\n", "", file.read_text("utf-8")), "utf-8")
    return folder


def kinds_in(contexts: list[dict[str, Any]]) -> set[str]:
    """Match by content: two tenants may use one document id."""
    shown = {context["content"] for context in contexts}
    return {kind for kind, (_, one) in DOCUMENTS.items() if any(one.chunks[0].content in text for text in shown)}


def kinds_told(text: str) -> set[str]:
    return {kind for kind, (_, one) in DOCUMENTS.items() if one.chunks[0].content in text}


async def test_over_http_each_pair_reads_what_both_may(service: Service) -> None:
    async with httpx.AsyncClient(base_url=service.address, timeout=30, trust_env=False) as client:
        for real, acted in PAIRS:
            who, person = REAL[real], ACTED_FOR[acted]
            headers = service.credentials[real] | headers_for(acted) | {"X-Conversation-ID": f"asked by {real}"}
            for _ in range(2):  # the second answer comes from the cache and from what the conversation keeps
                answer = await client.post("/retrieval/query", json={"query": QUESTION, "topK": 50}, headers=headers)
                found = kinds_in(answer.json()["contexts"]) if answer.status_code == 200 else answer.status_code
                service.check(found, expected(who, person) if who.may_act_for(person) else 404, real, acted)
    assert (service.asked, service.wrong) == (2 * len(PAIRS), [])


async def test_over_mcp_each_pair_reads_what_both_may_and_reaches_the_memory_it_names(service: Service) -> None:
    meta = {"vscode.conversationId": "one conversation"}
    async with httpx.AsyncClient(base_url=service.address, timeout=30, trust_env=False) as plain:
        for real, acted in PAIRS:
            who, person = REAL[real], ACTED_FOR[acted]
            headers = service.credentials[real] | headers_for(acted)
            if not who.may_act_for(person):
                ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
                service.check((await plain.post("/mcp", json=ping, headers=headers)).status_code, 404, real, acted)
                continue
            async with over_http(service.address, headers) as client:
                found = told(await client.call_tool("retrieve", {"query": QUESTION, "topK": 50}, meta=meta))
                service.check(kinds_in(found["contexts"]), expected(who, person), real, acted, "retrieve")
                (kept,) = (await client.read_resource("threadkeep://conversations/one%20conversation")).contents
                stored: Any = json.loads(kept.text)["retrieval"]["retrievedContexts"]  # type: ignore[union-attr]
                service.check(kinds_in(stored) <= expected(who, person), True, real, acted, "resource")
                hits = told(await client.call_tool("recall", {"query": "which comet is mine"}))["hits"]
                recalled = {hit["message_id"] for hit in hits if hit["message_id"].startswith("talk-")}
                service.check(recalled, {talk_of(person)}, real, acted, "recall")
                listed = {one.name for one in (await client.list_resources()).resources}
                service.check({one for one in listed if one.startswith("talk-")}, {talk_of(person)}, real, acted)
    allowed = sum(REAL[real].may_act_for(ACTED_FOR[acted]) for real, acted in PAIRS)
    assert (service.asked, service.wrong) == (4 * allowed + len(PAIRS) - allowed, [])


@pytest.mark.parametrize("route", ["/conversations", "/agent/chat", "/api/chat"])
async def test_the_assistant_answers_each_pair_from_what_both_may_read(service: Service, route: str) -> None:
    """The assistant answers from its own tenant, and to a SUPER_ADMIN like to anyone: not from users' private texts."""
    async with httpx.AsyncClient(base_url=service.address, timeout=30, trust_env=False) as client:
        for real, acted in PAIRS:
            who, person = REAL[real], ACTED_FOR[acted]
            headers, before = service.credentials[real] | headers_for(acted), len(service.model.requests)
            status = await _asked_over(client, route, headers, person[1])
            if not who.may_act_for(person):
                service.check((status, len(service.model.requests)), (404, before), real, acted)
                continue
            wanted = from_its_own_tenant(who, person)
            service.check((status, kinds_told(service.model.requests[-1].system)), (200, wanted), real, acted)
    assert (service.asked, service.wrong) == (len(PAIRS), [])


def from_its_own_tenant(who: Real, person: tuple[str, str]) -> set[str]:
    if person[0] != "default":
        return {"public"}
    return expected(who, person) & read_by(("default", None if person[1] == "anonymous" else person[1]))


async def _asked_over(client: httpx.AsyncClient, route: str, headers: dict[str, str], user: str) -> int:
    if route == "/conversations":
        begun = await client.post(route, json={"language": "en"}, headers=headers)
        if begun.status_code != 201:
            return begun.status_code
        path, body = f"{route}/{begun.json()['conversation_id']}/messages?wait=true", {"content": QUESTION}
    elif route == "/agent/chat":
        path, body = route, {"sessionId": str(uuid.uuid4()), "message": QUESTION}
    else:
        path, body = route, {"conversation_id": f"c{uuid.uuid4()}", "user_id": user, "user_message": QUESTION}
    return (await client.post(path, json=body, headers=headers)).status_code


EVERYBODY = {*ACTED_FOR.values(), *(one.own for one in REAL.values())}


async def test_the_console_shows_each_caller_their_own_whoever_a_header_names(service: Service) -> None:
    """The console acts for nobody: its pages are those of the credential that signed in."""
    for real, acted in PAIRS:
        who, person = REAL[real], ACTED_FOR[acted]
        mine, talk = person == who.own, f"/console/conversations/{talk_of(person)}"
        async with httpx.AsyncClient(
            base_url=service.address,
            timeout=30,
            trust_env=False,
            headers=headers_for(acted),
            cookies={"threadkeep_console": service.cookies[real]},
        ) as browser:
            page = (await browser.get("/console/")).text
            shown = {person for person in EVERYBODY if f'/{talk_of(person)}"' in page}
            service.check(shown, {who.own}, real, acted, "list")
            opened = await browser.get(talk)
            found = opened.status_code, f"the one of {talk_of(person)}" in opened.text
            service.check(found, (200, True) if mine else (404, False), real, acted, "conversation")
            erased = await browser.post(f"{talk}/erase", data={"message": "none"})
            service.check(erased.status_code, 200 if mine else 404, real, acted, "erase")
            if mine:
                question = f"{QUESTION} I am {real}."
                await browser.post(f"{talk}/messages", data={"content": question})
                told = await _request_about(service.model, question)
                service.check(kinds_told(told), from_its_own_tenant(who, who.own), real, acted, "answer")
    own = sum(ACTED_FOR[acted] == REAL[real].own for real, acted in PAIRS)
    assert (service.asked, service.wrong) == (3 * len(PAIRS) + own, [])


async def _request_about(model: RecordingModel, question: str) -> str:
    """Wait until the model was asked this: the console answers before the assistant does."""
    async with asyncio.timeout(30):
        while not (found := [one for one in model.requests if (("user", question) in turns_of(one))]):
            await asyncio.sleep(0.01)
    return found[-1].system
