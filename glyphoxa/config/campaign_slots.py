"""Relationships of which one can hold at a time, such as where somebody lives."""

from __future__ import annotations

from collections.abc import Iterator

from glyphoxa.config.campaign_blocks import CampaignDocument
from glyphoxa.config.located_yaml import LocatedYaml, YamlPath
from glyphoxa.world.api import DEFAULT_RULES


def filled_twice(source: LocatedYaml, document: CampaignDocument) -> Iterator[tuple[YamlPath, str]]:
    """Of a functional relationship only the last would hold, and nobody would know why."""
    first: dict[tuple[str, str], int] = {}
    for i, block in enumerate(document.relationships):
        rule = document.slots.get(block.type) or DEFAULT_RULES.get(block.type)
        if rule not in ("functional", "functional_object"):
            continue
        end, many = (block.source, "target") if rule == "functional" else (block.target, "source")
        line = source.line(("relationships", first.setdefault((block.type, end.casefold()), i)))
        if first[block.type, end.casefold()] != i:
            yield (
                ("relationships", i),
                f"only one {many} of {block.type} can hold for {end!r}, and line {line} has one already "
                f"(if several can, write `slots: {{{block.type}: many}}`)",
            )
