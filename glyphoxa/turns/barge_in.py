"""When a player's voice cuts an NPC off.

Two gates: sound alone does not cut (a cough, a chair, a laugh), words do; and words that only say "I am
listening" do not. So an NPC goes on through "mm-hm" and stops at "wait".
"""

from __future__ import annotations

import re

BACKCHANNEL = frozenset(
    {"mm", "mmm", "mhm", "hm", "hmm", "uh", "huh", "um", "ah", "oh", "ooh", "aha", "ha", "haha", "wow"}
    | {"yeah", "yes", "yep", "ok", "okay", "right", "sure", "ja", "jaja", "genau", "klar", "gut", "na", "so"}
)
"""Words that keep a speaker going (English and German)."""


def cuts_off(text: str) -> bool:
    """Whether these words, said while an NPC speaks, take the floor from it."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return any(word not in BACKCHANNEL for word in words)
