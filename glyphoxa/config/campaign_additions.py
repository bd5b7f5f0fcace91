"""What a game master adds to a campaign file in a form: its fields, as the blocks that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from glyphoxa.config.campaign_insertion import Insertion
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, did_you_mean

Form = Mapping[str, str]


def additions(form: Form, campaign: Campaign | None) -> Sequence[Insertion]:
    """
    Args:
        form: Of the kind `add`: one of `KINDS`. What is empty is left out.
        campaign: As the file describes it now; None while it has mistakes.

    Raises:
        InvalidInput: There is no such kind, or what it cannot do without is missing.
    """
    kind = form.get("add", "")
    if kind not in KINDS:
        raise InvalidInput(f"nothing of kind {kind!r} can be added, {did_you_mean(kind, KINDS)}")
    return KINDS[kind](form, campaign)


def _person(form: Form, campaign: Campaign | None) -> Sequence[Insertion]:
    """An NPC that speaks: an entity, the NPC, and its place in a scene."""
    name = _need(form, "name", "an NPC has a name")
    attributes = _filled({"occupation": _field(form, "occupation"), "description": _field(form, "description")})
    entity = _filled({"name": name, "type": "npc", "aliases": _names(form, "aliases"), "attributes": attributes})
    npc = _filled({"entity": name, "voice": _field(form, "voice"), "persona": _field(form, "persona")})
    made = [Insertion(("entities",), entity), Insertion(("npcs",), npc)]
    if scene := _field(form, "scene"):
        ids = [] if campaign is None else [str(each.id) for each in campaign.scenes]
        if scene not in ids:
            raise InvalidInput(f"there is no scene {scene!r}, {did_you_mean(scene, ids)}")
        made.append(Insertion(("scenes", ids.index(scene), "npcs"), name))
    return made


def _entity(form: Form, _: Campaign | None) -> Sequence[Insertion]:
    entity = {
        "name": _need(form, "name", "a thing has a name"),
        "type": _need(form, "type", "a thing has a type"),
        "aliases": _names(form, "aliases"),
        "attributes": _filled({"description": _field(form, "description")}),
        "known_by": _names(form, "known_by"),
    }
    return [Insertion(("entities",), _filled(entity))]


def _relationship(form: Form, _: Campaign | None) -> Sequence[Insertion]:
    relationship = {
        "source": _need(form, "source", "a relation leads from something"),
        "type": _need(form, "type", "a relation has a type, such as KNOWS"),
        "target": _need(form, "target", "a relation leads to something"),
        "known_by": _names(form, "known_by"),
    }
    return [Insertion(("relationships",), _filled(relationship))]


def _player(form: Form, _: Campaign | None) -> Sequence[Insertion]:
    player: dict[str, object] = {"name": _need(form, "name", "a player has a name: that of the character")}
    if form.get("dm"):
        player["dm"] = True
    return [Insertion(("players",), player)]


def _scene(form: Form, campaign: Campaign | None) -> Sequence[Insertion]:
    """At a place that is made if there is none of that name."""
    place = _need(form, "location", "a scene has a place")
    known = set() if campaign is None else {each.name.casefold() for each in campaign.entities}
    made = [] if place.casefold() in known else [Insertion(("entities",), {"name": place, "type": "location"})]
    texts = {part: _field(form, part) for part in ("time_of_day", "description", "read_aloud")}
    scene = {"location": place, "npcs": _names(form, "npcs"), **_filled(texts)}
    return [*made, Insertion(("scenes",), scene)]


def _secret(form: Form, _: Campaign | None) -> Sequence[Insertion]:
    secret = {
        "text": _need(form, "text", "a secret has words"),
        "known_by": list(_names(form, "known_by")),
        "about": _field(form, "about"),
    }
    return [Insertion(("secrets",), _filled(secret))]


KINDS: Final[Mapping[str, Callable[[Form, Campaign | None], Sequence[Insertion]]]] = {
    "person": _person,
    "entity": _entity,
    "relationship": _relationship,
    "player": _player,
    "scene": _scene,
    "secret": _secret,
}


def _field(form: Form, name: str) -> str:
    """On one line: a form's text area ends its lines with CR LF, which no author means."""
    return " ".join(form.get(name, "").split())


def _need(form: Form, name: str, why: str) -> str:
    if value := _field(form, name):
        return value
    raise InvalidInput(f"{name} is empty: {why}")


def _names(form: Form, name: str) -> list[str]:
    """Of a list with commas."""
    return [each.strip() for each in _field(form, name).split(",") if each.strip()]


def _filled(value: Mapping[str, object]) -> dict[str, object]:
    return {name: each for name, each in value.items() if each not in ("", [], {})}
