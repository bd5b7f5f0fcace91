"""What was said, sentence by sentence, in a form that patterns can be laid on.

A sentence is its words in lower case and its punctuation, each behind one space; where somebody is named stands "@" and
the number of the mention. "Well, Oskar, what do you think?" is `well , @0 , what do you think` with the end `?`. German
"Sie" and "Ihr" that are not the first word keep their capital: there it tells "you" from "she".

What somebody else is quoted with is left out. What the speaker says in quotation marks (`I say: "Oskar, wait!"`) stands
for itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(r"@\d+|[^\W_]+(?:['’][^\W_]+)*|[^\w\s]")
_ENDS = frozenset(".!?…")
_QUOTED = re.compile(r"“[^”]*”|„[^“”\"]*[“”\"]|»[^«]*«|«[^»]*»|\"[^\"]*\"|(?<!\w)[‘'][^’']{2,}[’'](?!\w)")
_SAYS_SELF = re.compile(
    r"\b(?:i|ich|we|wir) (?:\w+ )?(?:say|ask|call|shout|whisper|tell|reply|answer|sag|sage|frag|frage|ruf|rufe"
    r"|flüster|flüstere)\b"
)
_SIE = re.compile(r"(?:Sie|Ihnen|Ihr|Ihre[mnrs]?|Euch|Euer|Eure[mnrs]?)")


@dataclass(frozen=True, slots=True)
class SaidSentence:
    """
    Attributes:
        text: See the module.
        end: The sign that ends it; "" for none.
    """

    text: str
    end: str

    def mentions(self) -> list[int]:
        """The numbers of those who are named, in order."""
        return [int(number) for number in re.findall(r"@(\d+)", self.text)]


def sentences_of(text: str, places: Sequence[tuple[int, int]]) -> list[SaidSentence]:
    """
    Args:
        places: Where somebody is named, in order and apart: first character and one past the last.
    """
    marked = _marked(text, places)
    made: list[SaidSentence] = []
    tokens: list[str] = []
    for token in [*_TOKEN.findall(_unquoted(marked)), "."]:
        if token in _ENDS:
            if tokens:
                made.append(SaidSentence(" ".join(tokens), token))
            elif made and "?" in token:
                made[-1] = SaidSentence(made[-1].text, "?")
            tokens = []
        else:
            tokens.append(token if tokens and _SIE.fullmatch(token) else token.lower().replace("’", "'"))
    return made


def _marked(text: str, places: Sequence[tuple[int, int]]) -> str:
    pieces: list[str] = []
    at = 0
    for number, (start, end) in enumerate(places):
        pieces += [text[at:start].replace("@", " "), f" @{number} "]
        at = end
    return "".join((*pieces, text[at:].replace("@", " ")))


def _unquoted(marked: str) -> str:
    around = _QUOTED.sub(" ", marked)
    if around == marked:
        return marked
    if not re.search(r"\w", around) or _SAYS_SELF.search(around.lower()):
        return re.sub(r"[“”„»«\"]", " ", marked)
    return around
