"""Words that recognisers write for sound without speech: "[Music]", "Thanks for watching!", "Untertitel des ZDF".

English and German are data: see `data/LANGUAGE/noise.toml`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from typing import Final

from glyphoxa.domain.heard import Correction, Draft, Heard
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.words import applied, composed

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
