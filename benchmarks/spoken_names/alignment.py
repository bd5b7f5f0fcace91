"""Which words of a transcript stand where the words of its reference stand, and what was got wrong.

Levenshtein over words finds what is equal. Between two equal stretches words are matched by their letters, so that a
name that was heard in more or fewer words than it has ("iron hold" for "Ironhold", "don bring her" for "Dawn
Bringer") is given all of its pieces and nothing of its neighbours.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f]|['’](?=[^\W_]))*")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text: its letters and digits in lower case, without accents and apostrophes, and its place."""

    word: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Span:
    """Words `first` to `end` (one past the last) of a list of words; empty when nothing was heard."""

    first: int
    end: int

    @property
    def is_empty(self) -> bool:
        return self.first == self.end


@dataclass(slots=True)
class Errors:
    """Substituted, left out and added words, counted apart for names and for all other words."""

    name_words: int = 0
    name_errors: int = 0
    other_words: int = 0
    other_errors: int = 0
    mentions: int = 0
    mentions_right: int = 0

    def add(self, more: Errors) -> None:
        self.name_words += more.name_words
        self.name_errors += more.name_errors
        self.other_words += more.other_words
        self.other_errors += more.other_errors
        self.mentions += more.mentions
        self.mentions_right += more.mentions_right


def tokens(text: str) -> list[Token]:
    """The words of a text; a hyphen parts two words, an apostrophe does not."""
    return [Token(_bare(match.group()), match.start(), match.end()) for match in _WORD.finditer(text)]


def words_of(text: str) -> list[str]:
    return [token.word for token in tokens(text)]


def align(reference: Sequence[str], heard: Sequence[str]) -> list[Span]:
    """For each word of the reference the heard words in its place, in order and without overlap.

    Heard words between two that are right belong to nothing: they were added.
    """
    spans: list[Span] = []
    block: tuple[int, int, int, int] | None = None  # what differs, up to the next equal stretch
    for op in Levenshtein.opcodes(list(reference), list(heard)):
        if op.tag == "equal":
            spans += _spans_of_block(reference, heard, block)
            block = None
            spans += [Span(op.dest_start + at, op.dest_start + at + 1) for at in range(op.src_end - op.src_start)]
        elif block is None:
            block = (op.src_start, op.src_end, op.dest_start, op.dest_end)
        else:
            block = (block[0], op.src_end, block[2], op.dest_end)
    spans += _spans_of_block(reference, heard, block)
    return spans


def errors(reference: Sequence[str], heard: Sequence[str], mentions: Sequence[Span]) -> Errors:
    """What was got wrong, by the place it stands in. `mentions` are the names' spans in the reference."""
    spans = align(reference, heard)
    found = Errors(mentions=len(mentions))
    names: set[int] = set()
    covered = 0
    for mention in mentions:
        names.update(range(mention.first, mention.end))
        place = heard_for(spans, mention)
        wrong = distance(reference[mention.first : mention.end], heard[place.first : place.end])
        found.name_words += mention.end - mention.first
        found.name_errors += wrong
        found.mentions_right += wrong == 0
        covered += place.end - place.first
    for at, span in enumerate(spans):
        if at not in names:
            found.other_words += 1
            found.other_errors += distance(reference[at : at + 1], heard[span.first : span.end])
            covered += span.end - span.first
    found.other_errors += len(heard) - covered
    return found


def heard_for(spans: Sequence[Span], mention: Span) -> Span:
    """Where the words of a mention were heard, with whatever was heard between them."""
    return Span(spans[mention.first].first, spans[mention.end - 1].end)


def distance(reference: Sequence[str], heard: Sequence[str]) -> int:
    return Levenshtein.distance(list(reference), list(heard))


def _spans_of_block(
    reference: Sequence[str], heard: Sequence[str], block: tuple[int, int, int, int] | None
) -> list[Span]:
    """The cuts of the heard words that leave the fewest letters to be changed, by dynamic programming.

    Quadratic in the heard words of the block; a block is a few words unless the recogniser rambles.
    """
    if block is None:
        return []
    first, end, heard_first, heard_end = block
    n_heard = heard_end - heard_first
    costs = [0, *([10**9] * n_heard)]
    choices: list[list[int]] = []
    for word in reference[first:end]:
        best = [10**9] * (n_heard + 1)
        cut = [0] * (n_heard + 1)
        for start in range(n_heard + 1):
            if costs[start] >= 10**9:
                continue
            for stop in range(start, n_heard + 1):
                piece = "".join(heard[heard_first + start : heard_first + stop])
                cost = costs[start] + Levenshtein.distance(word, piece)
                if cost < best[stop]:
                    best[stop], cut[stop] = cost, start
        costs = best
        choices.append(cut)
    spans: list[Span] = []
    stop = n_heard
    for cut in reversed(choices):
        spans.append(Span(heard_first + cut[stop], heard_first + stop))
        stop = cut[stop]
    return spans[::-1]


def _bare(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in folded if char.isalnum())
