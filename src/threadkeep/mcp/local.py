"""What the tools do, on the stores of this process. The service has it without the extra `mcp`, so nothing of that is
imported here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from threadkeep.errors import InvalidInput, MissingExtra, NotFound
from threadkeep.events import ModelResponse, Origin
from threadkeep.mcp.calls import Call
from threadkeep.mcp.schemas import (
    ForgetArguments,
    HistoryArguments,
    RecallArguments,
    RememberArguments,
    RetrieveArguments,
)
from threadkeep.memory import Memory
from threadkeep.model import ConversationPage

if TYPE_CHECKING:
    from threadkeep.agent.retrieval import Retrieval

_PAGE = 50
_SHOWN_MESSAGES = 100
_PAGE_CHARS = 4_194_304  # of the text in one answer, as over HTTP
OpenRetrieval = Callable[[], Awaitable["Retrieval"]]  # opened at its first use


class LocalBackend:
    """`retrieval` raises `MissingExtra` where its parts are not installed: memory's tools work all the same."""

    def __init__(self, memory: Memory, retrieval: OpenRetrieval) -> None:
        self._memory = memory
        self._retrieval = retrieval

    async def retrieve(self, call: Call, given: RetrieveArguments) -> dict[str, Any]:
        call.principal.need("read")
        retrieval = await self._retrieval()
        from threadkeep.agent.retrieval_turn import RetrievalRequest  # with the graph, an extra

        request = RetrievalRequest(
            call.scope(),
            call.access,
            given.query,
            given.topK,
            conversation=call.conversation,
            request_id=call.request_id,
        )
        return (await retrieval.ask(request, call.progress)).as_dict()

    async def remember(self, call: Call, given: RememberArguments) -> dict[str, Any]:
        call.principal.need("write")
        scope = call.in_conversation(given.conversation)
        note = ModelResponse(given.text, origin=Origin("model", "mcp"))  # the caller of a tool is a model
        with _called("events[0].text", "text"):
            receipt = await self._memory.append(scope, [note], given.key)
        return {"conversation": scope.conversation, **receipt.as_dict()}

    async def recall(self, call: Call, given: RecallArguments) -> dict[str, Any]:
        call.principal.need("read")
        scope = call.scope(call.conversation)
        found = await self._memory.recall(scope, given.query, given.topK, given.budget, given.conversation)
        return found.as_dict()

    async def history(self, call: Call, given: HistoryArguments) -> dict[str, Any]:
        call.principal.need("read")
        scope = call.in_conversation(given.conversation)
        found = await self._memory.history(scope, given.limit, given.before, _PAGE_CHARS)
        state = await self._state(call, scope.require_conversation())
        told = found.as_dict()
        told.pop("generation")
        return {"conversation": scope.conversation, **told, "queries": list(state.get("queries", ()))}

    async def forget(self, call: Call, given: ForgetArguments) -> dict[str, Any]:
        call.principal.need("erase")
        if given.text is not None:
            if given.messageId is not None:
                raise InvalidInput("text", "is given beside messageId", "give one of the two")
            return (await self._memory.forget(call.scope(given.conversation), given.text)).as_dict()
        if given.messageId is None and given.conversation is None:
            raise InvalidInput("messageId", "is missing", "name a message, a text, or a conversation to forget whole")
        scope = call.in_conversation(given.conversation)
        return (await self._memory.erase(scope, given.messageId)).as_dict()

    async def conversations(self, call: Call, after: str | None) -> ConversationPage:
        call.principal.need("read")
        with _called("after", "cursor", "pass the `nextCursor` of the page before"):
            return await self._memory.conversations(call.scope(), after, _PAGE)

    async def conversation(self, call: Call, name: str) -> dict[str, Any]:
        """The messages and what was retrieved, the latter as far as this caller may read it now."""
        call.principal.need("read")
        scope = call.scope(name)
        found = await self._memory.history(scope, _SHOWN_MESSAGES)
        messages = found.messages
        state = await self._state(call, name)
        shown = ("queries", "retrievedContexts", "datasourceIds", "accessLevel", "counts")
        asked = bool(state.get("queries"))  # or it is a thread of another graph
        retrieved = {key: state[key] for key in shown if key in state} if asked else {}
        parts = () if retrieved else await self._memory.parts(scope)
        if not (messages or retrieved or parts or found.degraded):
            raise NotFound("there is no such conversation")
        told = {"conversation": name, "messages": [one.as_dict() for one in messages], "retrieval": retrieved}
        for part in parts:
            if part.kind != "retrieval":  # which checks who may read it
                # As it stands now; its past is in an export.
                told[part.name] = {key: part.value[key] for key in ("app", "state") if key in part.value}
        return told

    async def _state(self, call: Call, conversation: str) -> dict[str, Any]:
        try:
            retrieval = await self._retrieval()
        except MissingExtra:
            return {}
        return dict(await retrieval.state(call.scope(), call.access, conversation) or {})


@contextmanager
def _called(ours: str, theirs: str, fix: str | None = None) -> Generator[None]:
    """A field by the name that a client gave it by."""
    try:
        yield
    except InvalidInput as error:
        if error.field != ours:
            raise
        raise type(error)(theirs, error.problem, fix or error.fix) from None
