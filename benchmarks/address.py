"""Check who is addressed: the product's decision on each case of a file.

    python -m benchmarks.address FILE [--failures FILE] [--kind KIND ...] [--words]

A case is a line of JSON: the NPCs and players of a table, what was said before, and what a player says now. The parts
that find names and decide are those of a table. They receive the earlier lines as a table sends them: a player whom an
NPC answered is in conversation with it. The product finds out by itself whether words were meant for another player.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy import float32
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from benchmarks.runner import command, local_embeddings, percent, percentiles, read_rows, run, to_write, write_rows
from glyphoxa.app.background import make_names
from glyphoxa.config.provider_sections import CorrectionSettings
from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId
from glyphoxa.language.roles import cast_of
from glyphoxa.turns.address import Addressed, Addressing, Embed, Expertise
from glyphoxa.turns.questions import Questions

NOW_MS = 10_000_000


class CaseNpc(BaseModel):
    """`address_only`: it answers only players who call it."""

    id: str
    name: str
    aliases: list[str] = []
    role: str = ""
    present: bool = True
    address_only: bool = False


class CasePlayer(BaseModel):
    id: str
    name: str


class SaidBefore(BaseModel):
    """`to`: who answered or was addressed; None for nobody."""

    speaker: str
    text: str
    to: str | None = None
    seconds_ago: float = Field(ge=0)


class Case(BaseModel):
    """
    Attributes:
        expected: Ids of the NPCs that should answer, the first speaker first; empty for nobody.
        kind: For figures by kind; "" for none.
    """

    id: str
    language: str = "en"
    npcs: list[CaseNpc]
    players: list[CasePlayer]
    before: list[SaidBefore] = []
    speaker: str
    text: str
    expected: list[str]
    kind: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    judged: list[tuple[Case, Addressed]] = []
    took_ms: list[float] = []
    embed = None if options.words else _embeddings()
    for case in read_cases(options.file):
        if not options.kind or case.kind in options.kind:
            addressed, ms = decided(case, embed)
            judged.append((case, addressed))
            took_ms.append(ms)
    if options.failures is not None:
        write_rows(options.failures, (_row(*pair) for pair in judged if verdict(*pair) != "right"))
    return {
        **figures(judged),
        "by_language": _by(judged, [case.language for case, _ in judged]),
        "by_kind": _by(judged, [case.kind or "-" for case, _ in judged]),
        **percentiles(took_ms, 50, 99),
    }


def read_cases(path: Path) -> list[Case]:
    """
    Raises:
        InvalidInput: The file is missing, or a line is not a case.
    """
    return read_rows(path, _case)


def _case(row: dict[str, Any]) -> Case:
    try:
        return Case.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def campaign_of(case: Case) -> Campaign:
    """Return a campaign with everybody of the case, and a scene with the NPCs that are present."""
    npcs = tuple(
        Npc(
            NpcId(npc.id),
            EntityId(npc.id),
            npc.name,
            f"You are {npc.name}.",
            aliases=tuple(npc.aliases),
            role=npc.role,
            address_only=npc.address_only,
        )
        for npc in case.npcs
    )
    place = EntityId("the-place")
    return Campaign(
        CampaignId("case"),
        "Case",
        case.language,
        entities=(Entity(place, "location", "the place"), *(Entity(n.entity_id, "npc", n.name) for n in npcs)),
        relationships=(),
        npcs=npcs,
        players=tuple(Player(PlayerId(player.id), player.name) for player in case.players),
        scenes=(Scene(SceneId("here"), place, tuple(NpcId(npc.id) for npc in case.npcs if npc.present)),),
    )


def decided(case: Case, embed: Embed | None = None) -> tuple[Addressed, float]:
    """Return the product's decision on the last words, and its time in milliseconds."""
    campaign = campaign_of(case)
    names = make_names(campaign, CorrectionSettings(), None, now_ms=lambda: NOW_MS, wait_until_logged=_never_logged)
    by_meaning = None if embed is None else Expertise.of(campaign, embed).fitting
    addressing = Addressing(cast_of(campaign), by_meaning)
    questions = Questions(names.understand, {npc.id: npc.name for npc in campaign.npcs}, addressing)
    questions.move([NpcId(npc.id) for npc in case.npcs if npc.present])
    npcs, players = {npc.id for npc in case.npcs}, {player.id for player in case.players}
    for said in sorted(case.before, key=lambda said: -said.seconds_ago):
        at_ms = NOW_MS - round(said.seconds_ago * 1_000)
        if said.speaker in npcs:
            if said.to in players:
                questions.addressing.remember(PlayerId(str(said.to)), NpcId(said.speaker), at_ms=at_ms)
        elif said.to in npcs:
            questions.addressing.remember(PlayerId(said.speaker), NpcId(str(said.to)), at_ms=at_ms)
        else:
            player = PlayerId(said.speaker)
            questions.passed(player, questions.decide(player, said.text, at_ms=at_ms), at_ms=at_ms)
    began_ns = perf_counter_ns()
    addressed = questions.decide(PlayerId(case.speaker), case.text, at_ms=NOW_MS)
    return addressed, (perf_counter_ns() - began_ns) / 1e6


def _embeddings() -> Embed:
    """Return the local model. A text is embedded once, because the trades are the same in all cases."""
    minilm = local_embeddings()
    known: dict[str, NDArray[float32]] = {}

    def embed(texts: Sequence[str]) -> NDArray[float32]:
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            known.update(zip(new, minilm.embed(new), strict=True))
        return np.stack([known[text] for text in texts])

    return embed


async def _never_logged(_: object) -> bool:
    return False


def verdict(case: Case, addressed: Addressed) -> str:
    """Return right, false_answer, missed or wrong_npc, for the first speaker only."""
    lead = case.expected[0] if case.expected else None
    if addressed.npc == lead:
        return "right"
    if lead is None:
        return "false_answer"
    return "missed" if addressed.npc is None else "wrong_npc"


def figures(judged: Iterable[tuple[Case, Addressed]]) -> dict[str, float | int | None]:
    """Return shares in percent; None for a share of nothing."""
    verdicts: Counter[str] = Counter()
    for_nobody, seconds, seconds_right = 0, 0, 0
    for case, addressed in judged:
        verdicts[verdict(case, addressed)] += 1
        for_nobody += not case.expected
        if len(case.expected) > 1:
            seconds += 1
            seconds_right += addressed.second == case.expected[1]
    n = sum(verdicts.values())
    return {
        "cases": n,
        "accuracy": percent(verdicts["right"], n),
        "false_answers": percent(verdicts["false_answer"], for_nobody),
        "missed": percent(verdicts["missed"], n - for_nobody),
        "wrong_npc": percent(verdicts["wrong_npc"], n - for_nobody),
        "second_right": percent(seconds_right, seconds),
    }


def _by(judged: Sequence[tuple[Case, Addressed]], groups: Sequence[str]) -> dict[str, dict[str, float | int | None]]:
    grouped: dict[str, list[tuple[Case, Addressed]]] = defaultdict(list)
    for pair, group in zip(judged, groups, strict=True):
        grouped[group].append(pair)
    return {group: figures(pairs) for group, pairs in sorted(grouped.items())}


def _row(case: Case, addressed: Addressed) -> dict[str, Any]:
    told = {"id": case.id, "kind": case.kind, "text": case.text, "expected": case.expected}
    return {**told, "npc": addressed.npc, "reason": addressed.reason}


def _options() -> argparse.ArgumentParser:
    parser = command("address", __doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="a case a line, as benchmarks/data/address/tune.jsonl")
    parser.add_argument("--kind", action="append", metavar="KIND", help="only cases of this kind; may be repeated")
    parser.add_argument("--words", action="store_true", help="without the embeddings model")
    parser.add_argument("--failures", type=to_write, metavar="FILE", help="write each wrong decision")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
