"""What an NPC has heard and said in this session, as the messages of its next prompt.

Appended to and cut in large steps, so that from turn to turn the prompt stays the same up to its tail and a prompt
cache keeps its worth. Otherwise changed only for better words, and for what the DM retracts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from glyphoxa.context.prompt import CHARS_PER_TOKEN, Message, Prompt
from glyphoxa.context.wording import said_line
from glyphoxa.domain.campaign import Npc, Scene
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.domain.knowledge import RecalledTalk, is_own_utterance
from glyphoxa.language.quoted import as_said, in_one_line
from glyphoxa.language.vocabulary import primary_language

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


# What an NPC said itself, in its own prompt.
#
# An NPC's words are what a language model made up: told to it as something it knows, they would be true the next
# evening. So they are no facts. They come back as what it said, and only to who asks what it said, told or promised.


_Talk = TypeVar("_Talk", bound=RecalledTalk)


def of_others(said: Iterable[_Talk], npc: NpcId) -> list[_Talk]:
    """Without what the NPC said itself."""
    return [one for one in said if not is_own_utterance(one, npc)]


def asks_what_it_said(question: str, *, language: str) -> bool:
    """Whether an NPC is asked about its own words ("What did you promise me?", "You said six crowns!").

    Not what others told it, not what it has to say now. False in a language that is not known here: its own words
    then stay out of its prompt.
    """
    asks = _ASKS.get(primary_language(language))
    return asks is not None and asks(_plain(question))


def looks_for_own_words(query: str, *, name: str, language: str) -> bool:
    """The same of what an NPC's model looks for by itself: "what I promised Hanna", "Korvald promised".

    Args:
        name: The NPC's; empty when it is not known.
    """
    own = _AS_YOU.get(primary_language(language))
    if own is None:
        return False
    text = _plain(query)
    if name:
        text = re.sub(rf"\b{re.escape(_plain(name))}\b", own.you, text)
    for said, instead in own.instead:
        text = said.sub(instead, text)
    return own.promise.search(text) is not None or asks_what_it_said(text, language=language)


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())


_OWN_WORDS_SAID: Final = (
    "said|told|promised|swore|vowed|agreed|mentioned|claimed|answered|replied|offered|warned|explained|admitted|denied"
    "|suggested|advised|asked|spoke|talked|assured|described|recommended|lied|confessed|insisted|quoted|taught"
)
_SAY: Final = (
    "say|tell|promise|swear|vow|agree|mention|claim|answer|reply|offer|warn|explain|admit|deny|suggest|advise|ask"
    "|speak|talk|assure|describe|recommend|lie|confess|insist|quote|mean"
)
_ADVERB: Final = r"(?:\w+ly|ever|never|not|just|once|already|also|always|even|first|last|yourself|two|both|all|then)"
_YOU_SAID: Final = re.compile(
    rf"(?:(\S+) )?\byou(?: have| had|'ve|'d)?(?: {_ADVERB}){{0,2}} (?:{_OWN_WORDS_SAID}|(?<=ve )sworn|(?<=had )sworn)\b"
)
_DONE_TO_YOU: Final = frozenset({"are", "was", "were", "aren't", "weren't", "be", "got", "get", "being"})
_EN: Final = re.compile(
    rf"\b(?:did|didn't) you(?: {_ADVERB}){{0,2}} (?:{_SAY})\b"
    r"|\bhave you(?: \w+)? sworn\b|\bwere you going to\b"
    r"|\byour (?:\w+ )?(?:promises?|words?|oaths?|vows?|offer|claim|warning|advice)\b"
    r"|\bwe(?: have| had|'ve|'d)?(?: \w+ly| once| already| last)?"
    r" (?:talked|spoke|spoken|said|agreed|discussed|settled)\b"
    r"|\bdid(?:n't)? we(?: \w+ly| once| not| ever)? (?:talk|speak|say|agree|discuss|settle)\b"
    r"|\bour (?:\w+ )?(?:talk|conversation|deal|bargain|agreement)\b"
    r"|\b(?:was|were|been) (?:said|promised|agreed|offered|discussed)\b"
)


def _asks_in_english(text: str) -> bool:
    is_said = any(match[1] not in _DONE_TO_YOU for match in _YOU_SAID.finditer(text))
    return is_said or _EN.search(text) is not None


_GESAGT: Final = (
    "gesagt|erzählt|versprochen|geschworen|erwähnt|behauptet|geantwortet|angeboten|gewarnt|erklärt|zugegeben|geraten"
    "|vorgeschlagen|zugesagt|berichtet|verraten|gemeint|genannt|gesprochen|geredet|vereinbart|ausgemacht|gefragt"
    "|beschrieben|gelogen"
)
_BESPROCHEN: Final = "gesprochen|geredet|vereinbart|ausgemacht|abgemacht|besprochen|verabredet|gesagt"
_CLAUSE: Final = r"[^,.;:?!]*"
_DE: Final = re.compile(
    rf"\b(?:hast|hattest) du\b{_CLAUSE}\b(?:{_GESAGT})\b|\bdu (?:hast|hattest)\b{_CLAUSE}\b(?:{_GESAGT})\b"
    rf"|\bdu\b{_CLAUSE}\b(?:{_GESAGT}) (?:hast|hattest)\b"
    rf"|\b(?:habt|hattet) ihr\b{_CLAUSE}\b(?:{_GESAGT})\b|\bihr (?:habt|hattet)\b{_CLAUSE}\b(?:{_GESAGT})\b"
    rf"|\bihr\b{_CLAUSE}\b(?:{_GESAGT}) (?:habt|hattet)\b"
    r"|\b(?:wolltest du|wolltet ihr|du \w+ wolltest)\b"
    r"|\b(?:sagtest|erzähltest|versprachst|meintest|erwähntest|behauptetest|schworst|nanntest)\b"
    r"|\b(?:sagtet|erzähltet|verspracht|meintet|erwähntet|behauptetet|schwort|nanntet)\b"
    r"|\b(?:dein|euer|deine|eure)[mnrs]{0,2} (?:versprechen|worte?|schwur|eid|angebot|zusage|behauptung|rat|warnung)\b"
    rf"|\b(?:haben|hatten) wir\b{_CLAUSE}\b(?:{_BESPROCHEN})\b|\bwir (?:haben|hatten)\b{_CLAUSE}\b(?:{_BESPROCHEN})\b"
    rf"|\bwir\b{_CLAUSE}\b(?:{_BESPROCHEN}) (?:haben|hatten)\b"
    r"|\bunsere?[mnrs]? (?:\w+ )?(?:abmachung|vereinbarung|gespräch|handel)\b"
    rf"|\bwurden?\b(?!{_CLAUSE}\b(?:dir|euch)\b){_CLAUSE}\b(?:gesagt|versprochen|{_BESPROCHEN})\b"
)


def _asks_in_german(text: str) -> bool:
    return _DE.search(text) is not None


_ASKS: Final[Mapping[str, Callable[[str], bool]]] = {"en": _asks_in_english, "de": _asks_in_german}


@dataclass(frozen=True, slots=True)
class _AsYou:
    """How who speaks of itself would be asked by another.

    Attributes:
        you: In place of its name.
        instead: What it says of itself, and what another would say; in this order.
        promise: What asks for it by itself.
    """

    you: str
    instead: tuple[tuple[re.Pattern[str], str], ...]
    promise: re.Pattern[str]


def _as_you(you: str, instead: Mapping[str, str], promise: str) -> _AsYou:
    patterns = tuple((re.compile(rf"\b(?:{said})\b"), other) for said, other in instead.items())
    return _AsYou(you, patterns, re.compile(rf"\b(?:{promise})\b"))


_AS_YOU: Final[Mapping[str, _AsYou]] = {
    "en": _as_you(
        "you", {"i": "you", "my": "your", "you has": "you have"}, "promised?|promises|agreed|agreement|oath|vow"
    ),
    "de": _as_you(
        "du",
        {
            "ich": "du",
            "habe": "hast",
            "hatte": "hattest",
            "mein(e[mnrs]?)?": "dein",
            "du hat": "du hast",
            "hat du": "hast du",
        },
        "versprechen|versprochen|vereinbart|vereinbarung|abmachung|schwur|eid",
    ),
}
