"""A first campaign file: small, with a comment at each place where its author goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is known of a campaign before anything is written.

    Attributes:
        language: A tag such as en; a text in German begins `de`.
    """

    name: str
    language: str
    npc: str
    player: str


def template(beginning: Beginning) -> str:
    """The text of a campaign file that can be played as it is."""
    wanted = beginning.language.split("-")[0]
    text = _TEXTS.get(wanted, _TEXTS["en"])
    for mark, value in (
        ("CAMPAIGN", beginning.name),
        ("LANGUAGE", beginning.language),
        ("NPC", beginning.npc),
        ("PLAYER", beginning.player),
    ):
        # Bare in a folded text; elsewhere as a JSON string, which is a YAML string whatever is in it.
        text = text.replace(f"<<{mark}>>", value).replace(f"<{mark}>", json.dumps(value, ensure_ascii=False))
    return text


_ENGLISH: Final = """\
# A campaign in one file. Change what you like, then: glyphoxa campaign check FILE
# All that can stand here: docs/campaign-file.md. How to write an NPC: docs/your-first-npc.md.
campaign:
  name: <CAMPAIGN>
  language: <LANGUAGE>

entities:                       # people, places and things; what stands here everybody may know
  - name: <NPC>
    type: npc
    aliases: [the innkeeper]    # what players call her, too
    attributes:
      occupation: innkeeper
      common_knowledge: A bed for the night costs four silver pieces.
  - name: The Lantern
    type: location
    attributes:
      description: The Lantern is a low inn at the crossroads.

relationships:
  - {source: <NPC>, type: LOCATED_AT, target: The Lantern}

npcs:                           # who can speak
  - entity: <NPC>
    voice: old_woman            # hear the voices: glyphoxa models voices
    persona: >-
      You are <<NPC>>, the innkeeper of The Lantern. You have seen many travellers and few surprises. You speak dryly
      and warmly.

players:                        # the humans, by their characters
  - name: <PLAYER>

scenes:                         # the first one opens the session
  - location: The Lantern
    npcs: [<NPC>]
    time_of_day: evening
    description: A fire burns low and the last guests have gone to bed.
    read_aloud: Rain follows you through the door; inside it is warm and nearly empty.

secrets:                        # in the mind of these NPCs and of nobody else
  - text: You hid a letter for a stranger under the stairs.
    known_by: [<NPC>]
"""

_GERMAN: Final = """\
# Eine Kampagne in einer Datei. Ändere, was du magst, dann: glyphoxa campaign check DATEI
# Alles, was hier stehen kann: docs/campaign-file.md. Wie man einen NSC schreibt: docs/your-first-npc.md.
campaign:
  name: <CAMPAIGN>
  language: <LANGUAGE>

entities:                       # Leute, Orte und Dinge; was hier steht, darf jeder wissen
  - name: <NPC>
    type: npc
    aliases: [die Wirtin]       # wie die Spieler sie sonst nennen
    attributes:
      occupation: Wirtin
      common_knowledge: Ein Bett für die Nacht kostet vier Silberstücke.
  - name: Die Laterne
    type: location
    attributes:
      description: Die Laterne ist ein niedriges Gasthaus am Kreuzweg.

relationships:
  - {source: <NPC>, type: LOCATED_AT, target: Die Laterne}

npcs:                           # wer sprechen kann
  - entity: <NPC>
    voice: old_woman            # die Stimmen hören: glyphoxa models voices
    persona: >-
      Du bist <<NPC>>, die Wirtin der Laterne. Du hast viele Reisende gesehen und wenig Neues. Du sprichst trocken und
      herzlich.

players:                        # die Menschen, mit dem Namen ihrer Figur
  - name: <PLAYER>

scenes:                         # mit der ersten beginnt die Sitzung
  - location: Die Laterne
    npcs: [<NPC>]
    time_of_day: Abend
    description: Das Feuer ist fast herunter, die letzten Gäste sind zu Bett gegangen.
    read_aloud: Der Regen folgt euch durch die Tür; drinnen ist es warm und fast leer.

secrets:                        # im Kopf dieser NSC, und in keinem anderen
  - text: Du hast für einen Fremden einen Brief unter der Treppe versteckt.
    known_by: [<NPC>]
"""

_TEXTS: Final = {"en": _ENGLISH, "de": _GERMAN}
