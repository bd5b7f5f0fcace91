"""Words that are meant for no NPC, whoever is present: those of the players' own world, fillers, and words that
recognisers write for sound without speech.

Only clear cases count, in all languages, because tables mix them. A character may well ask for a break or a game of
dice, so single words are not enough; only forms that players alone use decide ("brb", "roll for", "W20"). The words are
data: see `data/LANGUAGE/table_talk.toml`, `fillers.toml` and `noise.toml`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Final

from glyphoxa.domain.heard import Correction, Draft, Heard
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.text import Text
from glyphoxa.language.words import applied, composed

_WORDS: Final = lexicon("table_talk")
_MARKED_WHOLE: Final = _WORDS.compile(r"\W*{marks}\b|\W*(?:{marks}|{short_marks})\s*[:)\]]|\s*//", flags=re.IGNORECASE)
_MARKED_BRACKET: Final = _WORDS.compile(
    r"\(\(.*?(?:\)\)|$)|[(\[{]\s*(?:{marks}|{bracket_marks})\b(?:\s*[)\]}].*|[^)\]}]*(?:[)\]}]+|$))",
    flags=re.IGNORECASE | re.DOTALL,
)
_REASONS: Final = {
    "absence": "somebody leaves the table for a moment",
    "delivery": "a delivery or visitor in the real world",
    "dice": "dice",
    "rules": "rules of the game",
    "snacks": "snacks at the table",
    "turns": "turn order",
    "evening": "the session itself",
}
_TOPICS: Final = tuple(
    (why, _WORDS.words(f"{key}_signs"), _WORDS.pattern(key, flags=re.IGNORECASE)) for key, why in _REASONS.items()
)
"""Topic, words of which one must be present, and the deciding pattern. Most text needs no pattern match."""

_SOUNDS: Final = lexicon("fillers").words("sounds")
"""Sounds of listening, thinking and laughing."""
_THINKING: Final = _SOUNDS | lexicon("fillers").words("thinking")
"""These sounds and words of thinking. As a question ("Well?") the words ask for an answer."""
BACKCHANNEL: Final = lexicon("fillers").words("backchannel")
"""Words that encourage a speaker to continue, in languages without examples for the model of listeners too."""
_FILLERS: Final = _THINKING | BACKCHANNEL
_WORDS_REMEMBERED = 8192


def marked_out_of_character(text: str) -> bool:
    """Return whether the players' mark applies to the whole text: "ooc: ...", "(ooc) ...", "((...))"."""
    if _MARKED_WHOLE.match(text) and not text.lstrip().startswith(("(", "[", "{")):
        return True
    unmarked = _MARKED_BRACKET.sub(" ", text)
    return unmarked != text and re.search(r"\w", unmarked) is None


@lru_cache(10_000)  # lines of a long session: several questions about each of them need this
def is_out_of_character(text: str) -> bool:
    """Return whether a text is marked as out of character, or about a real-world topic."""
    return marked_out_of_character(text) or out_of_character(text) is not None


def out_of_character(text: str) -> str | None:
    """Return the real-world topic in words; None if the text may be part of the story."""
    suspected = {at for word in text.lower().split() for at in _signs_in(word)}
    for at in sorted(suspected):
        why, _, pattern = _TOPICS[at]
        if pattern.search(text):
            return why
    return None


@lru_cache(_WORDS_REMEMBERED)  # a partial transcript repeats the words of the one before it
def _signs_in(word: str) -> tuple[int, ...]:
    """Return the indexes of `_TOPICS` that have this word as a sign."""
    return tuple(at for at, (_, signs, _) in enumerate(_TOPICS) if any(sign in word for sign in signs))


def is_filler(text: str, *, is_answer: bool) -> bool:
    """Return whether the text holds only fillers.

    Args:
        is_answer: In a conversation with an NPC, "yes" and "all right" are answers, not fillers.
    """
    fillers = _SOUNDS if "?" in text else _THINKING if is_answer else _FILLERS
    return fillers.issuperset(Text.of(text).spoken)


# Sound without speech: "[Music]", "Thanks for watching!", "Untertitel des ZDF".

_DESCRIBED: Final = re.compile(r"\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|[♪♫♬♩][^♪♫♬♩]*[♪♫♬♩]?")
"""Sounds that a recogniser describes: "[laughter]", "(coughs)", "♪ la la ♪"."""
_SENTENCE: Final = re.compile(rf"(?:{_DESCRIBED.pattern})\s*|\S.*?(?:[.!?…]+(?=\s|$)|$)\s*", re.DOTALL)
_ADDRESS: Final = r".*(?:www\.|\.(?:com|org|net|de|tv)\b).*"
_WRITTEN: Final = lexicon("noise").compile(f"{{written}}|{_ADDRESS}", flags=re.IGNORECASE | re.DOTALL)
_DOUBTFUL: Final = lexicon("noise").compile("(?P<said>{doubtful})(?P<again>(?: (?P=said))*)")
_DOUBTED: Final = 0.15
"""Confidence. whisper-tiny.en gave 0.1 or less to the words it wrote for chords and breath, 0.26 or more to thanks."""
_SHORTEST_MS: Final = 120
"""A voice this short says no word."""
_REPEATED: Final = 8
"""Recognisers repeat a word this often more than people do."""


def without_described(text: str) -> str:
    """Return the text without the sounds described in it."""
    return _DESCRIBED.sub(" ", text)


def without_noise(heard: Heard) -> Heard:
    """Return a transcript whose text lacks the sentences that nobody said; its raw text keeps them."""
    text, removed = heard.text, []
    for is_noise, found in groupby(_SENTENCE.finditer(text), key=lambda sentence: _is_written(sentence[0])):
        spans = [sentence.span() for sentence in found]
        start, end = spans[0][0], spans[-1][1]
        if is_noise:
            start = len(text[:start].rstrip()) if end == len(text) else start
            removed.append(Correction(start, end, text[start:end], "", 1.0, "phonetic", "words for noise"))
    if not removed:
        return heard
    without = applied(text, removed)
    return replace(heard, text=without, corrections=composed(heard.raw_text, heard.corrections, removed))


def is_noise(spoken: Draft) -> bool:
    """Return whether a turn has no words, or only words that sound without speech explains better."""
    words = re.findall(r"[\w'’]+", spoken.text.lower())
    if len(words) >= _REPEATED and len(set(words)) == 1:
        return True
    doubtful = _DOUBTFUL.fullmatch(" ".join(words))
    if doubtful is None:
        return not words
    sure = max((word.confidence for word in spoken.heard.words if word.confidence is not None), default=1.0)
    is_too_short = spoken.speech_end_ms - spoken.began_ms < _SHORTEST_MS
    return doubtful["again"].count(doubtful["said"]) > 1 or is_too_short or sure < _DOUBTED


def _is_written(sentence: str) -> bool:
    """Return whether recognisers write this sentence for sound without speech."""
    spoken = without_described(sentence).strip(" \n\t.,!?…-–\"'„“”")
    is_described = spoken != sentence and not re.search(r"\w", spoken)
    return is_described or _WRITTEN.fullmatch(spoken) is not None
