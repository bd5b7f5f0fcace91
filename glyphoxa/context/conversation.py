"""What an NPC has heard and said in this session, as the messages of its next prompt.

Appended to and cut in large steps, so that from turn to turn the prompt stays the same up to its tail and a prompt
cache keeps its worth. Otherwise changed only for better words, and for what the DM retracts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from glyphoxa.context.prompt import CHARS_PER_TOKEN, Message, Prompt
from glyphoxa.context.wording import said_line
from glyphoxa.domain.campaign import Npc, Scene
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.domain.knowledge import RecalledTalk, is_own_utterance
from glyphoxa.language.quoted import as_said, in_one_line

_SAID = re.compile(r": ")
"""Behind one of these somebody's words begin."""


def own_line(text: str) -> Message:
    """What an NPC said, in its own prompt."""
    return Message("assistant", in_one_line(text))


def others_line(speaker_name: str, text: str, *, to: str = "") -> Message:
    """What somebody else said."""
    return Message("user", said_line(speaker_name, text, to=to))


@dataclass(frozen=True, slots=True)
class _Line:
    """
    Attributes:
        words: As they were said: in a message they may stand in quotes.
    """

    utterance_id: UtteranceId
    message: Message
    words: str

    def revised(self, *, was: str, now: str) -> _Line:
        """With better words; the same object where it does not end in `was`."""
        if not was or not self.words.endswith(was):
            return self
        words, is_own = self.words.removesuffix(was) + now, self.message.role == "assistant"
        before, after = (in_one_line(each) if is_own else as_said(each) for each in (self.words, words))
        content = self.message.content.removesuffix(before) + after
        return _Line(self.utterance_id, Message(self.message.role, content), words)


@dataclass(slots=True)
class Conversation:
    """One NPC's talk of one session.

    Args:
        beginning: What stands in front of all talk, see `glyphoxa.context.identity`.
        history_tokens: Budget of the talk so far. Above it the oldest half is cut, never the newest line; what is cut
            stays in the log, where recall finds it.
    """

    npc: Npc
    beginning: tuple[Message, ...] = ()
    history_tokens: int = 500
    _lines: list[_Line] = field(default_factory=list)
    _scenes: list[tuple[int, Scene]] = field(default_factory=list)
    """Each with the number of lines in front of it."""
    _words: frozenset[str] | None = None
    """What `holds` knows; None when a line has changed since."""

    def enter(self, scene: Scene) -> None:
        """What is said from now on is said there."""
        self._scenes = [*((at, left) for at, left in self._scenes if at < len(self._lines)), (len(self._lines), scene)]

    def hear(self, utterance: Utterance, *, to: str = "") -> None:
        """Somebody else said this in its presence, to `to` if not to it."""
        self._append(_Line(utterance.id, others_line(utterance.speaker_name, utterance.text, to=to), utterance.text))

    def spoke(self, utterance: Utterance) -> None:
        """It said this itself, as far as it was heard."""
        if utterance.text:
            self._append(_Line(utterance.id, own_line(utterance.text), utterance.text))

    def revise(self, utterance_id: UtteranceId, *, was: str, now: str) -> bool:
        """Put better words for something that was said; False when it is no longer in the talk.

        The prompt changes from that line on, so a cache of it has to be read anew: not for trifles.
        """
        for at, line in enumerate(self._lines):
            if line.utterance_id == utterance_id and (revised := line.revised(was=was, now=now)) is not line:
                self._lines[at] = revised
                self._words = None
                return True
        return False

    def retract(self, utterance_id: UtteranceId) -> bool:
        """It was never said; False when it is not in the talk. As with `revise`, a cache of the prompt is read anew."""
        at = next((at for at, line in enumerate(self._lines) if line.utterance_id == utterance_id), None)
        if at is not None:
            self._drop(at)
        return at is not None

    @property
    def utterance_ids(self) -> Sequence[UtteranceId]:
        """What the next prompt already holds and recall need not bring again."""
        return [line.utterance_id for line in self._lines]

    def holds(self, words: str) -> bool:
        """Whether somebody says just this in it."""
        if self._words is None:
            lines = [text.casefold() for line in self._lines for text in (line.message.content, line.words)]
            self._words = frozenset(line[at:] for line in lines for at in (0, *(m.end() for m in _SAID.finditer(line))))
        return words.casefold() in self._words

    def said_beside(self, question: str) -> list[str]:
        """Its lines, but for those that are the question."""
        return [line.words for line in self._lines if line.words not in question]

    def heard_before(self, question: str) -> str:
        """The last words of somebody else that are no part of the question; its own are no part of what it is asked."""
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
        """The prompt for an answer to `question`.

        Args:
            question: What was said to it, as far as it is known; may be empty while nobody speaks.
            speaker_name: Who says it.
            unless: Lines to leave out: the question itself, where it was already heard.
            expecting: A line that will have been said by then, see `own_line` and `others_line`.
        """
        kept = [at for at, line in enumerate(self._lines) if line.utterance_id not in unless]
        history = [self._lines[at].message for at in kept]
        if expecting is not None:
            history.append(expecting)
        messages = (*self.beginning, *history, others_line(speaker_name, question))
        # A scene is told by somebody else, so it joins the first line in it that is not the NPC's own.
        scenes: dict[int, Scene] = {}
        for lines_before, scene in self._scenes:
            begins = len(self.beginning) + bisect_left(kept, lines_before)
            scenes[next(at for at in range(begins, len(messages)) if messages[at].role == "user")] = scene
        return Prompt(
            npc=self.npc.id,
            messages=messages,
            question=question,
            speaker_name=speaker_name,
            scenes=tuple(scenes.items()),
            n_examples=max(0, len(self.beginning) - 1),
        )

    def _append(self, line: _Line) -> None:
        self._lines.append(line)
        self._words = None
        if self._tokens() > self.history_tokens:
            # The newest stays, however long it is: somebody may be about to answer it.
            while len(self._lines) > 1 and self._tokens() > self.history_tokens // 2:
                self._drop(0)

    def _drop(self, line: int) -> None:
        del self._lines[line]
        self._words = None
        # Where several scenes come to stand in front of the same line, it was said in the last of them.
        moved = {at - (at > line): scene for at, scene in self._scenes}
        self._scenes = list(moved.items())

    def _tokens(self) -> int:
        return sum(len(line.message.content) for line in self._lines) // CHARS_PER_TOKEN


# What an NPC said itself is made up by a language model: told to it as something it knows, it would be true the next
# evening. So it is no fact. It comes back as what the NPC said, and only to a question for that.


_Talk = TypeVar("_Talk", bound=RecalledTalk)


def of_others(said: Iterable[_Talk], npc: NpcId) -> list[_Talk]:
    """Without what the NPC said itself."""
    return [one for one in said if not is_own_utterance(one, npc)]
