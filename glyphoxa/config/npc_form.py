"""What of an NPC in a campaign file is no mistake, and makes it play badly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from glyphoxa.config.campaign_blocks import ExampleBlock, NpcBlock
from glyphoxa.config.located_yaml import YamlPath
from glyphoxa.context.budgets import PERSONA_TOKENS
from glyphoxa.context.wording import SAYS
from glyphoxa.judgement.in_character import InCharacter
from glyphoxa.speech.language.phonetics import primary_language

_SECOND_PERSON: Final = {
    "en": re.compile(r"\byou(?:r|rs|rself|['’]\w+)?\b", re.IGNORECASE),
    "de": re.compile(r"\b(?:du|dich|dir|dein\w*|ihr|euch|euer|eure\w*|Sie|Ihnen)\b"),
}
_SHOWN: Final = 40


def remarks_on(block: NpcBlock, *, name: str, language: str) -> Iterator[tuple[YamlPath, str]]:
    """Each with where in the block it is."""
    yield from _of_persona(block.persona, name=name, language=primary_language(language))
    if not block.examples:
        text = f"{name!r} has no `examples`: default ones are used (glyphoxa campaign prompt FILE --npc {name!r})"
        yield ("entity",), text
    for n, example in enumerate(block.examples):
        yield from _of_example(example, ("examples", n), name)


def _of_persona(persona: str, *, name: str, language: str) -> Iterator[tuple[YamlPath, str]]:
    you_are = f"You are {name}, ..." if language != "de" else f"Du bist {name}, ..."
    if not persona:
        yield ("entity",), f"{name!r} has no `persona`: say who it is and how it speaks ({you_are!r})"
        return
    second_person = _SECOND_PERSON.get(language)
    if second_person is not None and not second_person.search(persona.casefold() if language == "de" else persona):
        begins = persona if len(persona) <= _SHOWN else f"{persona[:_SHOWN].rstrip()}..."
        text = f"the persona of {name!r} is not in the second person ({begins!r}): write {you_are!r}"
        yield ("persona",), text
    if len(persona) > PERSONA_TOKENS * 4:
        text = (
            f"the persona of {name!r} has {len(persona):,} characters: more than {PERSONA_TOKENS * 4:,} crowd out the "
            "talk in a small model; facts about it belong under its entity's `attributes:`"
        )
        yield ("persona",), text


def _of_example(example: ExampleBlock, at: YamlPath, name: str) -> Iterator[tuple[YamlPath, str]]:
    if (says := SAYS.match(example.said)) is not None:
        text = f"`said` says already who speaks ({says.group().strip()!r}): write only the words, the speaker is added"
        yield (*at, "said"), text
    if re.match(r"(?:facts|fakten)\s*:", example.facts, re.IGNORECASE):
        yield (*at, "facts"), "`facts` begins with its label: write only the facts, the label is added"
    if re.match(r"remembered\s*:", example.remembered, re.IGNORECASE):
        yield (*at, "remembered"), "`remembered` begins with its label: write only what was said, the label is added"
    if InCharacter(name).clean(example.reply) != " ".join(example.reply.split()):
        text = (
            f"{example.reply!r} is not what {name!r} would say aloud: no stage direction, no name in front, no markup, "
            "in the first person"
        )
        yield (*at, "reply"), text
