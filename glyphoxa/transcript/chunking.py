"""How talk is cut for the embedder.

An utterance is one chunk: indexing windows of several utterances loses more than it gains. Only what is too long for
an embedder to read is cut, at the ends of sentences, each piece beginning with the end of the one before.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from glyphoxa.language.words import words

_VERSION = "3"  # counted up when what is embedded changes, or how: all talk is then embedded anew
MOST_WORDS = 160
"""A small embedder reads 256 tokens; a word of prose is about 1.3, a name of another world three."""
OVERLAP_WORDS = 30
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Piece:
    """
    Attributes:
        content: What is embedded: who speaks, and the words.
        content_hash: Changes when the content does, or the way in which talk is cut.
    """

    content: str
    content_hash: str


def pieces_of(text: str, *, speaker: str, most_words: int = MOST_WORDS) -> list[Piece]:
    """The pieces of an utterance, in order; none if it says nothing.

    The day on which it was said is no part of them: `glyphoxa.recall.time_reader` knows times better. With it in front,
    meaning alone finds more for a question as it is asked; as its speaker would have said it, and beside the other
    signals of recall, it costs 0.75 points of R@10 on five conversations of LoCoMo (95 % interval 0.09 to 1.48).
    """
    return [
        Piece(said, hash_of(said)) for said in (f"{speaker}: {window}" for window in _windows(text.strip(), most_words))
    ]


def chunk_id(utterance_id: str, nth: int) -> str:
    """Of the nth piece of an utterance, from 0: the first has the utterance's own id."""
    return utterance_id if nth == 0 else f"{utterance_id}#{nth + 1}"


def hash_of(content: str) -> str:
    """Of what is embedded, and of the way in which talk is cut."""
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
    """The last sentences of a window, as many as may be said again."""
    kept: list[str] = []
    for sentence in reversed(window):
        if _length(sentence, *kept) > min(OVERLAP_WORDS, room):
            break
        kept.insert(0, sentence)
    return kept


def _sentences(text: str, most_words: int) -> list[str]:
    """Sentences; one that is too long by itself is cut between words, with an overlap."""
    found: list[str] = []
    for sentence in filter(None, map(str.strip, _SENTENCE_END.split(text))):
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


def _length(*sentences: str) -> int:
    return sum(len(words(sentence)) for sentence in sentences)
