"""Conditions of SQLAlchemy statements on one owner or one conversation."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ScalarSelect, bindparam, select

from threadkeep.db.tables import conversations, owners
from threadkeep.scope import Scope

OWNED = owners.c.tenant == bindparam("of_tenant"), owners.c.user_id == bindparam("of_user")
UID: ScalarSelect[int] = select(owners.c.uid).where(*OWNED).scalar_subquery()
IN_SCOPE = conversations.c.uid == UID, conversations.c.conversation == bindparam("of_conversation")


def named(scope: Scope) -> dict[str, Any]:
    """Values for `OWNED` and, where the scope names a conversation, for `IN_SCOPE`."""
    values: dict[str, Any] = {"of_tenant": scope.tenant, "of_user": scope.user}
    return values if scope.conversation is None else values | {"of_conversation": scope.conversation}
