"""Hold what an NPC has heard and said in this session, as the messages of its next prompt.

Lines are appended. A line leaves only when a summary covers it (see `glyphoxa.prompt.rolling_summary`). Summaries
replace lines in large steps, so that most of the prompt stays the same from turn to turn and a prompt cache stays
valid. Other changes are corrections and the DM's retractions only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from glyphoxa.domain.campaign import Npc, Scene
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.domain.session_state import SummarySentence
from glyphoxa.judgement.safety import SafetyTopics
from glyphoxa.language.prompt_quotes import as_label, as_said, as_told, in_one_line
from glyphoxa.language.text import language_of
from glyphoxa.prompt.prompt import Message, Prompt, n_too_old, tokens_of
from glyphoxa.prompt.rolling_summary import THRESHOLD
from glyphoxa.prompt.wording import said_line, wording


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
    _words: frozenset[str] | None = None
    """The words for `holds`; None after a line has changed."""

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
                self._words = None
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

    def holds(self, words: str) -> bool:
        """Return whether a line of the next prompt has exactly these words."""
        if self._words is None:
            self._words = frozenset(line.words.casefold() for line in self._lines[self._held_back :])
        return words.casefold() in self._words

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
        self._words = None
        if self._tokens() > self.history_tokens:
            self.fold()
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
        self._summary = tuple(one for one in self._summary if utterance not in one.evidence)
        if self._next is not None:
            self._next = tuple(one for one in self._next if utterance not in one.evidence)
        return self._summary != before

    def _drop(self, line: int) -> None:
        del self._lines[line]
        self._held_back -= line < self._held_back
        self._words = None
        # If several scenes now precede the same line, it was said in the last of them.
        moved = {at - (at > line): scene for at, scene in self._scenes}
        self._scenes = list(moved.items())

    def _tokens(self) -> int:
        told = sum(tokens_of(message.content) for message in self._told())
        return told + sum(map(self._size, self._lines[self._held_back :]))

    def _size(self, line: _Line) -> int:
        return tokens_of(line.message.content)
