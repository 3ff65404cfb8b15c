"""`app/tools/memory_tools.py` as the search bot's author wrote it, to hold ours against. Not a word of it is ours."""

# fmt: off
# ruff: noqa
import re
from typing import Any, Dict, List

PII_PATTERNS = [
    re.compile(r"[\w._%+-]+@[\w.-]+\.[A-Za-z]{2,}"),
    re.compile(r"\b\+?\d[\d .-]{7,}\b"),
]

def redact(text: str) -> str:
    if not text:
        return text
    redacted = text
    for pat in PII_PATTERNS:
        redacted = pat.sub("[REDACTED]", redacted)
    return redacted


def is_persistable_event(e: Dict[str, Any]) -> bool:
    kind = e.get('kind')
    modality = e.get('modality')
    channel = e.get('channel')
    if kind == 'UserMessage' and modality == 'text':
        return True
    if kind == 'UserMessage' and modality in ('voice', 'image'):
        return bool(e.get('summary'))
    if kind == 'ModelResponse' and channel == 'text':
        return True
    return False


def persist_memory_from_session(session) -> None:
    events: List[Dict[str, Any]] = [e for e in session.events if is_persistable_event(e)]
    record = {
        'sessionId': session.id,
        'user_messages': [redact(e.get('text', '')) for e in events if e.get('kind') == 'UserMessage' and e.get('text')],
        'user_media_summaries': [
            {
                'summary': redact(e.get('summary', '')),
                'modality': e.get('modality'),
                'meta': {k: e.get('meta', {}).get(k) for k in ['language', 'mime', 'durationMs', 'sha256']},
            }
            for e in events if e.get('kind') == 'UserMessage' and e.get('summary')
        ],
        'model_responses': [redact(e.get('text', '')) for e in events if e.get('kind') == 'ModelResponse'],
        'meta': {
            'startedAt': getattr(session, 'startedAt', None),
            'endedAt': getattr(session, 'endedAt', None),
            'locale': session.state.get('user.locale') if hasattr(session, 'state') else None,
            'intent': session.state.get('conversation.intentSummary') if hasattr(session, 'state') else None,
        },
    }
    # TODO: implement actual storage (DB/file/cloud). Placeholder:
    if hasattr(session, 'memory'):  # e.g., injected memory service
        session.memory.upsert(record)


def put_tool_cache(state, key: str, value: Any, ttl_seconds: int = 900) -> None:
    # Persist=false, ephemeral cache
    namespaced = f"tool.temp.{key}"
    state.set(namespaced, value, ttl=ttl_seconds, persist=False, ephemeral=True)
