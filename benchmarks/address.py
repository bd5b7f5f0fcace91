"""Check who is addressed: the product's decision on each case of a file.

    python -m benchmarks.address FILE [--failures FILE] [--kind KIND ...]

A case is a line of JSON: the NPCs and players of a table, what was said before, and what a player says now. A file
`*.txt` is the talk of a world instead, of which each labelled line is a case (benchmarks/README.md describes both). The
parts that correct names, find them and decide are those of a table, and they receive the earlier lines as a table does.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from benchmarks.runner import command, percent, percentiles, read_rows, run, to_write, write_rows
from glyphoxa.app.background import make_names
from glyphoxa.config.provider_sections import CorrectionSettings
from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId
from glyphoxa.language.roles import cast_of
from glyphoxa.names.people import CallForms
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressed, Addressing
from glyphoxa.turns.addressee import load_models
from glyphoxa.turns.questions import Questions

NOW_MS = 10_000_000
DMS: Final = ("DM", "GM", "SL")
"""Names of players who tell the story."""


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
        to_player: The player that it is meant for, if the label tells.
        world: The file that it is from.
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
    to_player: str | None = None
    world: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    judged: list[tuple[Case, Addressed]] = []
    took_ms: list[float] = []
    load_models()
    for case in read_cases(options.file):
        if not options.kind or case.kind in options.kind:
            addressed, ms = decided(case)
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
    cases = _World(path).cases if path.suffix == ".txt" else read_rows(path, _case)
    return [case.model_copy(update={"world": path.stem}) for case in cases]


_HEADER: Final = re.compile(r"(world|language|npc|player|scene): ?(.*)")
_SAID: Final = re.compile(r"([\d.]+) (\S+) > (\S+) : (.*?)(?: \{(\w+)\})?")
_SECONDS_A_WORD: Final = 0.35
_MOST_BEFORE: Final = 12


class _World:
    """Reads a file of a world.

    Attributes:
        cases: One for each labelled line.

    Raises:
        InvalidInput: The file is missing, or a line has another form.
    """

    def __init__(self, path: Path) -> None:
        self.cases: list[Case] = []
        self._language = "en"
        self._npcs: dict[str, CaseNpc] = {}
        self._players: list[CasePlayer] = []
        self._before: list[tuple[float, SaidBefore]] = []
        self._seconds = 0.0
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            raise InvalidInput(f"{path}: {error.strerror}") from error
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            if (header := _HEADER.fullmatch(line)) is not None:
                self._take(header[1], header[2])
            elif (said := _SAID.fullmatch(line)) is not None:
                self._say(*said.groups())
            else:
                valid = "a header, or: seconds speaker > addressee : text {kind}"
                raise InvalidInput(f"{path}:{number}: {line[:80]!r}; valid: {valid}")

    def _take(self, key: str, value: str) -> None:
        parts = [part.strip() for part in value.split("|")]
        match key:
            case "language":
                self._language = value
            case "npc":
                id_, name, aliases, role, *more = parts
                known = [alias for each in aliases.split(",") if (alias := each.strip())]
                self._npcs[id_] = CaseNpc(id=id_, name=name, aliases=known, role=role, address_only=bool(more))
            case "player":
                self._players.append(CasePlayer(id=parts[0], name=parts[1]))
            case "scene":
                here = {part.strip() for part in value.split(",")}
                self._npcs = {id_: npc.model_copy(update={"present": id_ in here}) for id_, npc in self._npcs.items()}
                self._before.clear()

    def _say(self, pause: str, speaker: str, to: str, text: str, kind: str | None) -> None:
        self._seconds += float(pause)
        to_all = [] if to == "-" else to.split("+")
        if kind is not None:
            before = [
                said.model_copy(update={"seconds_ago": self._seconds - at}) for at, said in self._before[-_MOST_BEFORE:]
            ]
            case = Case(
                id=f"{len(self.cases)}",
                language=self._language,
                npcs=[*self._npcs.values()],
                players=self._players,
                before=before,
                speaker=speaker,
                text=text,
                expected=[each for each in to_all if each in self._npcs],
                kind=kind,
                to_player=next((each for each in to_all if each not in self._npcs), None),
            )
            self.cases.append(case)
        self._seconds += len(text.split()) * _SECONDS_A_WORD
        said = SaidBefore(speaker=speaker, text=text, to=to_all[0] if to_all else None, seconds_ago=0)
        self._before.append((self._seconds, said))


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
        players=tuple(Player(PlayerId(each.id), each.name, dm=each.name.upper() in DMS) for each in case.players),
        scenes=(Scene(SceneId("here"), place, tuple(NpcId(npc.id) for npc in case.npcs if npc.present)),),
    )


class CaseTable(NamedTuple):
    """The people of a case, and how they are named and called."""

    campaign: Campaign
    names: TableNames
    forms: CallForms


@lru_cache(128)
def _table_of(people: str) -> CaseTable:
    campaign = campaign_of(Case.model_validate_json(people))
    settings = CorrectionSettings()
    names = make_names(campaign, settings, None, now_ms=lambda: NOW_MS, wait_until_logged=_never_logged)
    return CaseTable(campaign, names, CallForms.at_table(campaign, names.current))


def table_of(case: Case) -> CaseTable:
    """Return the table of a case; the same for all cases with the same people, whoever is present."""
    npcs = [npc.model_copy(update={"present": True}) for npc in case.npcs]
    people = Case(id="", language=case.language, players=case.players, npcs=npcs, speaker="", text="", expected=[])
    return _table_of(people.model_dump_json())


def decided(case: Case) -> tuple[Addressed, float]:
    """Return the product's decision on the last words, and its time in milliseconds."""
    campaign, names, _ = table_of(case)
    addressing = Addressing(cast_of(campaign), dms=dms_of(campaign))
    questions = Questions(names.understand, {npc.id: npc.name for npc in campaign.npcs}, addressing)
    questions.move([NpcId(npc.id) for npc in case.npcs if npc.present])
    retell(case, questions.addressing)
    text = names.correct(case.text).text
    began_ns = perf_counter_ns()
    addressed = questions.decide(PlayerId(case.speaker), text, at_ms=NOW_MS)
    return addressed, (perf_counter_ns() - began_ns) / 1e6


def dms_of(campaign: Campaign) -> frozenset[PlayerId]:
    return frozenset(player.id for player in campaign.players if player.dm)


def retell(case: Case, addressing: Addressing) -> None:
    """Tell what was said before, as a table does."""
    npcs = {npc.id for npc in case.npcs}
    for said in sorted(case.before, key=lambda said: -said.seconds_ago):
        at_ms = NOW_MS - round(said.seconds_ago * 1_000)
        if said.speaker in npcs:
            to = PlayerId(said.to) if said.to is not None else None
            addressing.answered(NpcId(said.speaker), to, said.text, at_ms=at_ms)
        else:
            to_npc = NpcId(said.to) if said.to is not None else None
            addressing.said(PlayerId(said.speaker), to_npc, said.text, at_ms=at_ms)


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
    parser.add_argument("--failures", type=to_write, metavar="FILE", help="write each wrong decision")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
