"""What `/retrieval/query`, and `/query`, accept. It answers what the MCP tool `retrieve` answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from threadkeep.http.chat_schemas import Said
from threadkeep.http.fields import Body
from threadkeep.mcp.arguments import DEFAULT_TOP_K, MOST_TOP_K, whole

TopK = Annotated[int, Field(ge=1, le=MOST_TOP_K), BeforeValidator(whole)]


class RetrievalBody(Body):
    """Other fields are ignored, as the gateways do that this stands in for: no field of a body says who calls."""

    query: Said = Field(description="The question, in the user's own words")
    mode: Literal["retrieval_only"] = Field("retrieval_only", description="Passages are returned, no answer is written")
    topK: TopK = Field(DEFAULT_TOP_K, description="How many passages at most")
    useCache: bool = Field(True, description="Whether an answer to nearly the same question will do")

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={"examples": [{"query": "What is RAG?", "mode": "retrieval_only", "topK": 10}]},
    )


MODELS = (RetrievalBody,)
