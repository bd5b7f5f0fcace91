"""Words of campaigns, the same in campaign files and in tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from glyphoxa.config.campaign_blocks import RELATIONSHIP_TYPES
from glyphoxa.config.yaml_surprises import no_value, not_a_key
from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS
from glyphoxa.domain.errors import did_you_mean

_MAX_NAME: Final = 200
_DEEPEST: Final = 20


def wrong_attribute(name: str, value: object = "") -> str | None:
    """Why nothing can have such an attribute."""
    if _is_deeper(value, _DEEPEST):
        return f"{name!r} is nested more than {_DEEPEST} levels deep"
    if not name.strip():
        return "an attribute needs a name"
    if len(name) > _MAX_NAME:
        return f"the name of an attribute has at most {_MAX_NAME} characters, not {len(name)}"
    if name.casefold() == "secret":
        return "'secret' would be known to everybody as an attribute; list it under `secrets:` with its `known_by:`"
    if name.casefold() in ("known_by", "known_in", "hidden"):
        return f"{name!r} says nothing as an attribute; in a campaign file it stands beside `attributes:`"
    return None


def lost_text(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Where in an attribute YAML took a part of a text for a key, or nothing is said."""
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        at = (*path, name)
        if isinstance(name, str) and (problem := not_a_key(name)):
            yield at, problem
        elif part is None:
            yield at, no_value(str(name))
        else:
            yield from lost_text(part, at)


def hint_for(relation: str) -> str | None:
    """What to tell of a relationship type that is not among the usual ones."""
    if relation in RELATIONSHIP_TYPES:
        return None
    hint = did_you_mean(relation, RELATIONSHIP_TYPES)
    return f"relationship type {relation!r} is your own" + (f"; {hint}" if hint.startswith("did") else "")


def edge_name(source: str, relation: str, target: str) -> str:
    """The same for both directions of one that holds both ways."""
    if relation in BIDIRECTIONAL_RELATIONS and target.casefold() < source.casefold():
        source, target = target, source
    return f"{source} {relation} {target}"


def _is_deeper(value: object, levels: int) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or _is_deeper(part, levels - 1) for part in parts)
