"""Split utterances into chunks for the embedder.

An utterance is one chunk: windows of several utterances lose more than they gain. Only an utterance that is too long
for an embedder is split, at sentence ends. Each piece starts with the end of the previous one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from glyphoxa.language.sentences import sentences
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
    if len(words(text)) <= most_words:
        return [text] if text else []
    windows: list[str] = []
    window: list[str] = []
    for sentence in _sentences(text, most_words):
        if window and _length(*window, sentence) > most_words:
            windows.append(" ".join(window))
            window = _overlap(window, most_words - _length(sentence))
        window.append(sentence)
    return [*windows, " ".join(window)]


def _overlap(window: list[str], room: int) -> list[str]:
    """Return the last sentences of a window that fit into the overlap."""
    kept: list[str] = []
    for sentence in reversed(window):
        if _length(sentence, *kept) > min(OVERLAP_WORDS, room):
            break
        kept.insert(0, sentence)
    return kept


def _sentences(text: str, most_words: int) -> list[str]:
    """Return sentences; one that is too long is split between words, with an overlap."""
    found: list[str] = []
    for sentence in sentences(text):
        spoken = words(sentence)
        if len(spoken) <= most_words:
            found.append(sentence)
            continue
        step = max(1, most_words - OVERLAP_WORDS)
        for at in range(0, max(step, len(spoken) - OVERLAP_WORDS), step):
            last = min(at + most_words, len(spoken)) - 1
            start = 0 if at == 0 else spoken[at].start
            end = len(sentence) if last == len(spoken) - 1 else spoken[last].end
            found.append(sentence[start:end])
    return found


def _length(*parts: str) -> int:
    return sum(len(words(part)) for part in parts)
