"""An NPC that tells what it keeps to itself.

Told is a secret where a sentence says most of its words, or says something of it that the question did not, or says
yes to a question that asks for it. What the NPC said just before counts: a secret can be told in pieces. What it may
tell everybody of itself and of where it is tells nothing by itself, and a sentence that denies tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import NEGATIONS, Asked, Character, content_words, words

# What of a model's output an NPC may say aloud.
#
# Models slip: they begin with their own name as in a script, describe what they do, write markdown, repeat the
# facts they were given, spell out tool calls, or fall out of the role. A player must hear none of it.
#
# Pieces of a reply are cleaned one by one as they come (see `glyphoxa.language.sentences`); a slip that spans
# several pieces (a tool call, a stage direction, a line of facts) is remembered until it ends.


_MACHINE = r"(?:ai|a\.i\.|artificial intelligence|(?:large )?language model|chat ?bot|virtual assistant|ai assistant)"
_MASCHINE = r"(?:ki|künstliche intelligenz|sprachmodell|ki-\w+)"
_OUT_OF_CHARACTER = re.compile(
    rf"\bas an? {_MACHINE}\b"
    rf"|\b(?:i am|i['’]m) (?:just |only |merely )*an? {_MACHINE}\b"
    r"|\blarge language model\b|\bmy (?:training data|knowledge cutoff|system prompt)\b"
    r"|\b(?:openai|chatgpt|anthropic|alibaba cloud|qwen)\b"
    rf"|\bals (?:eine? )?{_MASCHINE}\b|\bich bin (?:nur |lediglich )?(?:eine? )?{_MASCHINE}\b"
    r"|\bhere(?: is|['’]s) (?:an?|my|the) (?:[\w-]+ )?(?:response|reply)\b|\b(?:stay|respond)(?:ing)? in character\b"
    r"|\bi (?:cannot|can['’]t|am unable to) (?:assist|help) (?:you )?with (?:that|this) request\b",
    re.IGNORECASE,
)
_ECHO = re.compile(
    r"(?:known )?facts?|what you know|memor(?:y|ies)|context|system|instructions?|rules?|scene|notes?|thoughts?|action"
    r"|remembered|erinnerung|observation|tool call|function call|tools?|fakten|tatsachen|hinweise?|szene",
    re.IGNORECASE,
)
_OWN_LABELS = ("npc", "assistant", "ai", "answer", "reply", "response", "character", "antwort")
_OTHER_LABELS = ("player", "user", "human", "dm", "gm", "game master", "dungeon master", "narrator", "you", "spieler")
_SAYS = re.compile(r" (?:says|said|replies|answers|sagt|sagte|antwortet)(?: to .*| zu .*)?$")
_LABEL = re.compile(r"^[\s\"“*_#>]*([^\W_][^:.,!?\n\"]{0,40}?)[*_\"”]*\s*:[*_]*(?!\d)\s*")

_TAG = re.compile(r"</?[A-Za-z][^<>\n]*>|<\|[^<>\n]*\|>")
_CALL = re.compile(r"\b[a-z]+(?:_[a-z]+)+\([^()\n]*\)")
_LINK = re.compile(r"!?\[([^\]\n]+)\]\([^()\s]+\)")
_EMPHASIS = re.compile(r"\*\*([^*\n]+)\*\*|(?<!\w)__([^_\n]+)__(?!\w)|~~([^~\n]+)~~|(?<!`)`([^`\n]+)`(?!`)")
_UNDERLINED = re.compile(r"(?<!\w)_([^_\n]+)_(?!\w)")
# One or two words within a sentence are stressed, not acted, unless they are a verb ("*sighs*", "*grinning*").
_STRESSED = re.compile(r"(?<=\w )\*(?!\w+(?:s|ing)\b)(\w+(?: \w+)?)\*")
_HEAD = re.compile(r"^\s*(?:#{1,6}\s+|[-*•]\s+|>\s+|\d{1,2}[.)]\s+(?=\S))")
_EMOTICON = re.compile(r"(?<!\w)[:;=]['-]?[()DPp/|](?!\w)|<3\b")
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2190-\u21ff\u2b00-\u2bff\ufe0f\u200d\u20e3\U000e0020-\U000e007f]"
)
_SPEAKABLE = re.compile(r"[^\W_]")
_BEFORE_PUNCTUATION = re.compile(r"\s+([,.!?;:…])")

_OPENING = re.compile(
    r"```|\*(?=\S)|[({\[]|<(?:think|thinking|tool_call|tool|function_call|function|json)\b[^<>]*>", re.IGNORECASE
)
_CLOSED_BY = {"*": "*", "(": ")", "[": "]", "{": "}", "```": "```"}


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

    def clean(self, piece: str) -> str | None:
        """What may be said of the next piece of the reply; None if nothing.

        Text without a slip comes back as it is, but for surrounding and repeated white space.
        """
        if self._is_over or _OUT_OF_CHARACTER.search(piece):
            return None
        text = self._without_asides(self._plain(piece))
        lines = [said for line in text.splitlines() if (said := self._without_label(line))]
        said = _BEFORE_PUNCTUATION.sub(r"\1", " ".join(" ".join(lines).split()))
        return said if _SPEAKABLE.search(said) else None

    def fault_of(self, piece: str) -> Fault | None:
        """Why `clean` left nothing of a piece; None where there was nothing in it."""
        if _OUT_OF_CHARACTER.search(piece):
            return Fault.ASSISTANT
        if self._is_over:
            return Fault.LABEL
        return Fault.NOT_SPEECH if _SPEAKABLE.search(piece) else None

    @staticmethod
    def _plain(piece: str) -> str:
        """Without markup whose words are meant to be said, and without what has no sound."""
        if not set("*_~`[<#>:;=(-•").isdisjoint(piece) or not piece.isascii() or piece.lstrip()[:1].isdigit():
            piece = "\n".join(_HEAD.sub("", line) for line in piece.splitlines())
            piece = _EMOTICON.sub("", _EMOJI.sub("", _LINK.sub(r"\1", _CALL.sub("", piece))))
            piece = _EMPHASIS.sub(lambda found: next(group for group in found.groups() if group), piece)
            piece = _STRESSED.sub(r"\1", _UNDERLINED.sub(r"*\1*", piece))
        return piece

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
        """What follows the aside, if it ends in this text."""
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
        label = found.group(1).strip().casefold()
        label = _SAYS.sub("", label)
        if label in self._own:
            return line[found.end() :]
        if label in self._others:
            self._is_over = True
            return ""
        return "" if _ECHO.fullmatch(label) else line


def _aside(opening: str) -> _Aside:
    if opening in _CLOSED_BY:
        is_machine = opening in ("{", "```")
        nests = opening if opening in "({[" else ""
        return _Aside(_CLOSED_BY[opening], nests, depth=1, patience=50 if is_machine else 3)
    tag = re.sub(r"[^a-z_].*", "", opening[1:].lower())
    return _Aside(f"</{tag}>", "", depth=1, patience=200)


_MOST: Final = 0.6
"""Of the secret's words: then it is told, whatever else is said."""
_ABOUT_IT: Final = 0.4
"""Of the sentence's words, if it says two of the secret: then that is what it speaks of."""
_ONLY_IT: Final = 0.75
"""The same, if it says one."""
_ASKS_FOR_IT: Final = 2
"""Words of the secret in a question that guesses it."""
_YES: Final = re.compile(
    r"(?:yes|aye|yea|yeah|indeed|true|i (?:do|did|have|am|was)(?=\W*$)|i did"
    r"|it was me|you(?: are|'re) right|that(?: is|'s) (?:true|right|so)|so it is"
    r"|ja|jawohl|stimmt|das stimmt|ich war es|das war ich|(?:da )?(?:hast du|haben sie) recht"
    r"|(?:du hast|sie haben) recht|so ist es)"
    r"\b",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[^.!?…]+[.!?…]*")
_JUST_BEFORE: Final = 2
"""Answers before this one in which a piece may have been told."""


def tells_a_secret(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if not character.guards_secrets or not asked.kept:
        return None
    public = content_words(" ".join((character.name, *character.aliases, asked.speaker_name)))
    if not (stated := _stated(sentence)):
        return None
    said = _Said(
        content_words(stated) - public,
        before=content_words(_stated(" ".join((*(reply for _, reply in asked.before[-_JUST_BEFORE:]), asked.so_far)))),
        question=content_words(asked.question) - public,
        loose=content_words(" ".join(asked.identity)),
    )
    for secret in asked.kept:
        kept = content_words(secret) - public
        if _is_told(said, kept) or _is_admitted(stated, kept, said.question):
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
    """Those of its sentences that deny nothing: "No. It lies under the stairs." denies and tells."""
    return " ".join(each.strip() for each in _SENTENCE.findall(text) if NEGATIONS.isdisjoint(words(each)))


def _is_told(said: _Said, kept: frozenset[str]) -> bool:
    shared = said.words & kept
    if not shared - said.loose:
        return False
    in_pieces = shared | (said.before & kept if shared - said.before else frozenset())
    if len(in_pieces) >= max(2, _MOST * len(kept)):
        return True
    is_about_it = len(shared) >= (_ABOUT_IT if len(shared) > 1 else _ONLY_IT) * len(said.words)
    return bool(shared - said.question - said.loose) and is_about_it


def _is_admitted(sentence: str, kept: frozenset[str], question: frozenset[str]) -> bool:
    return len(question & kept) >= _ASKS_FOR_IT and _YES.match(sentence) is not None
