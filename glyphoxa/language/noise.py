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
from glyphoxa.language.words import composed

_DESCRIBED: Final = re.compile(r"\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|[♪♫♬♩][^♪♫♬♩]*[♪♫♬♩]?")
"""Sounds that a recogniser describes: "[laughter]", "(coughs)", "♪ la la ♪"."""
_SENTENCE: Final = re.compile(rf"(?:{_DESCRIBED.pattern})\s*|\S.*?(?:[.!?…]+(?=\s|$)|$)\s*", re.DOTALL)
_ADDRESS: Final = r"\S*(?:www\.|\.(?:com|org|net|de|tv)\b)\S*"
_WRITTEN: Final = lexicon("noise").compile(f"{{written}}|.*{_ADDRESS}.*", flags=re.IGNORECASE | re.DOTALL)
_DOUBTFUL: Final = lexicon("noise").words("doubtful")
_DOUBTED: Final = 0.15
"""Confidence. whisper-tiny.en gave 0.1 or less to the words it wrote for chords and breath, 0.26 or more to thanks."""
_SHORTEST_MS: Final = 120
"""A voice this short says no word."""
_A_WORD_MS: Final = 160
"""Nobody says a word over and over faster than this."""
_REPEATED: Final = 6
_REPEATED_OFTEN: Final = 12
_SAID_TWICE: Final = 2


def without_described(text: str) -> str:
    """Return the text without the sounds described in it."""
    return _DESCRIBED.sub(" ", text)


def without_noise(heard: Heard) -> Heard:
    """Return a transcript whose text lacks the sentences that nobody said; its raw text keeps them."""
    text, kept, removed = heard.text, "", []
    for is_noise, found in groupby(_SENTENCE.finditer(text), key=lambda sentence: _is_written(sentence[0])):
        spans = [sentence.span() for sentence in found]
        start, end = spans[0][0], spans[-1][1]
        if is_noise:
            start = len(text[:start].rstrip()) if end == len(text) else start
            removed.append(Correction(start, end, text[start:end], "", 1.0, "phonetic", "words for noise"))
        else:
            kept += text[start:end]
    if not removed:
        return heard
    kept = kept.rstrip() if removed[-1].end == len(text) else kept
    return replace(heard, text=kept, corrections=composed(heard.raw_text, heard.corrections, removed))


def is_noise(spoken: Draft) -> bool:
    """Return whether a turn has no words, or only words that sound without speech explains better."""
    words = re.findall(r"\w[\w'’-]*", spoken.text.lower())
    voice_ms = spoken.speech_end_ms - spoken.began_ms
    if len(set(words)) == 1 and len(words) >= _REPEATED:
        is_too_fast = voice_ms < _A_WORD_MS * len(words)
        return words[0] in _DOUBTFUL or is_too_fast or len(words) >= _REPEATED_OFTEN
    sentences = [" ".join(re.findall(r"[\w'’-]+", part)) for part in _SENTENCE.findall(spoken.text.lower())]
    if any(sentence and sentence not in _DOUBTFUL for sentence in sentences):
        return False
    sure = max((word.confidence for word in spoken.heard.words if word.confidence is not None), default=1.0)
    return not words or len(sentences) > _SAID_TWICE or voice_ms < _SHORTEST_MS or sure < _DOUBTED


def _is_written(sentence: str) -> bool:
    """Return whether recognisers write this sentence for sound without speech."""
    spoken = without_described(sentence).strip(" \n\t.,!?…-–\"'„“”")
    is_described = spoken != sentence and not re.search(r"\w", spoken)
    return is_described or _WRITTEN.fullmatch(spoken) is not None
