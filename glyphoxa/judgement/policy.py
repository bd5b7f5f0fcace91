"""Derives what follows from the judgement of a turn. No judge is asked for any of this."""

from __future__ import annotations

from glyphoxa.domain.judgement import Mode, Risk, SafetyStatus, TurnJudgement


def safety_status(judgement: TurnJudgement) -> SafetyStatus:
    """Return `blocked` for a turn that is redirected or of high risk."""
    is_blocked = judgement.mode is Mode.SAFE_REDIRECT or judgement.risk is Risk.HIGH
    return "blocked" if is_blocked else "clear"


def review_required(judgement: TurnJudgement) -> bool:
    """Return whether the DM should look at the turn."""
    return judgement.risk is not Risk.LOW


def may_extract(judgement: TurnJudgement) -> bool:
    """Return whether facts may be learned from the turn: never from one that is redirected or about consent."""
    return judgement.extract_memory and judgement.mode is Mode.IN_WORLD_ANSWER
