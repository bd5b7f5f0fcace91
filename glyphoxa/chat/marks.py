"""Marks of chat templates in messages and in answers: control tokens, reasoning, and where a reply ends.

Only the chat template may use markers like `<|im_start|>`. Servers read a whole chat as one text, which does not
distinguish markers of the template from words of the messages: a player who types "<|im_end|>" would end their message
and continue as the system. So every marker in a message is broken by a space first, and is read as plain text.

Some tokenizers normalise text (NFKC, without invisible characters), which can turn other words into markers. So markers
are searched in the normalised text, with look-alike bars and brackets as well; only the markers are changed.

In a streamed answer, the same marks separate its words from what models write before and after a reply:

- Reasoning is what stands between the marks of a form (`_TAGS`, `_PAIRS`, channels). It is never spoken.
- A closing mark without an opening one makes everything before it reasoning. Words that were already passed on are
  retracted.
- Ordinary text is passed on at once. Only text that may become a mark is held back, until the next characters decide.
- A reply whose first words are about the user (`reasoning_begins` in the word lists) is held until a closing mark, or
  to its end. So are replies of a model that has left out the opening mark before.
- A role, an exclamation, or an announcement ("assistant", "Sure!", "Here is my reply:") is removed if words follow.
- After words, the first mark of a chat template or a line that is only a role ends the reply: the model goes on with
  the next message. Before words, a mark is removed.
- A mark that begins a tool call becomes `CALL_NOTATION`, which is no speech, and ends the reply.

The table of marks is `marks.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from glyphoxa.language.language_data import Lexicon, lexicon
from glyphoxa.language.text import Text

TABLE: Final = Lexicon([tomllib.loads(Path(__file__).with_name("marks.toml").read_text("utf-8"))])
_GAP: Final = r"[ \t]*"
_LOOK_ALIKES: Final = {ord(other): usual for usual, others in TABLE.value("look_alikes").items() for other in others}
_ENDS: Final = sorted(TABLE.words("ends"), key=len, reverse=True)

ELSEWHERE: Final = (*_ENDS, *sorted(TABLE.words("enclosing")))
"""Markers of common templates, for a server whose vocabulary cannot be read."""
_SPACED_ENDS: Final = "|".join(_GAP.join(map(re.escape, re.findall(r"\w+|\W", marker))) for marker in _ENDS)
"""Pattern of the marks that end a reply, beside the families."""
_WIDE: Final = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {ord("∣"): "|"}
"""For `str.translate`: full-width characters, of which the marks of some models consist, to ASCII."""


class ControlTokens:
    """
    Args:
        markers: Marker texts beside the common families. A single character cannot be broken, and white space is
            harmless: both are ignored.
    """

    def __init__(self, markers: Iterable[str]) -> None:
        meant = {marker for marker in markers if len(_plain(marker)) > 1 and not marker.isspace()}
        self.markers = tuple(sorted(meant, key=lambda marker: (-len(marker), marker)))
        exact = (re.escape(_plain(marker)).replace("_", "[_▁]") for marker in self.markers)
        families = TABLE.words("call_families") | TABLE.words("end_families")
        self._any = TABLE.compile("|".join((*exact, *sorted(families))), flags=re.IGNORECASE, gap="")

    def broken(self, words: str) -> str:
        """Break every marker in the words, and change nothing else.

        >>> ControlTokens(["<|im_end|>"]).broken("Well<|im_end|> met.")
        'Well< |im_end|> met.'
        """
        if self._any.search(plain := _plain(words)) is None:
            return words
        places = [place for place, character in enumerate(words) for _ in _plain(character)]
        parts, done = [], 0
        for found in self._any.finditer(plain):
            parts += [words[done : places[found.start()]], f"{found[0][0]} {found[0][1:]}"]
            done = places[found.end() - 1] + 1
        words = "".join((*parts, words[done:]))
        while self._any.search(plain := _plain(words)):  # a marker formed by the remains of others
            words = self._any.sub("", plain)
        return words

    def in_messages(self, messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Apply `in_message` to a chat."""
        return [self.in_message(message) for message in messages]

    def in_message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Break markers in all texts of a chat message: content, tool results and tool arguments."""
        return {key: value if key == "role" else self._in(value) for key, value in message.items()}

    def _in(self, value: Any) -> Any:
        match value:
            case str():
                return self.broken(value)
            case Mapping():
                return {key: self._in(each) for key, each in value.items()}
            case list() | tuple():
                return [self._in(each) for each in value]
            case _:
                return value


_UNUSUAL: Final = re.compile(r"[^\x00-\x7f\xc0-\xff–—‘’“”„…]")


def _plain(words: str) -> str:
    """Return the text as a tokenizer may read it, with the characters that look like those of a mark."""
    return words if words.isascii() else _UNUSUAL.sub(lambda found: _as_read(found[0]), words)


@lru_cache(maxsize=4_096)
def _as_read(character: str) -> str:
    if unicodedata.category(character) == "Cf" or character == "\u034f" or "\ufe00" <= character <= "\ufe0f":
        return ""  # a tokenizer may drop format characters, joiners and variation selectors
    return unicodedata.normalize("NFKC", character).translate(_LOOK_ALIKES)


COMMON: Final = ControlTokens(ELSEWHERE)
"""For every request: any server may read marks anywhere in a message."""

# The words of a streamed answer.

_BARE_OPENERS: Final = ("analysis", "Analysis:", "Analysis\n", "**Analysis", "Here is my thought process:")
"""Count at the start of an answer only. The first is what remains of a channel whose control tokens were removed."""
_WORDS: Final = lexicon("reply")
_BEGINNINGS: Final = frozenset(" ".join(Text(phrase).spoken) for phrase in _WORDS.words("reasoning_begins"))
_ROLES: Final = _WORDS.words("reply_roles")
_AGREED: Final = frozenset(f"{phrase}{mark}" for phrase in _WORDS.words("reply_agrees") for mark in "!,.:—")
_PRESENTS: Final = frozenset(f"{phrase} " for phrase in _WORDS.words("reply_presents"))
_PRESENTED: Final = _WORDS.pattern("reply_presented", flags=re.IGNORECASE)

_OTHERS: Final = _WORDS.words("turn_roles")
_TURNS: Final = [_ROLES | _OTHERS, _WORDS.words("turn_headings"), _WORDS.words("turn_sections")]
_BEGUN: Final = {word[:n] for words in _TURNS for word in words for n in range(len(word) + 1)}
_MACROS: Final = {
    name: f"(?:{'|'.join(sorted(words, reverse=True))})"
    for name, words in zip(("role", "heading", "section", "begun"), (*_TURNS, _BEGUN), strict=True)
}


def _table(template: str) -> re.Pattern[str]:
    """Compile a pattern of the table of marks."""
    return TABLE.compile(
        template, flags=re.IGNORECASE, gap=_GAP, ends=_SPACED_ENDS, name=r"(?P<channel>\w*)", **_MACROS
    )


_END: Final = "(?P<call>{call_families})|(?P<control>{end_families}|{ends})"
_MARK: Final = _table(f"(?P<opens>{{opens}})|(?P<closes>{{closes}})|{{channel}}|{_END}")
_END_ALONE: Final = _table(f"(?P<opens>(?!))|(?P<closes>(?!))|(?P<channel>(?!))|{_END}")
"""For models without reasoning."""
_CLOSES: Final = TABLE.compile("{closes}|{channel}", flags=re.IGNORECASE, name="final")
_PLAIN_CLOSES: Final = TABLE.compile("(?i:{closes}|{channel})|{final}", name="final")
_BEGINS_MARK: Final = _table("{begins_mark}")
_BEGINS_CHANNEL: Final = TABLE.pattern("begins_channel")
_CUT_OFF: Final = _table("{cut_off}")
_ROLE_LINE: Final = _table("{role_lines}")
_BEGINS_ROLE: Final = _table("{begins_role}")
_TAIL: Final = 160
"""Characters of unspoken text that are kept, because a mark may begin in them."""
_CONTEXT: Final = 24
"""Characters before a text that show whether a line or a sentence begins there."""
CALL_NOTATION: Final = "<tool_call>"
_ANNOUNCED_WITHIN: Final = 100
"""Characters of an announcement."""


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """Words of a reply.

    Attributes:
        text: May be empty.
        retracts: All words before these were reasoning.
    """

    text: str = ""
    retracts: bool = False


class ReplyText:
    """Takes the text of one answer and returns what may be said of it. Create a new one for every answer.

    Args:
        removes: Whether reasoning is looked for at all.
        is_spoken: Whether a mark of a chat template ends the answer. One that is data may quote marks.
        begins_inside: The answer begins with reasoning without an opening mark. If no mark closes it and the model
            stopped by itself, it was none.

    Attributes:
        has_reasoning: Whether there was reasoning.
        lacks_opening: Whether a mark closed reasoning that none had opened.
        is_over: Whether the reply has ended, whatever the model still writes.
    """

    def __init__(self, *, removes: bool = True, begins_inside: bool = False, is_spoken: bool = True) -> None:
        self._marks = _MARK if removes else _END_ALONE
        self._is_spoken = is_spoken
        self._held = ""
        self._context = "\n"
        self._n_searched = 0
        """Characters of it in which no mark begins."""
        self._closes: re.Pattern[str] | None = _CLOSES if removes and begins_inside else None
        self._is_guess = self._closes is not None
        self._at_start = removes
        self._opener = Opener()
        self._has_words = False
        self.has_reasoning = False
        self.lacks_opening = False
        self.is_over = False

    def reasoned_elsewhere(self) -> None:
        """Note that the server keeps reasoning apart, so the text has none."""
        self.has_reasoning = True
        if self._is_guess and not self._held:
            self._closes, self._is_guess = None, False

    def push(self, text: str) -> ReplyPart:
        if self.is_over:
            return ReplyPart()
        self._held += text if text.isascii() else text.translate(_WIDE)
        return self._joined(self._parts())

    def end(self, *, is_cut: bool) -> ReplyPart:
        """Return what was held back and is part of the reply.

        Args:
            is_cut: The answer ended at the token limit, so open reasoning is reasoning.
        """
        parts: list[ReplyPart] = []
        if self._is_guess and not is_cut:
            self._closes, self._is_guess = None, False
            self._at_start = False
            parts.append(self._joined(self._parts()))
        if self._closes is None:
            parts.append(ReplyPart(self._words(_CUT_OFF.sub("", self._held)) + self._opener.end()))
        elif self._held.strip():
            self.has_reasoning = True
        self._held = ""
        return self._joined(iter(parts))

    def _joined(self, parts: Iterator[ReplyPart]) -> ReplyPart:
        text, retracts = "", False
        for part in parts:
            if part.retracts:
                text, retracts, self._has_words = "", retracts or self._has_words, False
            text += part.text
        return ReplyPart(text, retracts)

    def _parts(self) -> Iterator[ReplyPart]:
        if self._at_start and not self._has_started():
            return
        while self._held and not self.is_over:
            if self._closes is not None:
                found = self._closes.search(self._held, self._n_searched)
                if found is None:
                    if not self._is_guess:
                        self.has_reasoning = self.has_reasoning or bool(self._held.strip())
                        self._held = self._held[-_TAIL:]
                    self._n_searched = max(0, len(self._held) - _TAIL)
                    return
                self._n_searched = 0
                yield self._closed(found)
                continue
            mark = self._marks.search(self._held)
            if mark is None or (mark["control"] and not self._has_words and self._is_in_channel_mark(mark)):
                at = self._n_without_mark()
                text, self._held = self._held[:at], self._held[at:]
                yield ReplyPart(self._words(text))
                if mark is None or not self._has_words:
                    return
            else:
                yield self._marked(mark)

    def _words(self, text: str) -> str:
        """Return what may be said of text without marks. A line that is only a role ends the reply."""
        n_before, joined = len(self._context), self._context + text
        for found in _ROLE_LINE.finditer(joined) if self._is_spoken else ():
            at, label = found.start(found.lastgroup or 0), found[found.lastgroup or 0]
            is_first = not (self._has_words or joined[:at].strip())
            if found.end() <= n_before or (
                is_first and (":" in label or label.strip(" \t*").casefold() not in _OTHERS)
            ):
                continue  # the opener or the guard removes one before words
            text, self._held, self.is_over = text[: max(0, at - n_before)], "", True
            break
        self._context = joined[-_CONTEXT:]
        said = self._opener.push(text) + (self._opener.end() if self.is_over else "")
        self._has_words = self._has_words or bool(said.strip())
        return said

    def _has_started(self) -> bool:
        """Whether the first words decide how the answer begins. Reasoning that they show is opened."""
        text = self._held.lstrip()
        if text.startswith(_BARE_OPENERS):
            self._closes, self._is_guess = _PLAIN_CLOSES, False
        elif self._is_guess and text and not any(each.startswith(text) for each in _BARE_OPENERS):
            pass
        elif (begins := _begins_reasoning(text)) is None or any(each.startswith(text) for each in _BARE_OPENERS):
            return False
        elif begins:
            self._closes, self._is_guess = _CLOSES, True
        self._at_start = False
        return True

    def _closed(self, found: re.Match[str]) -> ReplyPart:
        self.has_reasoning = True
        self.lacks_opening = self.lacks_opening or (self._is_guess and not _MARK.match(self._held.lstrip()))
        self._closes, self._is_guess = None, False
        self._restart(found)
        return ReplyPart()

    def _marked(self, mark: re.Match[str]) -> ReplyPart:
        is_channel = mark["channel"] is not None
        before = mark.string[: mark.start()]
        said = self._words(before)
        if self._is_spoken and (mark["call"] or mark["control"] or is_channel) and not self.is_over:
            said += self._opener.end()
            if mark["call"] or self._has_words or said.strip():
                self._held, self.is_over = "", True
                said += CALL_NOTATION if mark["call"] else ""
        if self.is_over:
            return ReplyPart(said)
        if mark["opens"] or (is_channel and mark["channel"].lower() != "final"):
            self._closes = _CLOSES
        elif mark["closes"] or is_channel:
            if before.strip() or self._has_words or self._opener.end():
                self.has_reasoning = True
                self.lacks_opening = self.lacks_opening or not is_channel
            self._restart(mark)
            return ReplyPart(retracts=True)
        elif self._is_spoken:
            self._opener, self._context = Opener(), "\n"
        self._held = mark.string[mark.end() :]
        return ReplyPart(said)

    def _restart(self, mark: re.Match[str]) -> None:
        self._held = self._held[mark.end() :].lstrip()
        self._opener, self._context = Opener(), "\n"

    def _is_in_channel_mark(self, mark: re.Match[str]) -> bool:
        begun = _BEGINS_CHANNEL.search(self._held)
        return begun is not None and begun.start() <= mark.start()

    def _n_without_mark(self) -> int:
        """Return the number of first characters after which a mark may begin."""
        found = _BEGINS_CHANNEL.search(self._held) or _BEGINS_MARK.search(self._held)
        at = len(self._held) if found is None else found.start()
        n = len(self._context)
        role = _BEGINS_ROLE.search(self._context + self._held[:at]) if self._is_spoken else None
        return at if role is None else max(0, role.start(role.lastgroup or 0) - n)


def _begins_reasoning(text: str) -> bool | None:
    """Whether these first words speak about a user, as no character does; None while they may become such."""
    text = text[:120]
    said = " ".join(Text(text).spoken) + ("" if text[-1:].isalnum() else " ")
    if any(said.startswith(f"{phrase} ") for phrase in _BEGINNINGS):
        return True
    return None if any(f"{phrase} ".startswith(said) for phrase in _BEGINNINGS) else False


class Opener:
    """Removes what a model writes before a reply. Holds text only while it may be such an opener."""

    def __init__(self) -> None:
        self._text = ""
        self._is_past = False

    def push(self, text: str) -> str:
        if self._is_past:
            return text
        self._text += text
        while (n := _opener(self._text)) is not None:
            if n == 0:
                self._is_past = True
                text, self._text = self._text, ""
                return text
            self._text = self._text[n:]
        return ""

    def end(self) -> str:
        """Return what was held: an exclamation alone is a reply, a role or an announcement is not."""
        text, self._text = self._text, ""
        bare = text.strip().rstrip(":").casefold()
        return "" if bare in _ROLES or (text.rstrip().endswith(":") and _announced(text)) else text


def _opener(text: str) -> int | None:
    """Return the length of an opener and the space after it; 0 if there is none, None while more text decides."""
    start = len(text) - len(text.lstrip(" \n\t*_"))
    said = _straight(text[start:])
    role = _phrase(said, _ROLES)
    if role is None:
        return None
    rest = said[len(role) :]
    if role and (rest[0] in ":*\n" or (said.startswith(role) and _is_line(rest))):
        after = rest.lstrip(" \n\t:*")
        return len(text) - len(after) if after else None
    agreed = _phrase(said, _AGREED)
    if agreed is None:
        return None
    rest = said[len(agreed) :].lstrip()
    announced = _announcement(rest)
    if announced is None:
        return None
    if not announced and not agreed.endswith("!"):
        return 0
    after = rest[announced:].lstrip(" \n\t*")
    return len(text) - len(after) if after else None


def _phrase(said: str, phrases: Iterable[str]) -> str | None:
    """Return the longest phrase that a text begins with; empty for none, None while more text decides."""
    lowered = said.casefold()
    if any(phrase.startswith(lowered) for phrase in phrases):
        return None
    return max((phrase for phrase in phrases if lowered.startswith(phrase)), key=len, default="")


def _is_line(rest: str) -> bool:
    """Whether a sentence begins after a role that the chat template has left ("model Well met.")."""
    return rest[0].isspace() and not rest.lstrip()[:1].islower()


def _announcement(said: str) -> int | None:
    """Return the length of "Here is my reply:"; 0 if there is none, None while more text decides."""
    if not (presents := _phrase(said, _PRESENTS)):
        return None if presents is None else 0
    end = re.search(r"[:.!?\n]", said)
    if end is None:
        return None if len(said) < _ANNOUNCED_WITHIN else 0
    return end.end() if end.group() == ":" and _announced(said[: end.end()]) else 0


def _announced(text: str) -> bool:
    said = _straight(text).casefold()
    return len(text) <= _ANNOUNCED_WITHIN and _PRESENTED.search(said) is not None


def _straight(text: str) -> str:
    """Return the text with straight apostrophes, at the same length."""
    return text.replace("’", "'")


def without_reasoning(text: str) -> str:
    """Return a whole answer without its reasoning."""
    reply = ReplyText(is_spoken=False)
    first = reply.push(text)
    last = reply.end(is_cut=False)
    return last.text if last.retracts else first.text + last.text
