"""`POST /admin/index`: the knowledge folder into the index, with progress."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.mcp.library import document, fill
from tests.service.conftest import client_of
from tests.service.talking import is_problem
from threadkeep.compose.knowledge import open_knowledge
from threadkeep.http.app import create_app
from threadkeep.knowledge.reading import READERS, Text
from threadkeep.ports.knowledge import Access
from threadkeep.settings import Settings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    for name in ("hours", "warranty", "shipping"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nAll there is to say about {name}.\n")
    return folder


@pytest.fixture
async def client(database: Path, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(DATABASE_URL=f"sqlite:///{database}", THREADKEEP_KNOWLEDGE_PATH=str(folder))  # pyright: ignore[reportCallIssue]
    async with client_of(create_app(settings)) as client:
        yield client


async def test_a_job_is_accepted_and_can_be_followed_to_its_report(client: httpx.AsyncClient) -> None:
    begun = await client.post("/admin/index")
    async with asyncio.timeout(60):
        while (job := (await client.get(f"/admin/index/{begun.json()['job_id']}")).json())["status"] == "running":
            await asyncio.sleep(0.01)

    assert (begun.status_code, begun.json()["status"]) == (202, "running")
    assert (job["status"], job["done"], job["total"], job["datasource"]) == ("done", 3, 3, "knowledge")
    assert (job["report"]["added"], job["report"]["skipped"]) == (3, [])


async def test_what_did_not_change_is_not_done_again(client: httpx.AsyncClient, folder: Path) -> None:
    await client.post("/admin/index", params={"wait": "true"})
    (folder / "hours.md").write_text("# hours\n\nFrom nine to five.\n")
    (folder / "shipping.md").unlink()

    again = await client.post("/admin/index", params={"wait": "true"}, json={})

    report = again.json()["report"]
    assert again.status_code == 200
    assert (report["added"], report["updated"], report["unchanged"], report["removed"]) == (0, 1, 1, 1)


async def test_a_key_names_one_job(client: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k1"}
    first = await client.post("/admin/index", headers=key, params={"wait": "true"})
    again = await client.post("/admin/index", headers=key, params={"wait": "true"})

    assert first.json() == again.json()


async def test_a_folder_that_is_not_there_is_a_failed_job(client: httpx.AsyncClient, folder: Path) -> None:
    shutil.rmtree(folder)

    job = (await client.post("/admin/index", params={"wait": "true"})).json()

    assert (job["status"], job["error"]) == ("failed", "invalid_input")


async def test_an_unknown_job_is_not_found_and_a_path_cannot_be_sent(client: httpx.AsyncClient) -> None:
    assert is_problem(await client.get("/admin/index/nowhere"), 404, "not_found")
    assert is_problem(await client.post("/admin/index", json={"folder": "/etc"}), 422, "invalid_input", "body")
    for name in ("x" * 128, "two words", "îöî", ""):
        answer = await client.post("/admin/index", json={"datasource": name})
        assert is_problem(answer, 422, "invalid_input", "datasource")


async def test_a_job_that_breaks_in_a_way_nobody_foresaw_has_failed_and_runs_no_longer(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(data: bytes) -> Text:
        raise RecursionError

    with monkeypatch.context() as patched:
        patched.setitem(READERS, ".md", broken)
        job = await client.post("/admin/index", params={"wait": "true"})
    again = await client.post("/admin/index", params={"wait": "true"})

    assert (job.status_code, job.json()["status"], job.json()["error"]) == (200, "failed", "internal_error")
    assert again.json()["status"] == "done"


@pytest.mark.parametrize("unreadable", [False, True])
async def test_documents_of_others_under_the_same_datasource_stay_and_stay_closed(
    database: Path, folder: Path, unreadable: bool
) -> None:
    """Two owners, two tenants, two datasources; one document of Ann's even has the id of a file in the folder."""
    url = f"sqlite:///{database}"
    others = [
        document("club/salary.md", "The comet salary of Ann.", "private", owner="ann", datasource="club"),
        document("club/hours.md", "The comet hours of Ann.", "private", owner="ann", datasource="club"),
        document("club/plan.md", "The comet plan of Bob.", "shared", owner="bob", readers=("ann",), datasource="club"),
        document("club/open.md", "The comet notice of Bob.", "public", owner="bob", datasource="club"),
        document("other/note.md", "The comet note of Ann.", "private", owner="ann", datasource="other"),
    ]
    await fill(url, *others, document("club/old.md", "The comet was here.", datasource="club"))
    await fill(url, document("club/far.md", "The comet of the hotel.", datasource="club"), tenant="hotel")
    if unreadable:
        (folder / "hours.md").write_bytes(b"\x00\xff\x00")
    settings = Settings(DATABASE_URL=url, THREADKEEP_KNOWLEDGE_PATH=str(folder))  # pyright: ignore[reportCallIssue]
    async with client_of(create_app(settings)) as client:
        job = await client.post("/admin/index", params={"wait": "true"}, json={"datasource": "club"})

    report = job.json()["report"]
    assert (report["added"], report["updated"], report["removed"]) == (2, 0, 1)
    assert [one["path"] for one in report["skipped"]] == ["hours.md"]
    assert "ann" not in json.dumps(report)
    async with open_knowledge(url, settings) as knowledge:
        kept = {one.document_id: (one.access, one.owner) for one in await knowledge.store.documents("default")}
        assert kept == {one.document_id: (one.access, one.owner) for one in others} | {
            "club/shipping.md": ("public", None),
            "club/warranty.md": ("public", None),
        }
        assert [one.document_id for one in await knowledge.store.documents("hotel")] == ["club/far.md"]
        for user, sees in (("ann", True), ("eve", False)):
            found = await knowledge.ask(Access("default", user), "comet hours", k=50)
            assert ("The comet hours of Ann." in found.text) is sees
