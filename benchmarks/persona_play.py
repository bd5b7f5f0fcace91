"""Says lines at a table of the product's own: a session for each NPC, its lines one after the other."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.grounding_data import Asked as WithEvenings
from benchmarks.grounding_play import Tables, answered, settings_of, tables, tone_parts
from benchmarks.persona_data import Asked, Line
from glyphoxa.bootstrap.engines import MouthSpec
from glyphoxa.config.provider_sections import LlmSettings
from glyphoxa.domain.turn import Fault, Outcome, Stage, TurnRecord
from glyphoxa.judgement.reply import Asked as AskedOfReply
from glyphoxa.npc.mouth import Mouth

if TYPE_CHECKING:
    from glyphoxa_processors.spoken_text import Decide

_SOUNDS = frozenset({Stage.FIRST_AUDIO, Stage.FILLER})


@dataclass(frozen=True, slots=True)
class Answer:
    """
    Attributes:
        n_tries: How often the model was asked for it.
        is_stand_in: Nothing of what the model said could be said.
    """

    line: Line
    record: TurnRecord | None
    n_tries: int
    is_stand_in: bool

    @property
    def text(self) -> str:
        return "" if self.record is None else self.record.reply

    @property
    def is_meant(self) -> bool:
        """The line was for the NPC: what is plainly out of character is answered by nobody."""
        return self.record is None or self.record.outcome is not Outcome.NOT_ADDRESSED

    @property
    def is_silent(self) -> bool:
        return self.record is None or _SOUNDS.isdisjoint(self.record.stages)

    @property
    def first_word_ms(self) -> int | None:
        stages = {} if self.record is None else self.record.stages
        if Stage.FIRST_TOKEN not in stages or Stage.ADDRESSED not in stages:
            return None
        return stages[Stage.FIRST_TOKEN] - stages[Stage.ADDRESSED]


@dataclass(slots=True)
class _Counts:
    """Of one turn, what its record does not tell."""

    tries: int = 0
    stand_ins: int = 0


async def play(
    asked: Asked, directory: Path, llm: LlmSettings, tell: Callable[[str], None], *, is_guarded: bool = True
) -> AsyncIterator[Answer]:
    """All lines of one campaign.

    Args:
        is_guarded: No sentence that tells an NPC's own secret is said; otherwise the model alone keeps it.
    """
    settings = settings_of(directory / asked.campaign.id / "data", llm)
    if not is_guarded:
        settings = settings.model_copy(update={"context": settings.context.model_copy(update={"guard_secrets": False})})
    async with tables(settings, WithEvenings(asked.campaign, (), ()), tell=tell) as at:
        for npc, lines in itertools.groupby(asked.lines, key=lambda line: line.npc.id):
            async for answer in _at_one_table(at, tuple(lines), number=npc):
                yield answer


async def _at_one_table(at: Tables, lines: Sequence[Line], *, number: str) -> AsyncIterator[Answer]:
    counts = _Counts()
    npc = lines[0].npc
    scene = next(each for each in at.campaign.scenes if npc.id in each.npcs)
    player = at.campaign.players[0]

    async def open_mouth(order: MouthSpec) -> Mouth:
        from glyphoxa_pipelines import cascaded

        parts = tone_parts(order)

        def new_check(asked: AskedOfReply) -> Decide:
            counts.tries += bool(asked.question)  # between two turns one is made that nobody uses
            return parts.new_check(asked)

        def stand_in(question: str, fault: Fault | None, told: Sequence[str]) -> str:
            counts.stand_ins += 1
            return parts.stand_in(question, fault, told)

        return await cascaded.build(replace(parts, new_check=new_check, stand_in=stand_in))

    async with at.sitting(scene, player, number, mouth=open_mouth) as table:
        for line in lines:
            before = replace(counts)
            record = await answered(table, player, line.text, npc=npc)
            yield Answer(line, record, counts.tries - before.tries, counts.stand_ins > before.stand_ins)
