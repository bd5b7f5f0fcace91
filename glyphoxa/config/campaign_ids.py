"""Who is who in a campaign: an id means one thing, or the words of one are taken for another's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from glyphoxa.config.located_yaml import YamlPath
from glyphoxa.domain.campaign import Entity, Npc, Player

RESERVED: Final = {"dm": "the game master"}


def wrong_ids(
    entities: Iterable[Entity], npcs: Sequence[Npc], players: Sequence[Player]
) -> Iterator[tuple[YamlPath, str]]:
    """What is wrong, and where.

    Args:
        entities: With those that were made of the players.
        npcs, players: As they stand in the file, none left out.
    """
    by_id: dict[str, Entity] = {entity.id: entity for entity in entities}
    speakers: dict[str, str] = {}
    for at, npc in (*_numbered("npcs", npcs), *_numbered("players", players)):
        kind = "NPC" if isinstance(npc, Npc) else "player"
        if npc.id in RESERVED:
            yield at, f"the id {npc.id!r} of {kind} {npc.name!r} is that of {RESERVED[npc.id]}; give another `id`"
        elif npc.id in speakers:
            yield at, f"{kind} {npc.name!r} has the id {npc.id!r}, which {speakers[npc.id]} has; give another `id`"
        elif (other := _other(npc, by_id)) is not None:
            text = f"{kind} {npc.name!r} has the id {npc.id!r}, which is that of the entity {other.name!r}"
            yield at, f"{text}; give another `id`"
        speakers.setdefault(npc.id, f"{kind} {npc.name!r}")


def _numbered(part: str, speakers: Sequence[Npc | Player]) -> Iterator[tuple[YamlPath, Npc | Player]]:
    for n, speaker in enumerate(speakers):
        yield (part, n), speaker


def _other(speaker: Npc | Player, by_id: Mapping[str, Entity]) -> Entity | None:
    """The entity that has the speaker's id and is not the speaker."""
    found = by_id.get(speaker.id)
    return None if found is None or found.name.casefold() == speaker.name.casefold() else found
