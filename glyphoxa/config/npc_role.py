"""What an NPC is at work, by its persona: what its first sentence says behind its name.

    You are Oskar, the blacksmith of Drumkeld.          blacksmith
    You are Sella, a calm, careful healer who listens.  careful healer
    Du bist Berta, die gute Wirtin im Goldenen Hirsch.  Wirtin

It goes up to the next small word ("of", "in", "who") or the next article. Of several words that say what it is like,
the last are kept; in German, where nouns have capitals, the first noun is the role.
"""

from __future__ import annotations

import re
from typing import Final

_ARTICLE: Final = r"(?:the|an?|der|die|das|ein|eine)"
_BEGINS: Final = rf"\s*(You are|Du bist)\s+%s(?:,?\s+{_ARTICLE}\s+|,\s+)([^.!?;:]+)"
_UNTIL: Final = re.compile(
    r"[()–—]|,\s+(?:the|an?|and|but|der|die|das|ein|eine|und|aber)\s|\s(?:of|in|at|on|from|for|with|by|to|near|who|whose"
    r"|that|von|vom|des|im|in|am|an|auf|aus|bei|beim|mit|zu|zum|zur|für|unter|über)\s",
    re.IGNORECASE,
)
_MOST_WORDS: Final = 3


def role_in(persona: str, *, name: str) -> str:
    """The role that a persona says; "" if it says none.

    Args:
        name: Of the NPC, which stands first: of "You are the mother of a smith" nothing is taken.
    """
    found = re.match(_BEGINS % re.escape(name), persona, re.IGNORECASE)
    if found is None:
        return ""
    role = _UNTIL.split(f"{found[2]} ", maxsplit=1)[0]
    if found[1].casefold() == "du bist":
        return next((word.strip(",") for word in role.split() if word[0].isupper()), "")
    words = re.split(r",\s+|\s+and\s+", role.strip(" ,"))[-1].split()
    return " ".join(words[-_MOST_WORDS:])
