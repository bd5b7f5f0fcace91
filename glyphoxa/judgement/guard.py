"""The safety of what an NPC says aloud, whatever its model.

Models begin with their own name as in a script, describe what they do, write markdown, spell out tool calls, fall out
of the role, recite what the DM directed them to do, make up results of dice, or tell what they are to keep. No player
hears any of it.

`SafetyFilter` cleans a reply piece by piece (see `glyphoxa.language.sentences`). What spans several pieces, such as a
tool call or a stage direction, is remembered until it ends. The other functions judge one sentence beside what it
answers. The words are data: see `glyphoxa/language/data/en/reply.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from glyphoxa.domain.turn import Asked, Character, Fault, Verdict
from glyphoxa.language.content import content_words, denies, spoken_words, straight
from glyphoxa.language.lexicon import lexicon

Rule = Callable[[str, Character, Asked], Fault | None]
"""On one piece of a reply: a sentence, or the first clause of the first one. `Asked.so_far` holds the pieces said."""

_WORDS: Final = lexicon("reply")
_OUT_OF_CHARACTER: Final = _WORDS.pattern("out_of_character", flags=re.IGNORECASE)
_OWN_LABELS: Final = _WORDS.words("own_labels")
_OTHER_LABELS: Final = _WORDS.words("other_labels")
_PROMPT_LABEL: Final = _WORDS.pattern("prompt_labels", flags=re.IGNORECASE)
_SAYS: Final = _WORDS.compile(" {says}(?: {to} .*)?$")

_LABEL: Final = re.compile(r"^[\s\"“*_#>]*([^\W_][^:.,!?\n\"]{0,40}?)[*_\"”]*\s*:[*_]*(?!\d)\s*")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>\n]*>|<\|[^<>\n]*\|>")
_CALL: Final = re.compile(r"\b[a-z]+(?:_[a-z]+)+\([^()\n]*\)")
_LINK: Final = re.compile(r"!?\[([^\]\n]+)\]\([^()\s]+\)")
_EMPHASIS: Final = re.compile(r"\*\*([^*\n]+)\*\*|(?<!\w)__([^_\n]+)__(?!\w)|~~([^~\n]+)~~|(?<!`)`([^`\n]+)`(?!`)")
_UNDERLINED: Final = re.compile(r"(?<!\w)_([^_\n]+)_(?!\w)")
# One or two words within a sentence are stressed, not acted, unless they are a verb ("*sighs*", "*grinning*").
_STRESSED: Final = re.compile(r"(?<=\w )\*(?!\w+(?:s|ing)\b)(\w+(?: \w+)?)\*")
_HEAD: Final = re.compile(r"^\s*(?:#{1,6}\s+|[-*•]\s+|>\s+|\d{1,2}[.)]\s+(?=\S))")
_EMOTICON: Final = re.compile(r"(?<!\w)[:;=]['-]?[()DPp/|](?!\w)|<3\b")
_EMOJI: Final = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2190-\u21ff\u2b00-\u2bff\ufe0f\u200d\u20e3\U000e0020-\U000e007f]"
)
_SPEAKABLE: Final = re.compile(r"[^\W_]")
_BEFORE_PUNCTUATION: Final = re.compile(r"\s+([,.!?;:…])")
_OPENING: Final = re.compile(
    r"```|\*(?=\S)|[({\[]|<(?:think|thinking|tool_call|tool|function_call|function|json)\b[^<>]*>", re.IGNORECASE
)
_CLOSED_BY: Final = {"*": "*", "(": ")", "[": "]", "{": "}", "```": "```"}


@dataclass(slots=True)
class _Aside:
    """Something that is not speech and has not ended yet.

    Attributes:
        nests: What opens another one within it; empty if none can.
        patience: Pieces after which it is taken for a slip of the pen and ends.
    """

    closer: str
    nests: str
    depth: int
    patience: int


class SafetyFilter:
    """Cleans one reply of one NPC. Build a new one for every reply.

    Args:
        npc_name: The NPC that speaks: its label ("Grimjaw:") is removed.
        others: Names of those who do not: with a label of theirs the model has begun to write
            somebody else's lines, and nothing from there on is said.
    """

    def __init__(self, npc_name: str, *, others: Iterable[str] = ()) -> None:
        name = npc_name.casefold()
        self._own = {name, *name.split(), *_OWN_LABELS}
        self._others = {other.casefold() for other in others} - self._own
        self._others.update(_OTHER_LABELS)
        self._aside: _Aside | None = None
        self._is_over = False

    def judge(self, piece: str) -> Verdict:
        """Return what may be said of the next piece of the reply.

        Text without a slip comes back as it is, but for surrounding and repeated white space.
        """
        if _OUT_OF_CHARACTER.search(straight(piece)):
            return Verdict(fault=Fault.ASSISTANT)
        text = "" if self._is_over else self._without_asides(_plain(piece))
        lines = [said for line in text.splitlines() if (said := self._without_label(line))]
        said = _BEFORE_PUNCTUATION.sub(r"\1", " ".join(" ".join(lines).split()))
        if _SPEAKABLE.search(said):
            return Verdict(said)
        if self._is_over:
            return Verdict(fault=Fault.LABEL)
        return Verdict(fault=Fault.NOT_SPEECH) if _SPEAKABLE.search(piece) else Verdict()

    def _without_asides(self, text: str) -> str:
        spoken: list[str] = []
        if self._aside is not None:
            self._aside.patience -= 1
            if self._aside.patience < 0:
                self._aside = None
        while text:
            if self._aside is None:
                opening = _OPENING.search(text)
                if opening is None:
                    spoken.append(text)
                    break
                spoken.append(text[: opening.start()])
                self._aside = _aside(opening.group())
                text = text[opening.end() :]
            else:
                text = self._skipped(self._aside, text)
        return _TAG.sub("", "".join(spoken)).replace("*", "")

    def _skipped(self, aside: _Aside, text: str) -> str:
        """Return what follows the aside, if it ends in this text."""
        lowered = text.lower()
        at = 0
        while at < len(text):
            if lowered.startswith(aside.closer, at):
                aside.depth -= 1
                at += len(aside.closer)
                if aside.depth == 0:
                    self._aside = None
                    return text[at:]
            else:
                aside.depth += bool(aside.nests) and lowered.startswith(aside.nests, at)
                at += 1
        return ""

    def _without_label(self, line: str) -> str:
        if self._is_over:
            return ""
        found = _LABEL.match(line)
        if found is None:
            return line
        label = _SAYS.sub("", found.group(1).strip().casefold())
        if label in self._own:
            return line[found.end() :]
        if label in self._others:
            self._is_over = True
            return ""
        return "" if _PROMPT_LABEL.fullmatch(label) else line


def _plain(piece: str) -> str:
    """Remove markup whose words are meant to be said, and what has no sound."""
    if set("*_~`[<#>:;=(-•").isdisjoint(piece) and piece.isascii() and not piece.lstrip()[:1].isdigit():
        return piece
    piece = "\n".join(_HEAD.sub("", line) for line in piece.splitlines())
    piece = _EMOTICON.sub("", _EMOJI.sub("", _LINK.sub(r"\1", _CALL.sub("", piece))))
    piece = _EMPHASIS.sub(lambda found: next(group for group in found.groups() if group), piece)
    return _STRESSED.sub(r"\1", _UNDERLINED.sub(r"*\1*", piece))


def _aside(opening: str) -> _Aside:
    if opening in _CLOSED_BY:
        is_machine = opening in ("{", "```")
        nests = opening if opening in "({[" else ""
        return _Aside(_CLOSED_BY[opening], nests, depth=1, patience=50 if is_machine else 3)
    tag = re.sub(r"[^a-z_].*", "", opening[1:].lower())
    return _Aside(f"</{tag}>", "", depth=1, patience=200)


# Secrets. A sentence tells one where it says most of its words, says something of it that the question did not, or says
# yes to a question that asks for it. What the NPC said just before counts: a secret can be told in pieces. What it may
# tell everybody of itself and of where it is tells nothing by itself, and a sentence that denies tells nothing.

_MOST: Final = 0.6
"""Share of the secret's words that tells it, whatever else is said."""
_ABOUT_IT: Final = 0.4
"""Share of the sentence's words that makes it speak of the secret, if it says two of its words."""
_ONLY_IT: Final = 0.75
"""The same, if it says one."""
_ASKS_FOR_IT: Final = 2
"""Words of the secret in a question that guesses it."""
_ADMITS: Final = _WORDS.compile(r"{admits}\b", flags=re.IGNORECASE)
_PART: Final = re.compile(r"[^.!?…]+[.!?…]*")
"""Ends at every mark, also after an abbreviation: a denial must cover no word more than it has to."""
_JUST_BEFORE: Final = 2
"""Answers before this one in which a piece may have been told."""


def tells_a_secret(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence that tells a secret of the NPC's own, or admits one."""
    if not (character.guards_secrets and asked.kept and (stated := _stated(sentence))):
        return None
    public = content_words(" ".join((character.name, *character.aliases, asked.speaker_name)))
    said = _Said(
        content_words(stated) - public,
        before=content_words(_stated(" ".join((*(reply for _, reply in asked.before[-_JUST_BEFORE:]), asked.so_far)))),
        question=content_words(asked.question) - public,
        loose=content_words(" ".join(asked.identity)),
    )
    admits = _ADMITS.match(straight(stated)) is not None
    for secret in asked.kept:
        kept = content_words(secret) - public
        if _is_told(said, kept) or (admits and len(said.question & kept) >= _ASKS_FOR_IT):
            return Fault.SECRET
    return None


@dataclass(frozen=True, slots=True)
class _Said:
    """Words of a sentence, of what was said before it, of the question, and of what everybody may be told."""

    words: frozenset[str]
    before: frozenset[str]
    question: frozenset[str]
    loose: frozenset[str]


def _stated(text: str) -> str:
    """Return the parts that deny nothing: "No. It lies under the stairs." denies and tells."""
    return " ".join(each.strip() for each in _PART.findall(text) if not denies(each))


def _is_told(said: _Said, kept: frozenset[str]) -> bool:
    shared = said.words & kept
    if not shared - said.loose:
        return False
    in_pieces = shared | (said.before & kept if shared - said.before else frozenset())
    if len(in_pieces) >= max(2, _MOST * len(kept)):
        return True
    is_about_it = len(shared) >= (_ABOUT_IT if len(shared) > 1 else _ONLY_IT) * len(said.words)
    return bool(shared - said.question - said.loose) and is_about_it


# What the DM directs, and dice.

_DIRECTION_LABEL: Final = _WORDS.pattern("direction_label", flags=re.IGNORECASE)
_LEAST_RECITED: Final = 3
"""Words. What is shorter may well be a sentence of its own."""
_ROLLED: Final = _WORDS.pattern("roll", flags=re.IGNORECASE)
_LONG_AGO: Final = _WORDS.compile(r"\b{long_ago}\b", flags=re.IGNORECASE)


def recites_direction(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence that recites what the DM directed. The same in the NPC's own words passes."""
    if not asked.direction:
        return None
    direction = spoken_words(asked.direction)
    recited = f" {' '.join(direction)} " in f" {' '.join(spoken_words(sentence))} "
    is_recited = recited and len(direction) >= _LEAST_RECITED
    return Fault.OF_THE_PROMPT if is_recited or _DIRECTION_LABEL.search(sentence) else None


def claims_a_roll(sentence: str) -> bool:
    """Return whether a sentence claims a result of dice that are being rolled.

    What was rolled long ago is a story, and a sentence that offers or asks for a roll claims nothing.

    >>> claims_a_roll("I roll a 17, so I see it."), claims_a_roll("Years ago I rolled a six and won a mule.")
    (True, False)
    """
    return not sentence.rstrip().endswith("?") and bool(_ROLLED.search(sentence)) and not _LONG_AGO.search(sentence)


def made_up_rolls(has_rolled: Callable[[], bool]) -> Rule:
    """Return the rule of one reply that rejects results of dice that nobody rolled: the table plays by them.

    Args:
        has_rolled: Whether a tool has answered in this reply; asked when a sentence claims a result.
    """

    def rule(sentence: str, _character: Character, _asked: Asked) -> Fault | None:
        return Fault.DICE if claims_a_roll(sentence) and not has_rolled() else None

    return rule
