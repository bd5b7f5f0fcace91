"""Answer questions about events and their order ("what happened last session", "what came first").

They are answered by sessions in order, because no utterance states the order of events and similarity cannot find it. A
session's summary represents it. Without a summary, its most relevant turns do, one from each stretch, so that the
beginning and the end are both included.
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
from glyphoxa.recall.time_reader import SessionReference, TimeAsk
from glyphoxa.transcript.ports import SessionSummaries

MOST_SESSIONS: Final = 8
"""Read at most this many summaries for one question."""
LEAST_TOKENS: Final = 40
"""A session with less room than this is left out: it would contain nothing useful."""
_TOKENS_PER_LINE: Final = 40
_SAID_CHARACTERS: Final = 7
"""Characters in a prompt between the speaker and the words."""
_OWN_NAME_CHARACTERS: Final = 3
_TURN_TOKENS: Final = 30
_IN_SCOPE: Final = 0.5
_LEAST_FIT: Final = 0.25
_TRIED: Final = 3
"""Cut a stretch until one turn is short enough."""
_ROUNDING: Final = 1e-6
_TOKEN_CHARACTERS: Final = 4
_LAST_SESSION: Final = SessionReference("session", back=1)


class Recaps:
    """
    Args:
        summaries: None uses the most relevant turns of a session instead.
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
        """Put the events first if the question asks for a recap, then fill up with similar turns.

        Args:
            items: Turns similar to the question, best first.
            left_out: Receives what was not considered.
        """
        if not ranked.question.time.asks_for_events:
            return items
        happened = recap(ranked, await self._read(ranked, campaign, npc, left_out))
        happened = [one for one in happened if ranked.query.between.holds(one.at_ms)]  # a summary is not a turn
        # Keep the first occurrence of each. A turn counts as the same whether it is complete or cut.
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
    """Return the events in order; empty if there are none.

    Args:
        summaries: Those that the viewer may know.
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
    # The middle is left out: a recap needs the beginning and the end.
    return (
        [found[at] for at in np.linspace(0, len(found) - 1, lines).round().astype(int)] if len(found) > lines else found
    )


def _sessions_in_question(index: TalkIndex, seen: ViewSnapshot, fit: Fit | None) -> list[SessionId]:
    """Return at most eight sessions whose summaries may answer: the best fit in time, the latest among equals."""
    starts = seen.columns.starts
    if not len(starts):
        return []
    worth = np.ones(len(starts)) if fit is None else np.maximum.reduceat(fit.scores, starts)
    order = np.lexsort((-np.arange(len(starts)), -worth))[:MOST_SESSIONS]
    return [index.said(int(seen.columns.rows[starts[at]])).session_id for at in order]


# -- which parts of which session


@dataclass(frozen=True, slots=True)
class TimelinePiece:
    """
    Attributes:
        number: The session's number.
        at_ms: Time of the turn; for a summary, the start of its session.
        place: Place of the turn; None for a summary.
        reason: Why it is included: "asked about last session (session 11)".
    """

    number: int
    at_ms: int
    text: str
    place: int | None
    n_tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class RankedTalk:
    """The material of a recap.

    Attributes:
        worth: How much each turn helps to answer the question, any scale from 0; shape (n,). For a recap, the summed
            rarity of its words works better than their number or their centrality.
        text_of: Returns a turn's words; empty if it must not be included.
        lead_of: Returns the number of characters before the words in a prompt, which name the speaker.
        anchors: See `fit_in_time`.
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
    """Return the sessions that were asked about, in order, within the budget.

    Empty if the question asks for no recap and no order, or if there is nothing to include or no room. Each session
    gets an equal share and passes what it does not use to the next. If there are too many sessions, those with the
    highest worth are included, and of equals the latest. A recap without a time means the last session.

    Args:
        current: Number of the session being played; None between sessions.
    """
    if not ask.asks_for_events or not len(talk.turns):
        return []
    if not ("order" in ask.asks or ask.tells_a_time):
        ask = replace(ask, place=_LAST_SESSION, words="what happened")
    fit = fit_in_time(ask, sessions, talk.turns, current=current, anchors=talk.anchors)
    if fit is None and "order" not in ask.asks:
        return []  # events since something that nobody mentioned
    chosen = _chosen(fit, sessions, talk, most=budget_tokens // LEAST_TOKENS)
    reason = "asked about the order of events" if fit is None else fit.reason
    # A summary describes a whole session, so it cannot describe a part of one.
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
    """A token is about four characters."""
    return len(text) // _TOKEN_CHARACTERS + 1


def _chosen(fit: Fit | None, sessions: Sequence[PastSession], talk: RankedTalk, *, most: int) -> list[int]:
    """Return sessions with a turn that fits at least half as well as the best; all if the question contains no time.

    A turn that does not fit is not presented as if it did: nothing was said last year in a campaign that began in May.
    """
    there = talk.turns.sessions
    scope = there if fit is None else there[fit.scores >= max(_LEAST_FIT, _IN_SCOPE * float(fit.scores.max()))]
    best = {index: float(talk.worth[talk.turns.of_session(index)].max()) for index in np.unique(scope).tolist()}
    by_worth = sorted(best, key=lambda index: (best[index], sessions[index].number))
    return sorted(by_worth[max(0, len(best) - most) :], key=lambda index: (sessions[index].number, index))


def _cut(text: str, share: int, *, n_lead: int = 0) -> str:
    """Return the first sentences that fit after that many characters."""
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
    """Return the best turn of as many stretches as fit, of equals the first.

    A stretch takes no room from the next: a long turn is cut to its first sentences. On three episodes of CRD3 with 600
    tokens, the result touches 31 % of what their recaps contain; with whole turns it was 5 %.
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
