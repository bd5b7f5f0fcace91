"""What of a model's output an NPC may say aloud.

Models slip: they begin with their own name as in a script, describe what they do, write markdown, repeat the
facts they were given, spell out tool calls, or fall out of the role. A player must hear none of it.

Pieces of a reply are cleaned one by one as they come (see `glyphoxa.speech.language.sentences`); a slip that spans
several pieces (a tool call, a stage direction, a line of facts) is remembered until it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from glyphoxa.domain.turn import Fault

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
