"""What the DM commands aloud: that NPCs are quiet, or may speak again. In English and German, at any table.

A command is all that is said, and says whom it is for: "Grimjaw, be quiet." Everything else is talk.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from glyphoxa.domain.commands import Mute, StopAll, TableCommand, Unmute
from glyphoxa.domain.ids import NpcId
from glyphoxa.turns.mention import AddresseeMention

_What = Literal["mute", "unmute", "stop"]

_QUIET: Final = (
    r"(?:please )?(?:be (?:quiet|silent|still)|quiet|silence|hush|shut up|stop talking|don't (?:speak|talk|answer)"
    r"|keep quiet)(?: now| please)*"
    r"|(?:bitte )?(?:sei|seid) (?:bitte |jetzt |mal )*(?:still|leise|ruhig)"
    r"|(?:bitte )?(?:schweig|schweige|schweigt|ruhe)|halt den mund|haltet den mund"
)
_SPEAK: Final = (
    r"you (?:may|can) (?:speak|talk|answer)(?: again| now)*|(?:speak|talk) again"
    r"|(?:du darfst|du kannst|ihr dürft|ihr könnt) (?:jetzt |wieder )*(?:sprechen|reden|antworten)"
    r"|(?:sprich|rede|sprecht|redet) wieder"
)
_STOP: Final = r"stop(?: now| please)*|stopp|halt|aufhören|hört auf"
_GO_ON: Final = r"continue|go on|carry on|weiter|macht weiter|fahrt fort"
_ALL: Final = (
    r"everyone|everybody|all of you|you all|all (?:npcs|characters)|alle|ihr alle|alle zusammen|alle npcs|jeder"
)
_OF_ALL: Final[Sequence[tuple[_What, str]]] = (
    ("mute", _QUIET),
    ("unmute", f"{_SPEAK}|{_GO_ON}"),
    ("stop", _STOP),
)
_OF_ONE: Final[Sequence[tuple[_What, str]]] = (("mute", _QUIET), ("unmute", _SPEAK))
_NAMED: Final[Sequence[tuple[_What, str]]] = (("unmute", r"unmute"), ("mute", r"mute"))

_TO_ALL: Final = tuple(
    (what, re.compile(rf"(?:{_ALL}) (?:{how})|(?:{how}) (?:{_ALL})")) for what, how in _OF_ALL
) + tuple((what, re.compile(rf"{verb} (?:{_ALL})")) for what, verb in _NAMED)
_TO_ONE: Final = tuple((what, re.compile(rf"(?P<who>.+?) (?:{how})|(?:{how}) (?P<behind>.+)")) for what, how in _OF_ONE)
_WITH_VERB: Final = tuple((what, re.compile(rf"{verb} (?P<who>.+)")) for what, verb in _NAMED)
_LONGEST_NAME: Final = 5
"""Words."""


def spoken_command(text: str, mentions: Sequence[AddresseeMention]) -> TableCommand | None:
    """What these words command; None when they are talk.

    Args:
        mentions: Whose names are in them.
    """
    said = _plain(text)
    for what, pattern in _TO_ALL:
        if pattern.fullmatch(said):
            return _command(what, None)
    npc = mentions[0].npc if len({mention.npc for mention in mentions}) == 1 else None
    if npc is None:
        return None
    for what, pattern in _TO_ONE:
        if (found := pattern.fullmatch(said)) and _is_called(found["who"] or found["behind"], mentions):
            return _command(what, npc)
    for what, pattern in _WITH_VERB:
        if (found := pattern.fullmatch(said)) and _is_name(found["who"]):
            return _command(what, npc)
    return None


def _command(what: _What, npc: NpcId | None) -> TableCommand:
    if what == "stop":
        return StopAll()
    return Mute(npc) if what == "mute" else Unmute(npc)


def _is_called(who: str, mentions: Sequence[AddresseeMention]) -> bool:
    """Called, and not told of: "Grimjaw told them: be quiet" commands nothing."""
    return any((mention.is_vocative and _is_name(who)) or who == _plain(mention.name) for mention in mentions)


def _is_name(who: str) -> bool:
    return who.count(" ") < _LONGEST_NAME


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+(?:['’][^\W_]+)?", text.casefold())).replace("’", "'")
