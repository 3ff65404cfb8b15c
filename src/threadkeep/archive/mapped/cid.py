"""A content id as IPFS counts it: CIDv1, dag-json, sha2-256, base32. Computed here; nothing is sent anywhere."""

from __future__ import annotations

import base64
import hashlib
import json

from threadkeep.ports.turns import TurnRecord

_CID_V1_DAG_JSON_SHA256 = bytes((0x01, 0xA9, 0x02, 0x12, 0x20))


def canonical(record: TurnRecord) -> bytes:
    """What the id is of: the turn without its text, which the tokens stand for."""
    kept = {
        "conversation_id": record["conversation_id"],
        "user_id": record["user_id"],
        "reflection": record["reflection"],
        "token_data": {name: record["token_data"][name] for name in ("user", "assistant", "reflection")},
        "created_at": record["created_at"],
    }
    text = json.dumps(kept, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def cid_of(record: TurnRecord) -> str:
    digest = hashlib.sha256(canonical(record)).digest()
    return "b" + base64.b32encode(_CID_V1_DAG_JSON_SHA256 + digest).decode().lower().rstrip("=")
