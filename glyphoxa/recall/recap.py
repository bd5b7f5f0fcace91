"""Questions for what happened, or for its order ("what happened last session", "what came first"): answered by sessions
in their order and not by likeness, for no turn says what order things were in.

A session is told by its summary. Where none is written its most telling turns stand for it, one from each stretch of
the session, so that its beginning and its end are both in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy import float32, int64
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.domain.knowledge import RecalledSummary, RecalledTalk, RecalledUtterance, Signal
from glyphoxa.language.sentences import first_sentences
from glyphoxa.recall.ranking import Ranked
from glyphoxa.recall.signals import (
    Fit,
    PastSession,
    TurnTimes,
    anchors_of,
    current_session,
    fit_in_time,
    sessions_of,
    turns_of,
)
from glyphoxa.recall.talk_index import TalkIndex, ViewSnapshot
from glyphoxa.recall.terms import RecallQuestion
from glyphoxa.recall.time_reader import SessionReference, TimeAsk
from glyphoxa.transcript.ports import SessionSummaries

MOST_SESSIONS: Final = 8
"""Whose summaries are read for one question."""
LEAST_TOKENS: Final = 40
"""A session that gets less than that is left out: nothing can be told in it."""
_TOKENS_PER_LINE: Final = 40
_SAID_CHARACTERS: Final = 7
"""Of what a prompt has between who speaks and the words."""
_OWN_NAME_CHARACTERS: Final = 3
_TURN_TOKENS: Final = 30
_IN_SCOPE: Final = 0.5
_LEAST_FIT: Final = 0.25
_TRIED: Final = 3
"""Of a stretch, until one is short enough."""
_ROUNDING: Final = 1e-6
_TOKEN_CHARACTERS: Final = 4
_LAST_SESSION: Final = SessionReference("session", back=1)


def asks_for_recap(question: RecallQuestion) -> bool:
    return question.time.asks_for_recap or question.time.asks_for_order


class Recaps:
    """
    Args:
        summaries: None: the most telling turns of a session stand for it.
        deadline_ms: For the summaries of one question.
    """

    def __init__(self, summaries: SessionSummaries | None, *, deadline_ms: int) -> None:
        self._summaries = summaries
        self._deadline_ms = deadline_ms

    async def before(
        self,
        items: list[RecalledTalk],
        ranked: Ranked,
        campaign: CampaignId,
        npc: NpcId,
        *,
        left_out: list[str],
    ) -> list[RecalledTalk]:
        """Where a recap is asked for, what happened comes first, and what is like the question fills up.

        Args:
            items: What is like the question, best first.
            left_out: What had no say is added here.
        """
        if not asks_for_recap(ranked.question):
            return items
        happened = recap(ranked, await self._read(ranked, campaign, npc, left_out))
        happened = [one for one in happened if ranked.query.between.holds(one.at_ms)]  # a summary is no turn
        # Each where it stands first. A turn is the same one whether all of it is told or its beginning.
        found: dict[tuple[str, str], RecalledTalk] = {}
        for one in [*happened, *items]:
            found.setdefault((one.source, one.utterance_id if isinstance(one, RecalledUtterance) else one.text), one)
        return list(found.values())[: ranked.query.limit]

    async def _read(
        self, ranked: Ranked, campaign: CampaignId, npc: NpcId, left_out: list[str]
    ) -> dict[SessionId, str]:
        found: dict[SessionId, str] = {}
        if self._summaries is None:
            return found
        try:
            async with asyncio.timeout(self._deadline_ms / 1000):
                for session in _sessions_in_question(ranked.index, ranked.seen, ranked.fit):
                    summary = await self._summaries.summary(campaign, npc, session)
                    if summary is not None:
                        found[session] = summary
        except (TimeoutError, GlyphoxaError) as error:
            left_out.append(f"summaries: {str(error) or 'they took too long'}")
        return found


def recap(ranked: Ranked, summaries: Mapping[SessionId, str]) -> list[RecalledTalk]:
    """What happened, in its order; empty if nothing can be told.

    Args:
        summaries: As the viewer may know them.
    """
    question, index, viewer, seen = ranked.question, ranked.index, ranked.viewer, ranked.seen
    worth, lines = ranked.ranking.scores, ranked.query.limit

    def text_of(at: int) -> str:
        return ranked.recalled(at).text if ranked.may_be_told[at] and not ranked.is_the_question(at) else ""

    def lead_of(at: int) -> int:
        said = index.said(int(seen.columns.rows[at]))
        name = _OWN_NAME_CHARACTERS if str(said.speaker_id) == viewer else len(said.speaker_name)
        return name + _SAID_CHARACTERS

    sessions = sessions_of(question, index, seen, summaries)
    anchors = anchors_of(question, index, viewer, seen)
    talk = RankedTalk(turns_of(question, seen), worth - worth.min(initial=0.0), text_of, lead_of, anchors)
    current = current_session(sessions, now_ms=question.now_ms)
    ids = [index.said(int(seen.columns.rows[at])).session_id for at in seen.columns.starts]
    by_number = {past.number: session for past, session in zip(sessions, ids, strict=True)}
    found: list[RecalledTalk] = []
    for piece in timeline_of(question.time, sessions, talk, current=current, budget_tokens=lines * _TOKENS_PER_LINE):
        session = by_number[piece.number]
        if piece.place is None:
            reason = f"summary of session {session}; {piece.reason}"
            found.append(RecalledSummary(session, piece.text, piece.at_ms, reason=reason))
        else:
            one = ranked.recalled(piece.place)
            reason = f"witnessed in session {one.session_id}; {piece.reason}"
            signals = {**one.signals, Signal.RECAP: 1.0}
            found.append(replace(one, text=piece.text, score=1.0, reason=reason, signals=signals))
    # Left out is what lies between: how it began and how it ended are what a recap is asked for.
    return (
        [found[at] for at in np.linspace(0, len(found) - 1, lines).round().astype(int)] if len(found) > lines else found
    )


def _sessions_in_question(index: TalkIndex, seen: ViewSnapshot, fit: Fit | None) -> list[SessionId]:
    """Those whose summaries may answer, at most eight: the ones that fit the time best, the latest among equals."""
    starts = seen.columns.starts
    if not len(starts):
        return []
    worth = np.ones(len(starts)) if fit is None else np.maximum.reduceat(fit.scores, starts)
    order = np.lexsort((-np.arange(len(starts)), -worth))[:MOST_SESSIONS]
    return [index.said(int(seen.columns.rows[starts[at]])).session_id for at in order]


# -- what is told of which session


@dataclass(frozen=True, slots=True)
class TimelinePiece:
    """
    Attributes:
        number: Of the session.
        at_ms: When it was said; of a summary, when its session began.
        place: Of the turn; None for a summary.
        reason: Why it is told: "asked about last session (session 11)".
    """

    number: int
    at_ms: int
    text: str
    place: int | None
    n_tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class RankedTalk:
    """What may be told.

    Attributes:
        worth: How telling each turn is for the question, any scale from 0; shape (n,). For a recap how rare its words
            are, summed up, does better than their number or how central they are.
        text_of: A turn's words; empty if it is not to be told.
        lead_of: How many characters stand in front of them in a prompt: who says it.
        anchors: As in `fit_in_time`.
    """

    turns: TurnTimes
    worth: NDArray[float32]
    text_of: Callable[[int], str]
    lead_of: Callable[[int], int] = lambda _: 0
    anchors: Sequence[int] = ()


def timeline_of(
    ask: TimeAsk,
    sessions: Sequence[PastSession],
    talk: RankedTalk,
    *,
    current: int | None,
    budget_tokens: int,
) -> list[TimelinePiece]:
    """The sessions that were asked about, in order, within the budget. Empty if the question asks for no recap and no
    order, if there is nothing to tell, or no room for it.

    Each session gets an equal share; what one leaves over goes to the next. If there are too many, those whose turns
    are worth most are told, of equals the latest. A recap without a time is one of the last session.

    Args:
        current: Number of the session that is played; None between sessions.
    """
    if not (ask.asks_for_recap or ask.asks_for_order) or not len(talk.turns):
        return []
    if not (ask.asks_for_order or ask.tells_a_time):
        ask = replace(ask, place=_LAST_SESSION, words="what happened")
    fit = fit_in_time(ask, sessions, talk.turns, current=current, anchors=talk.anchors)
    if fit is None and not ask.asks_for_order:
        return []  # what happened since something of which nobody spoke
    chosen = _chosen(fit, sessions, talk, most=budget_tokens // LEAST_TOKENS)
    reason = "asked about the order of things" if fit is None else fit.reason
    # Of a part of a session its summary does not tell.
    is_part = ask.place is not None and ask.place.part is not None
    told: list[TimelinePiece] = []
    left = budget_tokens
    for nth, index in enumerate(chosen):
        session, share = sessions[index], left // (len(chosen) - nth)
        text = "" if is_part else _cut(session.summary or "", share)
        if text:
            pieces = [TimelinePiece(session.number, session.first_ms, text, None, estimated_tokens(text), reason)]
        else:
            pieces = _telling(session, _meant(index, fit, talk.turns, part=is_part), talk, share, reason)
        left -= sum(piece.n_tokens for piece in pieces)
        told += pieces
    return told


def estimated_tokens(text: str) -> int:
    """About four characters a token."""
    return len(text) // _TOKEN_CHARACTERS + 1


def _chosen(fit: Fit | None, sessions: Sequence[PastSession], talk: RankedTalk, *, most: int) -> list[int]:
    """Sessions of which a turn fits at least half as well as the best one does; all if no time was told.

    What does not fit by itself is not told as if it did: nothing was said last year in a campaign that began in May.
    """
    there = talk.turns.sessions
    scope = there if fit is None else there[fit.scores >= max(_LEAST_FIT, _IN_SCOPE * float(fit.scores.max()))]
    best = {index: float(talk.worth[talk.turns.of_session(index)].max()) for index in np.unique(scope).tolist()}
    by_worth = sorted(best, key=lambda index: (best[index], sessions[index].number))
    return sorted(by_worth[max(0, len(best) - most) :], key=lambda index: (sessions[index].number, index))


def _cut(text: str, share: int, *, n_lead: int = 0) -> str:
    """The sentences that there is room for, from the first on, behind so many characters."""
    return first_sentences(text, share * _TOKEN_CHARACTERS - n_lead - 1)


def _meant(index: int, fit: Fit | None, turns: TurnTimes, *, part: bool) -> NDArray[int64]:
    of_session = turns.of_session(index)
    places = np.arange(of_session.start, of_session.stop)
    if fit is None:
        return places
    scores = fit.scores[places]
    return places[scores >= (scores.max() - _ROUNDING if part else _ROUNDING)]


def _telling(
    session: PastSession, places: NDArray[int64], talk: RankedTalk, share: int, reason: str
) -> list[TimelinePiece]:
    """The best turn of each of as many stretches as there is room for, of equals the first.

    No stretch takes the room of the next: of a long turn only its first sentences are told. On three episodes of CRD3,
    with 600 tokens, that touches 31 % of what their recaps tell; with whole turns it was 5 %.
    """
    told: list[TimelinePiece] = []
    n_stretches = min(len(places), max(1, share // _TURN_TOKENS))
    for nth, stretch in enumerate(np.array_split(places, n_stretches) if n_stretches else ()):
        room = share // (n_stretches - nth)
        for place in stretch[np.argsort(-talk.worth[stretch], kind="stable")][:_TRIED].tolist():
            n_lead = talk.lead_of(place)
            text = _cut(talk.text_of(place), room, n_lead=n_lead)
            if text:
                n_tokens = estimated_tokens(" " * n_lead + text)
                told.append(TimelinePiece(session.number, int(talk.turns.at_ms[place]), text, place, n_tokens, reason))
                share -= n_tokens
                break
    return told
