"""Indexing the knowledge folder while others are served, and how far it has come."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cachetools import FIFOCache

from threadkeep.compose.knowledge import open_knowledge
from threadkeep.errors import Forbidden, NotFound, ThreadkeepError
from threadkeep.scope import Scope
from threadkeep.settings import Settings

if TYPE_CHECKING:
    from threadkeep.knowledge.indexing import IndexReport

_log = logging.getLogger("threadkeep.http")
_MOST_KNOWN = 100


@dataclass(slots=True)
class Job:
    id: str
    tenant: str
    datasource: str
    status: Literal["running", "done", "failed"] = "running"
    done: int = 0
    total: int | None = None
    report: IndexReport | None = None
    error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "job_id": self.id,
            "datasource": self.datasource,
            "status": self.status,
            "done": self.done,
            "total": self.total,
            "report": asdict(self.report) if self.report else None,
            "error": self.error,
        }


class Indexing:
    """One job at a time for each tenant's datasource: a second request gets the job that is running.

    `datasource` is the name that the folder's documents go by, unless a request gives another. An assistant's own are
    one tenant's, whichever tenant it answers.
    """

    def __init__(self, settings: Settings, datasource: str = "knowledge") -> None:
        self.datasource = datasource
        self._tenant: str | None = None
        self._settings = settings
        self._jobs: FIFOCache[str, Job] = FIFOCache(_MOST_KNOWN)
        self._tasks: dict[tuple[str, str], tuple[Job, asyncio.Task[None]]] = {}

    def answers_with(self, responder: object) -> None:
        """`responder` may be an application's own, which says nothing of documents."""
        self.datasource = getattr(responder, "name", self.datasource)
        self._tenant = getattr(responder, "documents_tenant", None)

    def begin(self, tenant: str, datasource: str, key: str | None) -> Job:
        """Raise `Forbidden` where the assistant would not answer from what is indexed."""
        if self._tenant is not None and tenant != self._tenant and datasource == self.datasource:
            raise Forbidden(
                f"the assistant answers from documents of tenant {self._tenant!r}, so they are indexed for it: ask with"
                f" an ADMIN's credential of that tenant, set `tenant = {json.dumps(tenant)}` in assistant.toml, or name"
                " another `datasource`, which retrieval alone reads"
            )
        id_ = str(uuid.uuid4() if key is None else uuid.UUID(bytes=Scope(tenant, datasource).digest("index", key)))
        if id_ in self._jobs:
            return self._jobs[id_]
        place = (tenant, datasource)
        if place in self._tasks:
            return self._tasks[place][0]
        job = Job(id_, tenant, datasource)
        task = asyncio.create_task(self._run(job), name="threadkeep-index")
        self._tasks[place] = job, task
        task.add_done_callback(lambda _: self._tasks.pop(place, None))
        self._jobs[job.id] = job
        return job

    async def finished(self, job: Job) -> Job:
        running = self._tasks.get((job.tenant, job.datasource))
        if running and running[0] is job:
            await asyncio.shield(running[1])
        return job

    def find(self, tenant: str, id_: str) -> Job:
        job = self._jobs.get(id_)
        if job is None or job.tenant != tenant:
            raise NotFound("there is no such job; jobs are forgotten when the service restarts")
        return job

    async def _run(self, job: Job) -> None:
        try:
            await self._index(job)
            job.status = "done"
        except ThreadkeepError as error:
            self._failed(job, error.code, error)
        except Exception as error:  # a folder's rights, a document that breaks its reader
            self._failed(job, "internal_error", error)

    def _failed(self, job: Job, code: str, error: Exception) -> None:
        job.status, job.error = "failed", code
        _log.error(json.dumps({"event": "index_failed", "error": code, "kind": type(error).__qualname__}))

    async def _index(self, job: Job) -> None:
        """Imported only now: documents need an extra."""
        async with open_knowledge(None, self._settings) as knowledge:
            from threadkeep.knowledge.indexing import Source

            def progress(done: int, total: int, _: str) -> None:
                job.done, job.total = done, total

            source = Source(job.datasource, job.tenant)
            job.report = await knowledge.indexer.index(self._folder(), source, progress)

    def _folder(self) -> Path:
        """An assistant's own, unless the settings name one."""
        own, named = self._settings.assistant, "knowledge_path" in self._settings.model_fields_set
        return Path(self._settings.knowledge_path) if own is None or named else Path(own) / "knowledge"

    async def close(self) -> None:
        for _, task in [*self._tasks.values()]:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
