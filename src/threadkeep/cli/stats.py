"""`threadkeep stats`: how much is kept."""

from __future__ import annotations

from threadkeep.cli.options import Conversation, Json, Redis, Tenant, Url, User, existing_store, scope_or_all
from threadkeep.cli.output import print_json, print_pairs


def stats(
    tenant: Tenant = None,
    user: User = None,
    conversation: Conversation = None,
    url: Url = None,
    redis: Redis = None,
    json: Json = False,
) -> None:
    """Count what is kept of a conversation, a user or the whole store: messages, threads, sessions and items."""
    scope = scope_or_all(tenant, user, conversation)
    with existing_store(url, redis) as memory:
        counted = memory.stats(scope).as_dict()
        lag = memory.health().lag
    if lag is not None:
        counted["queued_appends"] = lag.entries  # of everybody
    if json:
        print_json(counted)
        return
    by_role, threads = counted.pop("by_role"), counted.pop("threads")
    counted["threads"] = threads.pop("count")
    if counted["threads"]:
        counted |= {f"{name.replace('_', ' ')} of threads": value for name, value in threads.items()}
    for model, used in counted.pop("usage", {}).items():
        told = f"{used['input_tokens']:,} in, {used['output_tokens']:,} out, {used['calls']:,} turns"
        counted[f"tokens of {model}"] = told
    print_pairs("Kept", counted | {f"messages by {role}": count for role, count in by_role.items()})
