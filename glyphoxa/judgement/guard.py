"""Filters what an NPC says aloud, for every model.

Models prefix their own name as in a script, describe actions, write markdown, spell out tool calls, break character,
recite the DM's directions, invent dice results and reveal secrets. None of it may reach the players.

`SafetyFilter` cleans a reply piece by piece (see `glyphoxa.language.sentences`) and tracks constructs that span pieces,
such as a tool call or a stage direction. The other functions judge one sentence together with the question that it
answers. The word lists are data: see `glyphoxa/language/data/en/reply.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from glyphoxa.chat.marks import TABLE
from glyphoxa.domain.turn import Asked, Character, Fault, Verdict
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.text import Text, content_of

Rule = Callable[[str, Character, Asked], Fault | None]
"""Judges one piece of a reply: a sentence, or the first clause. `Asked.so_far` holds the pieces said before."""

_WORDS: Final = lexicon("reply")
_OUT_OF_CHARACTER: Final = _WORDS.pattern("out_of_character", flags=re.IGNORECASE)
_OWN_LABELS: Final = _WORDS.words("own_labels")
_OTHER_LABELS: Final = _WORDS.words("other_labels")
_PROMPT_LABEL: Final = _WORDS.pattern("prompt_labels", flags=re.IGNORECASE)
_SAYS: Final = _WORDS.compile(" {says}(?: {to} .*)?$")

_LABEL: Final = re.compile(r"^[\s\"“*_#>]*([^\W_][^:.,!?\n\"]{0,40}?)[*_\"”]*\s*:[*_]*(?!\d)\s*")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>\n]*>|<\|[^<>\n]*\|>")
_LINK: Final = re.compile(r"!?\[([^\]\n]+)\]\([^()\s]+\)")
_EMPHASIS: Final = re.compile(r"\*\*([^*\n]+)\*\*|(?<!\w)__([^_\n]+)__(?!\w)|~~([^~\n]+)~~|(?<!`)`([^`\n]+)`(?!`)")
_UNDERLINED: Final = re.compile(r"(?<!\w)_([^_\n]+)_(?!\w)")
# One or two words within a sentence are emphasis, unless they are a verb ("*sighs*", "*grinning*").
_STRESSED: Final = re.compile(r"(?<=\w )\*(?!\w+(?:s|ing)\b)(\w+(?: \w+)?)\*")
_HEAD: Final = re.compile(r"^\s*(?:#{1,6}\s+|[-*•]\s+|>\s+|\d{1,2}[.)]\s+(?=\S))")
_EMOTICON: Final = re.compile(r"(?<!\w)[:;=]['-]?[()DPp/|](?!\w)|<3\b|(?<!\w):[a-z][a-z0-9_]+:(?!\w)")
_EMOJI: Final = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2190-\u21ff\u2b00-\u2bff\ufe0f\u200d\u20e3\U000e0020-\U000e007f]"
)
_SPEAKABLE: Final = re.compile(r"[^\W_]")
_BEFORE_PUNCTUATION: Final = re.compile(r"\s+([,.!?;:…])")
_OPENING: Final = TABLE.compile(
    r"```|\*(?=\S)|{call_names}|[({\[]|<(?P<element>{call_elements})\b[^<>]*(?<!/)>", flags=re.IGNORECASE
)
_CLOSED_BY: Final = {"*": "*", "(": ")", "[": "]", "{": "}", "```": "```"}


@dataclass(slots=True)
class _Aside:
    """An unfinished passage that is not speech.

    Attributes:
        nests: Opens a nested one; empty if it cannot nest.
        patience: Pieces after which it is assumed to be a missing closer and ends.
    """

    closer: str
    nests: str
    depth: int
    patience: int


class SafetyFilter:
    """Cleans one reply of one NPC. Create a new one for every reply.

    Args:
        npc_name: The NPC that speaks. Its label ("Grimjaw:") is removed.
        others: Names of other speakers. At a label of theirs the model has begun to write another character's lines,
            and the rest of the reply is dropped.
    """

    def __init__(self, npc_name: str, *, others: Iterable[str] = ()) -> None:
        name = npc_name.casefold()
        self._own = {name, *name.split(), *_OWN_LABELS}
        self._others = {other.casefold() for other in others} - self._own
        self._others.update(_OTHER_LABELS)
        self._aside: _Aside | None = None
        self._is_over = False

    def judge(self, piece: str) -> Verdict:
        """Return the part of the next piece that may be said.

        Clean text is returned unchanged, except for surrounding and repeated white space.
        """
        if _OUT_OF_CHARACTER.search(Text.of(piece).plain):
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
                self._aside = _aside(opening)
                text = text[opening.end() :]
            else:
                text = self._skipped(self._aside, text)
        return _TAG.sub("", "".join(spoken)).replace("*", "")

    def _skipped(self, aside: _Aside, text: str) -> str:
        """Return the text after the aside, if the aside ends in this text."""
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
    """Remove markup around spoken words, and characters without sound."""
    if set("*_~`[<#>:;=(-•").isdisjoint(piece) and piece.isascii() and not piece.lstrip()[:1].isdigit():
        return piece
    piece = "\n".join(_HEAD.sub("", line) for line in piece.splitlines())
    piece = _EMOTICON.sub("", _EMOJI.sub("", _LINK.sub(r"\1", piece)))
    piece = _EMPHASIS.sub(lambda found: next(group for group in found.groups() if group), piece)
    return _STRESSED.sub(r"\1", _UNDERLINED.sub(r"*\1*", piece))


def _aside(opening: re.Match[str]) -> _Aside:
    if opening["element"]:
        return _Aside(f"</{opening['element'].lower()}>", "", depth=1, patience=200)
    bracket = opening[0] if opening[0] in _CLOSED_BY else opening[0][-1]
    is_machine = bracket in ("{", "```") or len(opening[0]) > 1
    return _Aside(_CLOSED_BY[bracket], bracket if bracket in "({[" else "", depth=1, patience=50 if is_machine else 3)


# Secrets. A sentence reveals a secret if it contains most of its words, adds words of it that the question did not
# contain, or answers yes to a question that guesses it. The answers just before count too, because a secret can be
# revealed in pieces. Public facts about the NPC and its place reveal nothing, and neither does a denial.

_MOST: Final = 0.6
"""Share of the secret's words that reveals it."""
_ABOUT_IT: Final = 0.4
"""Share of the sentence's words that must belong to the secret, if the sentence contains two of them."""
_ONLY_IT: Final = 0.75
"""The same, if it contains one."""
_ASKS_FOR_IT: Final = 2
"""Words of the secret in a question that count as a guess."""
_ADMITS: Final = _WORDS.compile(r"{admits}\b", flags=re.IGNORECASE)
_PART: Final = re.compile(r"[^.!?…]+[.!?…]*")
"""Ends at every mark, including abbreviations, so that a denial covers as few words as possible."""
_JUST_BEFORE: Final = 2
"""Previous answers that may contain a piece of the secret."""


def reveals_secret(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence that reveals or confirms one of the NPC's secrets."""
    if not (character.guards_secrets and asked.kept and (stated := _stated(sentence))):
        return None
    public = content_of((character.name, *character.aliases, asked.speaker_name))
    said = _Said(
        Text.of(stated).content - public,
        before=content_of(map(_stated, (*(reply for _, reply in asked.before[-_JUST_BEFORE:]), asked.so_far))),
        question=Text.of(asked.question).content - public,
        loose=content_of(asked.identity),
    )
    admits = _ADMITS.match(Text.of(stated).plain) is not None
    for secret in asked.kept:
        kept = Text.of(secret).content - public
        if _is_revealed(said, kept) or (admits and len(said.question & kept) >= _ASKS_FOR_IT):
            return Fault.SECRET
    return None


@dataclass(frozen=True, slots=True)
class _Said:
    """Words of a sentence, of the answers before it, of the question, and of public facts."""

    words: frozenset[str]
    before: frozenset[str]
    question: frozenset[str]
    loose: frozenset[str]


def _stated(text: str) -> str:
    """Return the parts that are not denials: "No. It lies under the stairs." denies and reveals."""
    return " ".join(each.strip() for each in _PART.findall(text) if not Text.of(each).denies)


def _is_revealed(said: _Said, kept: frozenset[str]) -> bool:
    shared = said.words & kept
    if not shared - said.loose:
        return False
    in_pieces = shared | (said.before & kept if shared - said.before else frozenset())
    if len(in_pieces) >= max(2, _MOST * len(kept)):
        return True
    is_about_it = len(shared) >= (_ABOUT_IT if len(shared) > 1 else _ONLY_IT) * len(said.words)
    return bool(shared - said.question - said.loose) and is_about_it


# Directions of the DM, and dice.

_DIRECTION_LABEL: Final = _WORDS.pattern("direction_label", flags=re.IGNORECASE)
_MIN_RECITED: Final = 3
"""Minimum words. A shorter match may be the NPC's own sentence."""
_ROLLED: Final = _WORDS.pattern("roll", flags=re.IGNORECASE)
_LONG_AGO: Final = _WORDS.compile(r"\b{long_ago}\b", flags=re.IGNORECASE)


def recites_direction(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence that recites the DM's direction. A paraphrase passes."""
    if not asked.direction:
        return None
    direction = Text.of(asked.direction)
    is_recited = len(direction.spoken) >= _MIN_RECITED and Text.of(sentence).contains(direction)
    return Fault.OF_THE_PROMPT if is_recited or _DIRECTION_LABEL.search(sentence) else None


def claims_roll(sentence: str) -> bool:
    """Return whether a sentence claims the result of a current dice roll.

    A roll in a story about the past, or an offer or request to roll, is no claim.

    >>> claims_roll("I roll a 17, so I see it."), claims_roll("Years ago I rolled a six and won a mule.")
    (True, False)
    """
    return not sentence.rstrip().endswith("?") and bool(_ROLLED.search(sentence)) and not _LONG_AGO.search(sentence)


def invented_rolls(has_rolled: Callable[[], bool]) -> Rule:
    """Return a rule for one reply that rejects dice results without a roll.

    Args:
        has_rolled: Whether a tool has answered in this reply. Called when a sentence claims a result.
    """

    def rule(sentence: str, _character: Character, _asked: Asked) -> Fault | None:
        return Fault.DICE if claims_roll(sentence) and not has_rolled() else None

    return rule
