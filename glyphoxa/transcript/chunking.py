"""Split utterances into chunks for the embedder.

An utterance is one chunk: windows of several utterances lose more than they gain. Only an utterance that is too long
for an embedder is split, at sentence ends. Each piece starts with the end of the previous one.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from dataclasses import dataclass

from glyphoxa.language.sentences import sentence_spans
from glyphoxa.language.words import words

_VERSION = "3"  # increase it when what is embedded changes, or how: all utterances are then embedded again
MOST_WORDS = 160
"""A small embedder reads 256 tokens. A word of prose has about 1.3, an invented name three."""
OVERLAP_WORDS = 30


@dataclass(frozen=True, slots=True)
class Piece:
    """
    Attributes:
        content: The text to embed: the speaker and the words.
        content_hash: Changes with the content and with the way of splitting.
    """

    content: str
    content_hash: str


def pieces_of(text: str, *, speaker: str, most_words: int = MOST_WORDS) -> list[Piece]:
    """Return the pieces of an utterance, in order; none if it is empty.

    They do not contain the day: `glyphoxa.recall.time_reader` handles times better. With the day in front, meaning
    alone finds more for a question as it is asked. For a question as its speaker would have said it, next to the other
    signals of recall, it costs 0.75 points of R@10 on five conversations of LoCoMo (95 % interval 0.09 to 1.48).
    """
    return [
        Piece(said, hash_of(said)) for said in (f"{speaker}: {window}" for window in _windows(text.strip(), most_words))
    ]


def chunk_id(utterance_id: str, nth: int) -> str:
    """Return the id of the nth piece of an utterance, from 0: the first has the utterance's own id."""
    return utterance_id if nth == 0 else f"{utterance_id}#{nth + 1}"


def hash_of(content: str) -> str:
    """Return a hash of the content and of the way of splitting."""
    return hashlib.sha256(f"{_VERSION}\n{content}".encode("utf-8", "replace")).hexdigest()


def _windows(text: str, most_words: int) -> list[str]:
    """Return parts that end with a sentence and begin with the last sentences of the one before, as far as they fit.

    A sentence that is too long by itself is split between words.
    """
    spoken = words(text)
    starts = [word.start for word in spoken]
    begins = {n: start for start, _ in sentence_spans(text) if (n := bisect_left(starts, start)) < len(spoken)}
    windows: list[str] = []
    at = 0
    while len(spoken) - at > most_words:
        ends = [n for n in begins if at < n <= at + most_words]
        end = ends[-1] if ends else at + most_words
        windows.append(text[begins.get(at, starts[at]) : begins.get(end, starts[end])].strip())
        following = min((n for n in begins if n > end), default=len(spoken))
        least = max(at + 1, end - OVERLAP_WORDS, following - most_words)
        at = next((n for n in begins if least <= n <= end), end if ends else max(at + 1, end - OVERLAP_WORDS))
    return [*windows, text[begins.get(at, starts[at]) if at else 0 :]] if text else []
