"""How a word sounds, as a short code: words that sound alike get the same one.

A language has a coder, or none: then only spelling can be compared. Codes are not cut: at four letters
"elder" and "Eldrinax" would be the same (ALTR), in full "eldernacks" and "eldrinax" are (ALTRNKS).
"""

from __future__ import annotations

from collections.abc import Callable

from doublemetaphone import doublemetaphone

LONGEST_CODE = 32

Coder = Callable[[str], tuple[str, ...]]
"""Letters without spaces or accents, in lower case, to one or two codes; none for letters it does not know."""


def coder_for(language: str, *, code_length: int = LONGEST_CODE) -> Coder | None:
    """The coder of a language given as a tag ("en", "de-AT"); None where there is none.

    Args:
        language: BCP 47 tag; only its first part counts.
        code_length: Codes are cut after so many letters.

    Raises:
        ValueError: `code_length` is not between 1 and 32.
    """
    if not 1 <= code_length <= LONGEST_CODE:
        raise ValueError(f"code length {code_length} is not between 1 and {LONGEST_CODE}")
    match primary_language(language):
        case "en":
            return lambda word: _double_metaphone(word, code_length)
        case "de":
            return lambda word: _cut((cologne(word),), code_length)
        case _:
            return None


def primary_language(tag: str) -> str:
    """The language of a tag, without its region.

    >>> primary_language("de-AT")
    'de'
    """
    return tag.replace("_", "-").split("-")[0].lower()


def _double_metaphone(word: str, length: int) -> tuple[str, ...]:
    code, other = doublemetaphone(word)
    code, other = code[:length], other[:length]
    if other and other != code:
        return (code, other) if code else (other,)
    return (code,) if code else ()


def _cut(codes: tuple[str, ...], length: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code[:length] for code in codes if code))


def cologne(word: str) -> str:
    """Kölner Phonetik (H. J. Postel, IBM-Nachrichten 19, 1969).

    >>> cologne("Müller-Lüdenscheidt")
    '65752682'
    >>> cologne("Greta") == cologne("gerade")
    True
    """
    letters = [letter for letter in word.lower().translate(_GERMAN) if "a" <= letter <= "z"]
    digits: list[str] = []
    for at, letter in enumerate(letters):
        before = letters[at - 1] if at else ""
        after = letters[at + 1] if at + 1 < len(letters) else ""
        digits.append(_digit(letter, before=before, after=after))
    runs = "".join(digits)
    once = "".join(digit for at, digit in enumerate(runs) if at == 0 or digit != runs[at - 1])
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
    # What is left is c: hard before some letters, soft elsewhere and always after s and z.
    hard = "ahkloqrux" if not before else "ahkoqux"
    if before and before in "sz":
        return "8"
    return "4" if after and after in hard else "8"
