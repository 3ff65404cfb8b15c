"""The answer to an erasure."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from threadkeep.http.json_answer import JsonAnswer
from threadkeep.http.problem import Problem
from threadkeep.model import ErasureProof


def proven(request: Request, proof: ErasureProof) -> Response:
    """200 means that all of it is gone."""
    if proof.complete:
        return JsonAnswer(proof.as_dict())
    detail = "not everything could be removed yet; what was removed stays removed"
    extra = {"proof": proof.as_dict()}
    problem = Problem(503, "erase_incomplete", detail, fix="send the same request again", retryable=True, extra=extra)
    return problem.answer(request.scope)
