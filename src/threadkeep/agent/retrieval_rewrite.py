"""A follow-up question rewritten by a language model so that it can be asked by itself."""

from __future__ import annotations

from collections.abc import Sequence

_QUERIES = 3
_CONTEXTS = 3
_CHARACTERS_TO_REWRITE = 150  # of each context
_CHARACTERS_TO_RERANK = 200
_LONGEST = 1_000

_PROMPT = """\
Given the conversation history and current query, rewrite the query to be more specific and contextual.

Previous queries:
{queries}

Recent context:
{contexts}

Current query: {query}

Rewritten query:"""

_ENRICHED = """\
Previous queries in this conversation:
{queries}

Recent retrieved context:
{contexts}

Current query: {query}"""


def rewriting_prompt(query: str, queries: Sequence[str], contexts: Sequence[str]) -> str:
    """`contexts` are those of the last query, best first."""
    return _PROMPT.format(
        queries=_lines(queries[-_QUERIES:]),
        contexts=_lines([f"{text[:_CHARACTERS_TO_REWRITE]}..." for text in contexts[:_CONTEXTS]]),
        query=query,
    )


def enriched_text(query: str, queries: Sequence[str], contexts: Sequence[str]) -> str:
    """The question with what the talk was about before it, as one text; `contexts` as above."""
    if not queries:
        return query
    return _ENRICHED.format(
        queries=_lines(queries[-_QUERIES:]),
        contexts=_lines([f"{text[:_CHARACTERS_TO_RERANK]}..." for text in contexts[:_CONTEXTS]]),
        query=query,
    )


def rewritten_query(answer: str, query: str) -> str:
    """What the model made of it, trimmed; the query itself where that is nothing, or a treatise."""
    text = answer.strip()
    return text if 0 < len(text) <= _LONGEST else query


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(text.split())}" for text in texts)
