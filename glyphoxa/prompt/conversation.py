"""Hold what an NPC has heard and said in this session, as the messages of its next prompt.

Lines are appended. A line leaves only when a summary covers it (see `RollingSummary`). Summaries replace lines in large
steps, so that most of the prompt stays the same from turn to turn and a prompt cache stays valid. Other changes are
corrections and the DM's retractions only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from glyphoxa.domain.campaign import Npc, Scene
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.judgement.safety import SafetyTopics
from glyphoxa.language.prompt_quotes import as_label, as_said, as_told, in_one_line
from glyphoxa.language.sentences import n_too_old, tokens_of
from glyphoxa.language.text import language_of
from glyphoxa.prompt.prompt import Message, Prompt
from glyphoxa.prompt.wording import said_line, wording
from glyphoxa.transcript.sessions import SessionState, SummarySentence


def own_line(text: str) -> Message:
    """Return an NPC's own line for its prompt."""
    return Message("assistant", in_one_line(text))


def others_line(speaker_name: str, text: str, *, to: str = "") -> Message:
    """Return somebody else's line."""
    return Message("user", said_line(speaker_name, text, to=to))


@dataclass(frozen=True, slots=True)
class _Line:
    """
    Attributes:
        words: The spoken words; the message may quote them.
    """

    utterance_id: UtteranceId
    message: Message
    words: str

    def revised(self, was: Utterance, now: Utterance) -> _Line:
        """Return the line with corrected words and speaker; the same object if it does not end in the old words."""
        if not was.text or not self.words.endswith(was.text):
            return self
        words, is_own = self.words.removesuffix(was.text) + now.text, self.message.role == "assistant"
        before, after = (in_one_line(each) if is_own else as_said(each) for each in (self.words, words))
        content = self.message.content.removesuffix(before) + after
        if was.speaker_name != now.speaker_name:
            content = as_label(now.speaker_name) + content.removeprefix(as_label(was.speaker_name))
        return _Line(self.utterance_id, Message(self.message.role, content), words)


@dataclass(slots=True)
class Conversation:
    """One NPC's transcript of one session.

    Args:
        beginning: The messages before the transcript, see `glyphoxa.prompt.identity`.
        history_tokens: Budget of the transcript with its summary. If no summary comes in time, the oldest lines are
            held back until one does; never the newest line.
        language: BCP 47 tag of the words before the summary.
        safety: Topics that enter neither the transcript nor a summary or question.
        unknown_speakers: Labels of speakers that are not the name of anybody.
    """

    npc: Npc
    beginning: tuple[Message, ...] = ()
    history_tokens: int = 500
    language: str = "en"
    safety: SafetyTopics = field(default_factory=SafetyTopics)
    unknown_speakers: Collection[str] = ()
    _summary: tuple[SummarySentence, ...] = ()
    """The summary in the prompt."""
    _next: tuple[SummarySentence, ...] | None = None
    """Covers `_leaving`, too; None if it is the same."""
    _leaving: set[UtteranceId] = field(default_factory=set)
    _lines: list[_Line] = field(default_factory=list)
    _held_back: int = 0
    """Number of oldest lines that are not in the prompt."""
    _scenes: list[tuple[int, Scene]] = field(default_factory=list)
    """Each with the number of lines before it."""

    def enter(self, scene: Scene) -> None:
        """Enter a scene; later lines belong to it."""
        self._scenes = [*((at, left) for at, left in self._scenes if at < len(self._lines)), (len(self._lines), scene)]

    def hear(self, utterance: Utterance, *, to: str = "") -> None:
        """Add somebody else's utterance, addressed to `to` if not to this NPC."""
        self._append(_Line(utterance.id, others_line(utterance.speaker_name, utterance.text, to=to), utterance.text))

    def spoke(self, utterance: Utterance) -> None:
        """Add the NPC's own utterance, as far as it was heard."""
        if utterance.text:
            self._append(_Line(utterance.id, own_line(utterance.text), utterance.text))

    def revise(self, was: Utterance, now: Utterance) -> bool:
        """Correct an utterance; return False if it is no longer in the transcript. What is told of it is removed.

        The prompt changes from that line on, so a cache must read it again: not for trifles.
        """
        if self.safety.forbids(now.text):
            return self.retract(now.id)
        self._untell(now.id)
        for at, line in enumerate(self._lines):
            if line.utterance_id == now.id and (revised := line.revised(was, now)) is not line:
                self._lines[at] = revised
                return True
        return False

    def retract(self, utterance_id: UtteranceId) -> bool:
        """Remove an utterance and its sentences in the summary; return False if there is none.

        A cache must read the prompt again.
        """
        is_told = self._untell(utterance_id)
        at = next((at for at, line in enumerate(self._lines) if line.utterance_id == utterance_id), None)
        if at is not None:
            self._drop(at)
        return is_told or at is not None

    def cover(self, summary: Sequence[SummarySentence], covered: Collection[UtteranceId]) -> None:
        """Take a summary of everything before the hot window. The prompt changes only with `fold`.

        Args:
            covered: The lines that the summary covers since the last one.
        """
        self._next = tuple(one for one in summary if not self.safety.forbids(one.text))
        self._leaving.update(covered)
        if self._tokens() > self.history_tokens:
            self.fold()

    def fold(self) -> bool:
        """Replace the covered lines by the summary; return False if there is none.

        A cache must read the prompt again.
        """
        if self._next is None:
            return False
        self._summary, self._next = self._next, None
        for at in reversed(range(len(self._lines))):
            if self._lines[at].utterance_id in self._leaving:
                self._drop(at)
        self._leaving.clear()
        self._hold_back()  # the summary may be longer than what it covers
        return True

    def fold_if_full(self) -> bool:
        """Do so if the lines take most of the budget: between turns, when a cache has time to read."""
        return sum(map(self._size, self._lines)) > THRESHOLD * self.history_tokens and self.fold()

    @property
    def utterance_ids(self) -> Sequence[UtteranceId]:
        """Return the lines of the next prompt, so that recall skips them."""
        return [line.utterance_id for line in self._lines[self._held_back :]]

    @property
    def summary(self) -> Sequence[SummarySentence]:
        """Return the sentences of the next prompt about what is no longer in it."""
        return self._summary

    @property
    def spoken(self) -> Sequence[str]:
        """Return the words of the lines of the next prompt."""
        return [line.words for line in self._lines[self._held_back :]]

    def said_beside(self, question: str) -> list[str]:
        """Return its lines, without those that are the question."""
        return [line.words for line in self._lines if line.words not in question]

    def heard_before(self, question: str) -> str:
        """Return the last words of somebody else that are not part of the question."""
        for line in reversed(self._lines):
            if line.message.role == "user" and line.words not in question:
                return line.words
        return ""

    def prompt(
        self,
        question: str,
        speaker_name: str,
        *,
        unless: Sequence[UtteranceId] = (),
        expecting: Message | None = None,
    ) -> Prompt:
        """Return the prompt for an answer to `question`.

        Sentences about a topic that must not come up are not in it. If nothing is left, the NPC is led to another topic
        than that of its last answer.

        Args:
            question: The words addressed to the NPC so far; may be empty while nobody speaks.
            speaker_name: The asker.
            unless: Lines to leave out: the question itself, if it is already in the transcript.
            expecting: A line that will have been said by then, see `own_line` and `others_line`.
        """
        kept = [at for at in range(self._held_back, len(self._lines)) if self._lines[at].utterance_id not in unless]
        history = [self._lines[at].message for at in kept]
        if expecting is not None and not self.safety.forbids(expecting.content):
            history.append(expecting)
        flags, direction = self.safety.flags(question), ""
        if flags:
            words = wording(language_of(question) or self.language)
            question = self.safety.allowed(question)
            away = words.redirect[len(self.utterance_ids) % len(words.redirect)]
            direction = words.veil if self.safety.flags(question) else "" if question else away
        before = (*self.beginning, *self._told())
        messages = (*before, *history, others_line(speaker_name, question))
        # A scene joins the first line in it that is not the NPC's own.
        scenes: dict[int, Scene] = {}
        for lines_before, scene in self._scenes:
            begins = len(before) + bisect_left(kept, lines_before)
            scenes[next(at for at in range(begins, len(messages)) if messages[at].role == "user")] = scene
        return Prompt(
            npc=self.npc.id,
            messages=messages,
            question=question,
            speaker_name="" if speaker_name in self.unknown_speakers else speaker_name,
            scenes=tuple(scenes.items()),
            n_examples=max(0, len(self.beginning) - 1),
            direction=direction,
            flags=flags,
            language=self.language,
        )

    def _append(self, line: _Line) -> None:
        if self.safety.forbids(line.words):
            return
        self._lines.append(line)
        if self._tokens() > self.history_tokens:
            self.fold()
        self._hold_back()

    def _hold_back(self) -> None:
        """Keep the oldest lines out of the prompt if it is too long, down to half of its budget."""
        if self._tokens() > self.history_tokens:
            # The newest line stays, however long it is, because it may be about to be answered.
            sizes = [*map(self._size, self._lines)]
            room = self.history_tokens // 2 + sum(sizes[self._held_back :]) - self._tokens()
            self._held_back = max(self._held_back, min(n_too_old(sizes, room), len(sizes) - 1))

    def _told(self) -> list[Message]:
        text = as_told(" ".join(one.text for one in self._summary))
        return [Message("user", f"{wording(self.language).so_far}{text}", is_synthetic=True)] if text else []

    def _untell(self, utterance: UtteranceId) -> bool:
        before = self._summary
        self._summary = _without(utterance, before)
        self._next = None if self._next is None else _without(utterance, self._next)
        return self._summary != before

    def _drop(self, line: int) -> None:
        del self._lines[line]
        self._held_back -= line < self._held_back
        # If several scenes now precede the same line, it was said in the last of them.
        moved = {at - (at > line): scene for at, scene in self._scenes}
        self._scenes = list(moved.items())

    def _tokens(self) -> int:
        told = sum(tokens_of(message.content) for message in self._told())
        return told + sum(map(self._size, self._lines[self._held_back :]))

    def _size(self, line: _Line) -> int:
        return tokens_of(line.message.content)


# Decide what of a running session is summarised when, for one view: the DM, or an NPC.
#
#     lines, oldest first    ... | older lines | the hot window |
#                                  ▲ due: a summary covers them, and then they may leave a prompt
#
# The older lines are due
#
# - every `interval` rounds, a round being a player's words and the answer;
# - at once after an event, such as a decision or another place;
# - when the lines exceed three quarters of their budget. Then at least the oldest half is due, hot or not.
#
# The hot window is five minutes of speech, or four rounds of typed text. All lines are in the log or on disk.


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
        before = self.summary
        self.summary = _without(utterance, before)
        return self.summary != before

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


def _without(utterance: UtteranceId, summary: Sequence[SummarySentence]) -> tuple[SummarySentence, ...]:
    """Return the sentences that do not rest on an utterance."""
    return tuple(one for one in summary if utterance not in one.evidence)
