"""The sound of a name as a string, so that an ordinary edit distance measures the difference of two sounds.

A phonetic code tells whether two words sound alike; this tells how similar they are. A consonant is three symbols
(place, manner and voice), and a vowel is one. So "b" for "p" costs one edit, "b" for "s" three, another vowel one and a
lost consonant three, all counted by a compiled Levenshtein distance. This matches errors of recognisers: they keep the
places of consonants and lose voicing and vowels ("Vukradin" -> "Fukrudin").

Letters become sounds by a table of spellings, longest first. Precision is not needed, because two spellings of one
intended name are compared, not transcriptions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import groupby
from string import ascii_lowercase

from jellyfish import match_rating_codex, nysiis, soundex
from metaphone import doublemetaphone

from glyphoxa.domain.heard import LONGEST_CODE, PhoneticCode
from glyphoxa.language.language_data import primary_language

# Phonetic codes: words that sound alike get the same short code.
#
# Without codes for a language, only spelling can be compared. The codes are not truncated: with four letters
# "elder" and "Eldrinax" would be equal (ALTR); in full, "eldernacks" and "eldrinax" are (ALTRNKS).


_metaphone = lru_cache(8192)(doublemetaphone)  # a partial transcript repeats the words of the one before it

Coder = Callable[[str], tuple[str, ...]]
"""Lower-case letters without spaces or accents, to one or two codes; none for unknown letters."""


def coder_for(language: str) -> Coder:
    """The coder of a language given as a tag ("en", "de-AT"); only its first part counts. Others have no codes."""
    match primary_language(language):
        case "en":
            return coder_of("double_metaphone")
        case "de":
            return lambda word: _cut([cologne(word)], LONGEST_CODE)
        case _:
            return lambda word: ()


def coder_of(code: PhoneticCode, *, length: int = LONGEST_CODE) -> Coder:
    """The coder of a phonetic code for English, cut at `length` letters. A Soundex never has more than four.

    Raises:
        ValueError: `length` is not between 1 and 32.

    >>> coder_of("soundex")("eldrinax"), coder_of("nysiis", length=4)("eldrinax")
    (('E436',), ('ELDR',))
    """
    if not 1 <= length <= LONGEST_CODE:
        raise ValueError(f"code length {length} is not between 1 and {LONGEST_CODE}")
    match code:
        case "double_metaphone":
            # The package writes a space for a sound that one of two pronunciations does not have.
            return lambda word: _cut((found.replace(" ", "") for found in _metaphone(word)), length)
        case "soundex":
            return lambda word: _cut([soundex(word)], length)
        case "nysiis":
            return lambda word: _cut([nysiis(word)], length)
        case "match_rating":
            return lambda word: _cut([match_rating_codex("".join(filter(str.isalpha, word)))], length)


def _cut(codes: Iterable[str], length: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code[:length] for code in codes if code))


def cologne(word: str) -> str:
    """Kölner Phonetik (H. J. Postel, IBM-Nachrichten 19, 1969).

    >>> cologne("Müller-Lüdenscheidt")
    '65752682'
    >>> cologne("Greta") == cologne("gerade")
    True
    """
    letters = [letter for letter in word.lower().translate(_GERMAN) if "a" <= letter <= "z"]
    neighbours = zip(["", *letters], letters, [*letters[1:], ""], strict=False)
    digits = "".join(_digit(letter, before=before, after=after) for before, letter, after in neighbours)
    once = "".join(digit for digit, _ in groupby(digits))
    return once[:1] + once[1:].replace("0", "")


_GERMAN = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "s"})

_ALWAYS = (
    dict.fromkeys("aeijouy", "0")
    | dict.fromkeys("fvw", "3")
    | dict.fromkeys("gkq", "4")
    | dict.fromkeys("mn", "6")
    | dict.fromkeys("sz", "8")
    | {"b": "1", "l": "5", "r": "7", "h": ""}
)


def _digit(letter: str, *, before: str, after: str) -> str:
    if letter in _ALWAYS:
        return _ALWAYS[letter]
    if letter == "p":
        return "3" if after == "h" else "1"
    if letter in "dt":
        return "8" if after and after in "csz" else "2"
    if letter == "x":
        return "8" if before and before in "ckq" else "48"
    # The remaining letter is c: hard before some letters, soft elsewhere and always after s and z.
    hard = "ahkloqrux" if not before else "ahkoqux"
    if before and before in "sz":
        return "8"
    return "4" if after and after in hard else "8"


Sounder = Callable[[str], str]
"""Converts folded letters to symbols."""

# Place: lips L, teeth D, palate P, velum K, glottis H. Manner: stop t, fricative f, affricate a, nasal n, liquid r,
# glide w. Voice: 0, 1.
_SOUNDS = {
    "p": "Lt0", "b": "Lt1", "t": "Dt0", "d": "Dt1", "k": "Kt0", "g": "Kt1",
    "f": "Lf0", "v": "Lf1", "s": "Df0", "z": "Df1", "S": "Pf0", "Z": "Pf1", "C": "Pa0", "J": "Pa1", "h": "Hf0",
    "m": "Ln1", "n": "Dn1", "N": "Kn1", "l": "Dr1", "r": "Pr1", "w": "Lw1", "y": "Pw1",
    "a": "x", "e": "y", "i": "y", "o": "z", "u": "z",
}  # fmt: skip

_ENGLISH = {
    "ght": "t", "^kn": "n", "^gn": "n", "^wr": "r", "^ps": "s", "^x": "z", "mb$": "m",
    "tch": "C", "sch": "S", "sh": "S", "ch": "C", "ph": "f", "th": "s", "dh": "d", "kh": "k", "gh": "g", "wh": "w",
    "rh": "r", "zh": "Z", "ck": "k", "dg(?=[eiy])": "J", "ti(?=on|an|a)": "S", "si(?=on)": "Z", "ci(?=a|o)": "S",
    "cc(?=[eiy])": "ks", "c(?=[eiy])": "s", "g(?=[eiy](?![lrv]))": "J", "qu": "kw", "q": "k", "x": "ks", "c": "k",
    "j": "J", "ng(?![aeiouy])": "N", "(?<=[^aeiouy])h(?![aeiouy])": "", "(?<=[aeiou])h$": "",
    "y(?![aeiou])": "i", "(?<=[^aeiou])e(?=s?$)": "", "w(?![aeiouy])": "u",
}  # fmt: skip
_SOUNDS_GERMAN = {
    "tsch": "C", "sch": "S", "ch": "k", "ph": "f", "th": "t", "dt": "t", "ck": "k", "pf": "f", "qu": "kw", "q": "k",
    "sp": "Sp", "st": "St", "tz": "ts", "z": "ts", "x": "ks", "c(?=[eiy])": "ts", "c": "k", "j": "y",
    "v": "f", "w": "v", "ng(?![aeiouy])": "N", "(?<=[aeiouy])h(?![aeiouy])": "", "b$": "p", "d$": "t", "g$": "k",
    "y": "i",
}  # fmt: skip


_LEADING = re.compile(r"^(?:\^|\(\?<=[^)]*\))")
"""The condition on preceding letters in a spelling rule."""


def sounder_for(language: str) -> Sounder:
    """The sounder of a language (BCP 47 tag); letter by letter if the language has no rules.

    >>> sounder_for("en")("phil") == sounder_for("en")("fill")
    True
    """
    spellings: Mapping[str, str] = {"en": _ENGLISH, "de": _SOUNDS_GERMAN}.get(primary_language(language), {})
    listed: dict[str, list[tuple[str, str]]] = {letter: [] for letter in ascii_lowercase}
    for spelling, sounds in spellings.items():
        listed[_LEADING.sub("", spelling)[0]].append((spelling, sounds))
    for letter, known in listed.items():
        if letter in _SOUNDS:
            known.append((letter, letter))
    patterns = {
        letter: re.compile("|".join(f"({spelling})" for spelling, _ in known))
        for letter, known in listed.items()
        if known  # without rules, the sounds of "c", "q" and "x" are unknown
    }
    signs = {
        letter: ["".join(_SOUNDS[sound] for sound in sounds) for _, sounds in known] for letter, known in listed.items()
    }

    def write_out(word: str) -> str:
        written: list[str] = []
        at = 0
        while at < len(word):
            letter = word[at]
            pattern = patterns.get(letter)
            match = pattern.match(word, at) if pattern else None
            if match is None:
                sign = letter  # another script: each letter is its own symbol
                at += 1
            else:
                sign = signs[letter][(match.lastindex or 1) - 1]
                at = match.end()
            # A doubled letter, or two vowels of one kind, are one sound.
            if sign and not (written and written[-1] == sign):
                written.append(sign)
        return "".join(written)

    return write_out
