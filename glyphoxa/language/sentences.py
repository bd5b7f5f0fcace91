"""Split a stream of tokens into pieces to speak, as early as sounds natural.

A piece ends where a sentence ends. Only the first piece of a reply may already end at a comma or a dash, or, if it is
long, before a word that joins another clause ("a sorcerer | who built the tower"): the voice starts earlier, and later
pieces are long enough for a natural melody.

A full stop ends nothing after an abbreviation ("Dr."), a single capital ("J. R."), an ordinal ("am 3. Mai") or within a
number ("3.5"). That needs the next character, so a piece is released one character late, which is a whole token of the
model; `flush` releases the rest. A model whose grammar allows only white space after a mark (`marks_end`) needs no
delay, except after a digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from glyphoxa.language.language_data import lexicon

_WIDE: Final = "。！？"
"""End sentences without a space after them."""
_ENDERS: Final = f".!?…{_WIDE}"
_CLOSERS: Final = "\"'”’»)]*_」』"
_CLAUSE_ENDERS: Final = ",;:—–"
_LOOKED_BACK: Final = 40
"""Characters before a full stop that show whether it ends a sentence."""
MOST_READ: Final = 2_000
"""Characters of a line that are read at once, because patterns take a time that grows with the square of them."""
_PART: Final = re.compile(
    rf"(?s).{{1,{MOST_READ}}}\Z|.{{1,{MOST_READ - 2}}}[{_ENDERS}]\s|.{{1,{MOST_READ - 1}}}\s|.{{1,{MOST_READ}}}"
)
_MAY_END: Final = re.compile(rf"[\n{_ENDERS}{_CLAUSE_ENDERS}]")
_WORDS: Final = lexicon("speech")
_WRITTEN: Final = lexicon("spoken")
_ABBREVIATIONS: Final = _WRITTEN.words("abbreviations")
_BEFORE_NUMBERS: Final = _WRITTEN.words("before_numbers")
"""Abbreviations only before a digit: "No. 5", but "No. It is mine."."""
_JOINS: Final = _WORDS.compile(r"\s(?={joins}\s)")
"""A speaker may pause for breath before these words."""
_COUNTS: Final = re.compile(r"(?:\d|\b[IVX]+|\b\d+ ?[^\W\d_]{1,3})$")
"""A number, a Roman number or a measure."""
_ORDINAL: Final = _WRITTEN.compile(r"\b(?i:{before_ordinals}) \d+$")
_LEAST_WORDS: Final = 2
"""Words that a first piece needs before it may end at a clause."""
_LEAST_WORDS_TO_JOIN: Final = 4
"""The same, before it may end at a word that joins another clause."""
_LAST_WORD = re.compile(r"([\w.]*\w)$")


@dataclass(slots=True)
class SentenceSplitter:
    """A splitter for one reply: `push` each token as it comes, then `flush`.

    The pieces joined by single spaces equal the text with normalised white space.

    Args:
        marks_end: Only white space follows a mark that can end a piece, never "...". Numbers such as "3.5" may occur.
    """

    marks_end: bool = False
    _held: str = ""
    _began: bool = False

    def push(self, token_text: str) -> list[str]:
        """The pieces that are now complete, without surrounding white space."""
        self._held += token_text
        pieces: list[str] = []
        while (end := self.next_end()) is not None:
            pieces += self._take(end)
        return pieces

    def flush(self) -> list[str]:
        """The rest; resets the splitter."""
        pieces = self._take(len(self._held))
        self._held, self._began = "", False
        return pieces

    def _take(self, end: int) -> list[str]:
        piece = " ".join(self._held[:end].split())
        self._held = self._held[end:]
        if not piece:
            return []
        self._began = True
        return [piece]

    def next_end(self) -> int | None:
        """One past the first complete piece, or None."""
        held = self._held
        for found in _MAY_END.finditer(held):
            at, char = found.start(), found[0]
            if char == "\n" and held[:at].strip():
                return at + 1
            if char in _ENDERS:
                end = self._sentence_end(at)
                if end is not None:
                    return end
            elif char in _CLAUSE_ENDERS and not self._began and self._ends_clause(at):
                return at + 1
        return None if self._began else self._join()

    def _join(self) -> int | None:
        for found in _JOINS.finditer(self._held):
            if len(self._held[: found.start()].split()) >= _LEAST_WORDS_TO_JOIN:
                return found.start()
        return None

    def _sentence_end(self, at: int) -> int | None:
        held = self._held
        end = at + 1
        while end < len(held) and held[end] in _ENDERS:
            end += 1
        is_one_stop = held[at] == "." and end == at + 1
        while end < len(held) and held[end] in _CLOSERS:
            end += 1
        if end >= len(held) and not (self.marks_end and not held[at - 1 : at].isdigit()):
            return None  # not yet
        if held[end:] and not held[end].isspace() and held[at] not in _WIDE:
            return None  # within "3.5", "e.g" or "...and"
        if at and held[at - 1] in _ENDERS:
            return None  # the whole mark was checked at its first character
        if not is_one_stop and (held[at] == "…" or held[at : at + 2] == ".."):
            return self._after_ellipsis(end)
        before = held[max(0, at - _LOOKED_BACK) : at]
        if is_one_stop and _is_abbreviated(before):
            return None
        if is_one_stop and _COUNTS.search(before) and not before.endswith(" I"):
            return self._after_count(at, end)
        if is_one_stop and _last_word(before) in _BEFORE_NUMBERS:
            following = held[end:].lstrip()
            return None if following[:1].isdigit() or (not following and not self.marks_end) else end
        return end

    def _after_ellipsis(self, end: int) -> int | None:
        """Three dots end a sentence only if the next one begins: "Well... perhaps" continues."""
        following = self._held[end:].lstrip(" \t\"'“‘«(*_")
        return end if following and not following[0].islower() else None

    def _after_count(self, at: int, end: int) -> int | None:
        """Return the end, unless the sentence continues: "am 3. Mai", "Aldric III. starb", "30 ft. away"."""
        following = self._held[end:].lstrip()
        is_ordinal = bool(_ORDINAL.search(self._held[:at]))
        return None if not following or is_ordinal or following[0].islower() else end

    def _ends_clause(self, at: int) -> bool:
        following = self._held[at + 1 : at + 2]
        is_in_number = self._held[at - 1 : at].isdigit() and (not following or following.isdigit())
        is_complete = following.isspace() or (self._held[at] in "—–" if following else self.marks_end)
        is_complete = is_complete and not is_in_number
        return is_complete and len(self._held[:at].split()) >= _LEAST_WORDS


def _is_abbreviated(before: str) -> bool:
    if before.strip().isdigit():
        return True  # the number of a list
    word = _last_word(before)
    # "I" ends sentences ("So do I."), other single capitals are initials.
    is_initial = len(word) == 1 and word not in ("i", "") and before.endswith(word.upper())
    return word in _ABBREVIATIONS or is_initial


def _last_word(text: str) -> str:
    """Return the last word in lower case; empty if the text ends with another character."""
    found = _LAST_WORD.search(text)
    return "" if found is None else found.group(1).lower()


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each sentence of a text, without the white space around it."""
    splitter = SentenceSplitter(_held=text, _began=True)
    start = 0
    while start < len(text):
        end = splitter.next_end()
        piece = text[start : len(text) if end is None else start + end]
        if piece.strip():
            begins = start + len(piece) - len(piece.lstrip())
            yield begins, begins + len(piece.strip())
        start += len(piece)
        splitter._held = text[start:]


def parts_of(text: str) -> list[str]:
    """Return the text in parts of at most `MOST_READ` characters, cut after a sentence, or else after a word."""
    return _PART.findall(text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, with single spaces.

    >>> sentences("Dr. Brandt asks 3.5 crowns.  Well... perhaps!")
    ['Dr. Brandt asks 3.5 crowns.', 'Well... perhaps!']
    """
    return [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]


def first_sentences(text: str, most_characters: int) -> str:
    """Return as many leading sentences as fit; empty if the first is too long."""
    kept = ""
    for sentence in sentences(text):
        longer = f"{kept} {sentence}".lstrip()
        if len(longer) > most_characters:
            break
        kept = longer
    return kept


def shortened(text: str, most_characters: int) -> str:
    """Return the leading sentences that fit, otherwise the first words and " …"."""
    if len(text) <= most_characters:
        return text
    if kept := first_sentences(text, most_characters):
        return kept
    cut = text[: most_characters - 2]  # room for " …"
    at = cut.rfind(" ")
    return f"{(cut[:at] if at > 0 else cut).rstrip(' ,;:')} …"


# Estimate how many tokens a text takes, for every budget and every record, and fit texts into budgets.
#
# No chat model's tokenizer is available within a turn: a local model's server has it behind HTTP, and a provider's is
# remote. Budgets need an estimate only.


CHARS_PER_TOKEN: Final = 4
"""Approximate size of a token in English text."""
_LEAST_CUT: Final = 20
"""Characters; fewer of a sentence mean nothing."""


def tokens_of(text: str) -> int:
    """Return about how many tokens a text takes: 0 for an empty one, otherwise at least 1."""
    return max(1, round(len(text) / CHARS_PER_TOKEN)) if text else 0


def characters_in(tokens: int) -> int:
    """Return the length of a text with that many tokens."""
    return tokens * CHARS_PER_TOKEN


@dataclass(slots=True)
class RoomLeft:
    """The room in a budget that is not taken yet.

    Attributes:
        left: Characters, or tokens, of everything that may still enter.
    """

    left: int

    @classmethod
    def of(cls, tokens: int) -> Self:
        """Return the room for texts with a space between two of them."""
        return cls(characters_in(tokens) + 1)

    def takes(self, size: int) -> bool:
        """Take that much and return True if there is enough."""
        if size > self.left:
            return False
        self.left -= size
        return True

    def fitting(self, texts: Iterable[str], *, cuts: bool = False, share: float = 1) -> list[str]:
        """Take and return the texts that fit, the most important first. One that is too long makes no other leave.

        Args:
            cuts: Keep the first sentences of a text that is too long. If it is the first text and none of them fits,
                keep its first words.
            share: Part of the room that they may take together.
        """
        found: list[str] = []
        kept_back = self.left - int(share * self.left)
        self.left -= kept_back
        for text in texts:
            kept = text
            if cuts and len(text) >= self.left:
                cut = first_sentences if found or self.left <= _LEAST_CUT else shortened
                kept = cut(text, self.left - 1)
            if kept and self.takes(len(kept) + 1):
                found.append(kept)
        self.left += kept_back
        return found


def n_too_old(sizes: Sequence[int], room: float) -> int:
    """Return how many of the oldest lines must leave, so that the latest ones fit together."""
    first = len(sizes)
    while first > 0 and (room := room - sizes[first - 1]) >= 0:
        first -= 1
    return first
