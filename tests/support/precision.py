"""Records of PrecisionMemBench's files, invented."""

from __future__ import annotations

from typing import Any

_SCOPE = ["domain:boats"]


def belief(belief_id: str, name: str, *aliases: str, **other: Any) -> dict[str, Any]:
    return {
        "_id": belief_id,
        "user_id": "test-user",
        "type": "entity",
        "canonical_name": name,
        "aliases": list(aliases),
        "content": f"What is believed of {belief_id}.",
        "scope": _SCOPE,
        "epistemic_status": "active",
        "pinned": False,
        "last_reinforced_at": "2026-10-01T00:00:00Z",
        "resolved_at": None,
        "superseded_by": None,
    } | other


def case(case_id: str, query: str, expect: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {"caseId": case_id, "scope": _SCOPE, "query": query, "expect": expect} | other


def only(*ids: str) -> dict[str, Any]:
    """What is expected where nothing else is relevant."""
    return {"relevantBeliefs": {"shouldOnlyInclude": list(ids)}}
