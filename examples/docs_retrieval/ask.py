"""Ask the documents through MCP, as an editor does: a question, and one that refers to it."""

from __future__ import annotations

import asyncio
import sys
import uuid
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main(url: str, questions: list[str]) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "threadkeep.cli", "mcp", "--url", url])
    conversation = {"vscode.conversationId": str(uuid.uuid4())}
    async with Client(stdio_client(server, errlog=sys.stderr)) as client:
        for question in questions:
            result = await client.call_tool("retrieve", {"query": question, "topK": 1}, meta=conversation)
            found = result.structured_content or {}
            sys.stdout.write("\n".join(lines(question, found)) + "\n")


def lines(question: str, found: dict[str, Any]) -> list[str]:
    told = found["metrics"]
    also = [f"   (also looking for: {', '.join(told['enrichedWith'])})"] if told["enriched"] else []
    places = [f"   {context['documentId']}, {context['heading']}" for context in found["contexts"]]
    return [f"{told['queryCount']}. {question}", *also, *places]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:] or ["What is RAG?", "How does it work?"]))
