"""Answer questions about events and their order ("what happened last session", "what came first").

They are answered by sessions in order, because no utterance states the order of events and similarity cannot find it. A
session's summary represents it. Without a summary, its most relevant turns do, one from each stretch, so that the
beginning and the end are both included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy import float32, int64
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.domain.knowledge import RecalledSummary, RecalledTalk, RecalledUtterance, Signal
from glyphoxa.language.sentences import CHARS_PER_TOKEN, first_sentences
from glyphoxa.recall.ranking import Ranked
from glyphoxa.recall.signals import Fit, TurnTimes
from glyphoxa.recall.time_reader import NO_TIME, TimeAsk

ReadSummaries = Callable[[CampaignId], Awaitable[Callable[[NpcId, SessionId], str | None]]]
LEAST_TOKENS: Final = 40
"""A session with less room than this is left out: it would contain nothing useful."""
_TOKENS_PER_LINE: Final = 40
_LEAD_CHARACTERS: Final = 16
"""Characters in a prompt before the words of a turn, which name the speaker."""
_TURN_TOKENS: Final = 30
_IN_SCOPE: Final = 0.5
_LEAST_FIT: Final = 0.25
_TRIED: Final = 3
"""Cut a stretch until one turn is short enough."""
_ROUNDING: Final = 1e-6


class Recaps:
    """
    Args:
        summaries: Brings a campaign's summaries up to date; returns what an NPC may know of a session's, None if there
            is none. Without it, the most relevant turns of a session are used instead.
        deadline_ms: For the summaries of one question.
    """

    def __init__(self, summaries: ReadSummaries | None, *, deadline_ms: int) -> None:
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
        talk, lines = _talk_of(ranked), ranked.query.limit
        budget_tokens = lines * _TOKENS_PER_LINE
        sessions = sessions_told(talk, most=budget_tokens // LEAST_TOKENS)
        first = ranked.seen.columns.rows[ranked.seen.columns.starts]
        ids = {nth: ranked.index.said(int(first[nth])).session_id for nth in sessions}
        summaries = await self._read(ids, campaign, npc, left_out)
        pieces = timeline_of(sessions, talk, summaries, budget_tokens=budget_tokens)
        happened = [_recalled(piece, ids[piece.session], ranked) for piece in pieces]
        # The middle is left out: a recap needs the beginning and the end.
        kept = np.linspace(0, len(happened) - 1, min(lines, len(happened))).round().astype(int)
        happened = [one for at in kept if ranked.query.admits((one := happened[at]).session_id, one.at_ms, _by(one))]
        # Keep the first occurrence of each. A turn counts as the same whether it is complete or cut.
        found: dict[tuple[str, str], RecalledTalk] = {}
        for one in [*happened, *items]:
            found.setdefault((one.source, one.utterance_id if isinstance(one, RecalledUtterance) else one.text), one)
        return list(found.values())[:lines]

    async def _read(
        self, ids: Mapping[int, SessionId], campaign: CampaignId, npc: NpcId, left_out: list[str]
    ) -> dict[int, str]:
        """Return the summaries that the viewer may know, by the place of their session in the view."""
        if self._summaries is None:
            return {}
        try:
            async with asyncio.timeout(self._deadline_ms / 1000):
                summary_of = await self._summaries(campaign)
        except (TimeoutError, GlyphoxaError) as error:
            left_out.append(f"summaries: {str(error) or 'they took too long'}")
            return {}
        return {nth: summary for nth, session in ids.items() if (summary := summary_of(npc, session)) is not None}


def _by(one: RecalledTalk) -> str:
    return one.speaker_name if isinstance(one, RecalledUtterance) else ""


def _talk_of(ranked: Ranked) -> RankedTalk:
    def text_of(at: int) -> str:
        return ranked.recalled(at).text if ranked.may_be_told[at] and not ranked.is_the_question(at) else ""

    columns, scores = ranked.seen.columns, ranked.ranking.scores
    turns, worth = TurnTimes(columns.at_ms, columns.sessions), scores - scores.min(initial=0.0)
    return RankedTalk(turns, worth, text_of, ranked.question.time, ranked.fit)


def _recalled(piece: TimelinePiece, session: SessionId, ranked: Ranked) -> RecalledTalk:
    why = "asked about the order of events" if ranked.fit is None else ranked.fit.reason
    if piece.place is None:
        at_ms = int(ranked.seen.columns.at_ms[ranked.seen.columns.starts[piece.session]])
        return RecalledSummary(session, piece.text, at_ms, reason=f"summary of session {session}; {why}")
    one = ranked.recalled(piece.place)
    reason, signals = f"witnessed in session {session}; {why}", {**one.signals, Signal.RECAP: 1.0}
    return replace(one, text=piece.text, score=1.0, reason=reason, signals=signals)


# -- which parts of which session


class TimelinePiece(NamedTuple):
    """A summary of a session, or a turn of it.

    Attributes:
        session: Place of the session in the view.
        place: Place of the turn; None for a summary.
    """

    session: int
    text: str
    place: int | None = None


@dataclass(frozen=True, slots=True)
class RankedTalk:
    """The material of a recap.

    Attributes:
        worth: How much each turn helps to answer the question, any scale from 0; shape (n,). For a recap, the summed
            rarity of its words works better than their number or their centrality.
        text_of: Returns a turn's words; empty if it must not be included.
        fit: How well each turn fits the time in the question; None if it contains none that was found.
    """

    turns: TurnTimes
    worth: NDArray[float32]
    text_of: Callable[[int], str]
    ask: TimeAsk = NO_TIME
    fit: Fit | None = None


def sessions_told(talk: RankedTalk, *, most: int) -> list[int]:
    """Return the sessions that were asked about, in order; empty if the question asks for no recap and no order.

    They have a turn that fits at least half as well as the best; without a time, all do. A turn that does not fit is
    not presented as if it did: nothing was said last year in a campaign that began in May. Of too many, those with the
    highest worth are included, and of equals the latest.
    """
    ask, fit = talk.ask, talk.fit
    if not ask.asks_for_events or (fit is None and "order" not in ask.asks):
        return []  # for example events since something that nobody mentioned
    there = talk.turns.sessions
    if fit is not None and len(there):
        there = there[fit.scores >= max(_LEAST_FIT, _IN_SCOPE * float(fit.scores.max()))]
    best = {nth: float(talk.worth[talk.turns.of_session(nth)].max()) for nth in np.unique(there).tolist()}
    by_worth = sorted(best, key=lambda nth: (best[nth], nth))
    return sorted(by_worth[max(0, len(best) - most) :])


def timeline_of(
    sessions: Sequence[int], talk: RankedTalk, summaries: Mapping[int, str], *, budget_tokens: int
) -> list[TimelinePiece]:
    """Return what represents each of these sessions, within the budget.

    Each session gets an equal share and passes what it does not use to the next.

    Args:
        sessions: See `sessions_told`.
        summaries: Texts, each under the place of its session.
    """
    # A summary describes a whole session, so it cannot describe a part of one.
    is_part = talk.ask.place is not None and talk.ask.place.part is not None
    told: list[TimelinePiece] = []
    left = budget_tokens
    for nth, session in enumerate(sessions):
        share = left // (len(sessions) - nth)
        text = "" if is_part else first_sentences(summaries.get(session, ""), share * CHARS_PER_TOKEN - 1)
        if text:
            pieces = [TimelinePiece(session, text)]
        else:
            places = _meant(talk.turns.of_session(session), talk.fit, part=is_part)
            pieces = [TimelinePiece(session, text, place) for place, text in _telling(places, talk, share)]
        left -= sum(estimated_tokens(piece.text, is_turn=piece.place is not None) for piece in pieces)
        told += pieces
    return told


def estimated_tokens(text: str, *, is_turn: bool = False) -> int:
    """Return the tokens of a summary, or of a turn with its speaker. A token is about four characters."""
    return (len(text) + _LEAD_CHARACTERS * is_turn) // CHARS_PER_TOKEN + 1


def _meant(of_session: slice, fit: Fit | None, *, part: bool) -> NDArray[int64]:
    places = np.arange(of_session.start, of_session.stop)
    if fit is None:
        return places
    scores = fit.scores[places]
    return places[scores >= (scores.max() - _ROUNDING if part else _ROUNDING)]


def _telling(places: NDArray[int64], talk: RankedTalk, share: int) -> Iterator[tuple[int, str]]:
    """Yield the best turn of as many stretches as fit, of equals the first.

    A stretch takes no room from the next: a long turn is cut to its first sentences. On three episodes of CRD3 with 600
    tokens, the result touches 31 % of what their recaps contain; with whole turns it was 5 %.
    """
    n_stretches = min(len(places), max(1, share // _TURN_TOKENS))
    for nth, stretch in enumerate(np.array_split(places, n_stretches) if n_stretches else ()):
        room = share // (n_stretches - nth) * CHARS_PER_TOKEN - _LEAD_CHARACTERS - 1
        best = stretch[np.argsort(-talk.worth[stretch], kind="stable")][:_TRIED].tolist()
        texts = ((place, first_sentences(talk.text_of(place), room)) for place in best)
        if (found := next((each for each in texts if each[1]), None)) is not None:
            yield found
            share -= estimated_tokens(found[1], is_turn=True)
