"""Decide what of a running session is summarised when, for one view: the DM, or an NPC.

    lines, oldest first    ... | older lines | the hot window |
                                 ▲ due: a summary covers them, and then they may leave a prompt

The older lines are due

- every `interval` rounds, a round being a player's words and the answer;
- at once after an event, such as a decision or another place;
- when the lines exceed three quarters of their budget. Then at least the oldest half is due, hot or not.

The hot window is five minutes of speech, or four rounds of typed text. All lines are in the log or on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.domain.session_state import SessionState, SummarySentence
from glyphoxa.prompt.prompt import n_too_old, tokens_of
from glyphoxa.prompt.wording import said_line

INTERVAL: Final = 4
THRESHOLD: Final = 0.75
"""Share of the budget for lines. The summary may take the rest."""
_HOT_ROUNDS: Final = 4
_HOT_MS: Final = 5 * 60_000


def rounds_in(lines: Sequence[Utterance]) -> int:
    """Count the players' words that an NPC answered."""
    return sum(one.npc_id is None and other.npc_id is not None for one, other in pairwise(lines))


@dataclass(slots=True)
class RollingSummary:
    """One view's memory of a running session. No clock, task or socket.

    Args:
        window_tokens: Budget of the lines and their summary.
        interval: See above.

    Attributes:
        summary: In order. No line is both in it and in `lines`.
        lines: Not summarised yet, oldest first.
        last_ordinal: Last ordinal of the stored state that this one continues.
        covered_to: The last summarised line; None: none since the session was opened.
        is_stored: Whether the stored state is up to date.
    """

    window_tokens: int
    interval: int = INTERVAL
    summary: tuple[SummarySentence, ...] = ()
    lines: list[Utterance] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    last_ordinal: int = 0
    covered_to: UtteranceId | None = None
    is_stored: bool = True

    def restore(self, state: SessionState, lines: Sequence[Utterance]) -> None:
        """Continue a session after a restart.

        Args:
            state: The stored state.
            lines: All lines after it.
        """
        self.summary, self.last_ordinal, self.flags = state.summary, state.last_ordinal, set(state.flags)
        self.lines = list(lines)

    def hear(self, utterance: Utterance) -> None:
        """Add a line."""
        if utterance.text:
            self.lines.append(utterance)

    def revise(self, utterance: Utterance) -> None:
        """Correct a line. A sentence that rests on it is removed."""
        if not self._drop_sentences(utterance.id):
            self.lines = [utterance if each.id == utterance.id else each for each in self.lines]

    def retract(self, utterance: UtteranceId) -> None:
        """Remove a line and the sentences that rest on it."""
        self._drop_sentences(utterance)
        self.lines = [each for each in self.lines if each.id != utterance]

    def due(self, *, at_once: bool = False) -> list[Utterance]:
        """Return the oldest lines, which a summary should cover now; empty if none.

        Args:
            at_once: After an event.
        """
        hot = self._hot_begins()
        if self._tokens(self.lines) > THRESHOLD * self.window_tokens:
            return self.lines[: max(hot, self._half())]
        return self.lines[:hot] if at_once or rounds_in(self.lines[:hot]) >= self.interval else []

    @property
    def is_over(self) -> bool:
        """Whether the lines exceed their whole budget, so that no model can be waited for."""
        return len(self.lines) > 1 and self._tokens(self.lines) > self.window_tokens

    def cover(self, summary: Sequence[SummarySentence], said: Sequence[Utterance]) -> None:
        """Replace summary and lines by a summary of both, without what was retracted or corrected meanwhile."""
        covered = {each.id for each in said}
        if not covered.intersection(each.id for each in self.lines):
            return
        here = {each.id for each in self.lines if each in said}
        self.summary = tuple(one for one in summary if one in self.summary or here.issuperset(one.evidence))
        self.lines = [each for each in self.lines if each.id not in covered]
        self.covered_to, self.is_stored = said[-1].id, False

    def adopt(self, stored: SessionState) -> None:
        """Continue a stored state that reaches further than this one knew, without saying anything twice."""
        known = {one.evidence for one in stored.summary}
        self.summary = (*stored.summary, *(one for one in self.summary if one.evidence not in known))
        self.last_ordinal = stored.last_ordinal

    def _drop_sentences(self, utterance: UtteranceId) -> bool:
        kept = tuple(one for one in self.summary if utterance not in one.evidence)
        is_changed = kept != self.summary
        self.summary = kept
        return is_changed

    def _hot_begins(self) -> int:
        """Return the number of lines before the hot window."""
        last = next((each for each in reversed(self.lines) if each.npc_id is None), None)
        if last is not None and last.duration_ms and not last.typed:
            since_ms = self.lines[-1].at_ms - _HOT_MS
            return next((at for at, each in enumerate(self.lines) if each.at_ms >= since_ms), 0)
        left, at = _HOT_ROUNDS, len(self.lines)
        while at > 0 and left:
            at -= 1
            begins = at == 0 or self.lines[at - 1].npc_id is not None
            left -= self.lines[at].npc_id is None and begins
        return at

    def _half(self) -> int:
        """Return the number of oldest lines after which at most half of the tokens, or one line, are left."""
        sizes = [self._tokens([line]) for line in self.lines]
        return min(n_too_old(sizes, sum(sizes) / 2), len(sizes) - 1)

    def _tokens(self, lines: Sequence[Utterance]) -> int:
        return sum(tokens_of(said_line(each.speaker_name, each.text)) for each in lines)
