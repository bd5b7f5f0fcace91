"""An NPC that speaks of itself as of somebody else, where no word can put it right (see `in_first_person`)."""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.in_character import own_names
from glyphoxa.judgement.reply import Asked, Character

_SAYS_I: Final = re.compile(r"\b(?:I|I['’]\w+|me|my|mine|we|our|us|ich|mich|mir|mein\w*|wir|uns\w*)\b", re.IGNORECASE)
_VERB: Final = r"(?:[a-z]+(?:s|ed)|did|made|knew|saw|told|can|will|may|must|[a-zäöüß]+t|weiß|kann|will|muss)"
_NO_VERB: Final = frozenset(("is", "ist", "at", "just", "yes", "that", "it", "but", "not", "nicht", "mit", "dort"))
"""Behind a name that is said by itself: "Brunhild is what they call me", "Brunhild, at your service"."""


def tells_of_itself(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module. A name alone, or a sentence that says I, is no fault."""
    own = "|".join(re.escape(name) for name in own_names(character.name, character.others))
    if re.search(rf"\b(?:I|i) (?:know|trust|met|saw|like|love|remember) (?:{own})\b(?!['’]s)", sentence):
        return Fault.THIRD_PERSON
    if _SAYS_I.search(sentence):
        return None
    found = re.match(rf"(?:{own}) ({_VERB})\b", sentence)
    return Fault.THIRD_PERSON if found is not None and found.group(1) not in _NO_VERB else None
