"""Compare the facts that the product extracts from transcripts with labelled scenes.

    python -m benchmarks.extraction DIR [--turns FILE] [--extractor rules|llm] [--config FILE] [--scenes N]
        [--failures FILE]

`DIR/NAME.yaml` is a campaign file for each campaign NAME, with what is known before; `DIR/turns.jsonl`, or `FILE`, is a
transcript as for `benchmarks.recall`; a line of `DIR/gold.jsonl` is a scene, from one turn to another, with its labels.
A speaker who is the `played_by` of an entity speaks as that entity. If `DIR` has the folders `tune` and `test` instead,
the figures of both are printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

from benchmarks.recall_data import Turn, read_turns, utterances_of
from benchmarks.runner import command, percentile, positive, read_rows, run, to_write, write_rows
from glyphoxa.app.background import RULES, TalkReaders, open_talk_readers
from glyphoxa.chronicle.effects import folded
from glyphoxa.chronicle.ports import Extractor
from glyphoxa.chronicle.talk import Extraction, KnownEntity, NumberedUtterance, SceneTalk
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId
from glyphoxa.language.language_data import vocabulary_of
from glyphoxa.language.words import words

Gold = Mapping[str, Any]
_BEFORE: Final = 8
_HALVES: Final = ("tune", "test")


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, _: Path) -> dict[str, object]:
    halves = [options.directory / half for half in _HALVES]
    if not all(half.is_dir() for half in halves):
        figures, report = await _measured(options, options.directory)
        rows = [*figures.failures, *figures.refused]
    else:
        report, rows = {}, []
        for half in halves:
            figures, report[half.name] = await _measured(options, half)
            rows += [{"half": half.name, **row} for row in (*figures.failures, *figures.refused)]
    if options.failures is not None:
        write_rows(options.failures, rows)
    return report


async def _measured(options: argparse.Namespace, directory: Path) -> tuple[Figures, dict[str, object]]:
    some = {"turns": options.turns, "most_scenes": options.scenes}
    if options.extractor == "rules":
        return await measured(directory, **some)
    return await measured_with_a_model(directory, read_settings(options.config), **some)


@dataclass(slots=True)
class Count:
    """Counts for one kind of finding."""

    right: int = 0
    found: int = 0
    wanted: int = 0
    met: int = 0
    """How many of the labels were found."""

    @property
    def precision(self) -> float:
        return 100 * self.right / self.found if self.found else 100.0

    @property
    def recall(self) -> float:
        return 100 * self.met / self.wanted if self.wanted else 100.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def report(self) -> dict[str, int]:
        return {"labels": self.wanted, "met": self.met, "found": self.found, "right": self.right}


@dataclass(slots=True)
class Figures:
    known: Count = field(default_factory=Count)
    new: Count = field(default_factory=Count)
    relations: Count = field(default_factory=Count)
    facts: Count = field(default_factory=Count)
    without_evidence: int = 0
    failures: list[dict[str, object]] = field(default_factory=list)
    refused: list[dict[str, object]] = field(default_factory=list)

    def count(self, scene: Gold, found: Extraction, language: str) -> None:
        """Compare the findings in a scene with its labels."""
        names = {each.key: {folded(name) for name in (each.name, *each.aliases)} for each in found.entities}
        gold = [_names(each) for each in scene["entities"]]
        for is_known, count in ((True, self.known), (False, self.new)):
            wanted = [_names(each) for each in scene["entities"] if bool(each.get("known")) == is_known]
            mine = [each for each in found.entities if (each.known is not None) == is_known]
            count.found += len(mine)
            count.wanted += len(wanted)
            count.right += sum(any(names[each.key] & other for other in gold) for each in mine)
            count.met += sum(any(each & other for other in names.values()) for each in wanted)
            self._fails(scene, "false entity", [e.name for e in mine if not any(names[e.key] & g for g in gold)])
            self._fails(scene, "missed entity", [sorted(w) for w in wanted if not any(w & n for n in names.values())])

        def is_relation(one: Any, other: Gold) -> bool:
            source, target = _all_names(other["source"], gold), _all_names(other["target"], gold)
            ends = names[one.source], names[one.target]
            return bool(ends[0] & source and ends[1] & target) or bool(ends[0] & target and ends[1] & source)

        def is_fact(one: Any, other: Gold) -> bool:
            telling = _telling(str(other["value"]), language) & _telling(one.value, language)
            return bool(names[one.subject] & _all_names(other["subject"], gold) and telling)

        self._compare(self.relations, scene, "relationships", found.relations, is_relation)
        self._compare(self.facts, scene, "facts", found.facts, is_fact)
        for findings in (found.entities, found.relations, found.facts):
            self.without_evidence += sum(not each.evidence for each in findings)

    def _compare(
        self, count: Count, scene: Gold, kind: str, found: Sequence[Any], is_same: Callable[[Any, Gold], bool]
    ) -> None:
        """A finding is right if its content matches and some evidence is in common."""
        wanted = scene.get(kind, ())
        pairs = [
            [is_same(one, other) and bool({*_turns(one.evidence)} & {*other["evidence"]}) for other in wanted]
            for one in found
        ]
        met = [any(row[at] for row in pairs) for at in range(len(wanted))]
        count.found += len(found)
        count.wanted += len(wanted)
        count.right += sum(map(any, pairs))
        count.met += sum(met)
        self._fails(scene, f"false {kind}", [str(one) for one, row in zip(found, pairs, strict=True) if not any(row)])
        self._fails(scene, f"missed {kind}", [other for other, is_met in zip(wanted, met, strict=True) if not is_met])

    def _fails(self, scene: Gold, what: str, which: Iterable[object]) -> None:
        self.failures += [{"scene": scene["from"], "what": what, "which": each} for each in which]

    def report(self, n_scenes: int, took_ms: Sequence[float]) -> dict[str, object]:
        found = self.known.found + self.new.found
        right = self.known.right + self.new.right
        return {
            "scenes": n_scenes,
            "entity_f1_known": round(self.known.f1, 1),
            "entity_f1_new": round(self.new.f1, 1),
            "entity_precision": round(100 * right / found if found else 100.0, 1),
            "relationship_precision": round(self.relations.precision, 1),
            "relationship_recall": round(self.relations.recall, 1),
            "fact_precision": round(self.facts.precision, 1),
            "fact_recall": round(self.facts.recall, 1),
            "counts": {
                "new_names": self.new.report(),
                "relationships": self.relations.report(),
                "facts": self.facts.report(),
            },
            "without_evidence": self.without_evidence,
            "p50_ms": percentile(took_ms, 50, digits=2),
        }


def _names(entity: Gold) -> set[str]:
    return {folded(name) for name in (entity["name"], *entity.get("aliases", ()))}


def _all_names(name: str, gold: Sequence[set[str]]) -> set[str]:
    """Return all names of the entity that has this name in the scene's labels."""
    return {folded(name)}.union(*(each for each in gold if folded(name) in each))


def _telling(text: str, language: str) -> frozenset[str]:
    """Return the words of a text that are not in any sentence."""
    return frozenset(each.folded for each in words(text)) - vocabulary_of(language).stop


def _turns(evidence: Iterable[str]) -> list[str]:
    """Utterance ids contain their campaign and turn."""
    return [each.split("/", 1)[-1] for each in evidence]


def known_of(campaign: Campaign) -> list[KnownEntity]:
    """Return what a campaign's file knows, the players' characters included."""
    known = [KnownEntity(each.id, each.type, each.name, each.aliases) for each in campaign.entities]
    there = {folded(name) for each in known for name in each.names}
    known += [
        KnownEntity(EntityId(f"player-{player.id}"), "player", player.name)
        for player in campaign.players
        if not player.dm and folded(player.name) not in there
    ]
    return known


def read_gold(path: Path) -> list[Gold]:
    """
    Raises:
        InvalidInput: A line is not a scene: it needs campaign, from, to and entities with a name; relationships with
            source, target and evidence; facts with subject, value and evidence.
    """
    return read_rows(path, _checked)


def _checked(scene: Gold) -> Gold:
    """
    Raises:
        KeyError: A part is missing. `TypeError`: a part has another type.
    """
    for key in ("campaign", "from", "to", "entities"):
        scene[key]
    for kind, keys in (
        ("entities", ("name",)),
        ("relationships", ("source", "target", "evidence")),
        ("facts", ("subject", "value", "evidence")),
    ):
        for each in scene.get(kind, ()):
            for key in keys:
                each[key]
    return scene


def players_of(campaign: Campaign, session: str) -> dict[str, str]:
    """Return the entity that each speaker of a session plays, by the attributes `played_by` and `played_in`."""
    return {
        str(each.attributes["played_by"]): each.name
        for each in campaign.entities
        if "played_by" in each.attributes and session in str(each.attributes.get("played_in", session))
    }


@dataclass(frozen=True, slots=True)
class LabelledScene:
    """
    Attributes:
        known: The entities and characters of the campaign's file.
        plays: The entity that a speaker plays, by the speaker's name.
    """

    labels: Gold
    campaign: Campaign
    known: Sequence[KnownEntity]
    plays: Mapping[str, str]
    talk: SceneTalk


def read_scenes(directory: Path, turns: Path | None = None, *, most: int | None = None) -> Iterator[LabelledScene]:
    """Yield the labelled scenes of a directory, each with what was said.

    Args:
        turns: The transcript; None: that of the directory.
        most: Only the first ones; None: all.

    Raises:
        GlyphoxaError: The data cannot be read.
    """
    talk_of = read_turns(turns or directory / "turns.jsonl")
    campaigns: dict[str, tuple[Campaign, list[KnownEntity]]] = {}
    for labels in read_gold(directory / "gold.jsonl")[:most]:
        name = str(labels["campaign"])
        if name not in campaigns:
            campaign = read_campaign(directory / f"{name}.yaml").campaign
            campaigns[name] = campaign, known_of(campaign)
        campaign, known = campaigns[name]
        plays = players_of(campaign, str(labels.get("session", "")))
        talk = scene_of(labels, talk_of.get(CampaignId(name), []), campaign.language, plays)
        yield LabelledScene(labels, campaign, known, plays, talk)


def scene_of(scene: Gold, turns: Sequence[Turn], language: str, plays: Mapping[str, str]) -> SceneTalk:
    """
    Args:
        plays: The entity that a speaker plays, by the speaker's name.

    Raises:
        InvalidInput: There are no such turns.
    """
    places = {turn.id: place for place, turn in enumerate(turns)}
    try:
        first, last = places[scene["from"]], places[scene["to"]]
    except KeyError as missing:
        raise InvalidInput(f"gold.jsonl: there is no turn {missing} in campaign {scene['campaign']!r}") from None
    if last < first:
        raise InvalidInput(f"gold.jsonl: turn {scene['to']!r} stands before {scene['from']!r}, where its scene begins")
    named = [replace(turn, speaker=plays.get(turn.speaker, turn.speaker)) for turn in turns[: last + 1]]
    said = [NumberedUtterance(each, number) for number, each in enumerate(utterances_of(named), start=1)]
    session = SessionId(str(scene.get("session", "")))
    return SceneTalk(
        CampaignId(scene["campaign"]),
        session,
        language,
        tuple(said[first:]),
        tuple(said[max(first - _BEFORE, 0) : first]),
    )


async def measured(
    directory: Path, readers: TalkReaders = RULES, *, turns: Path | None = None, most_scenes: int | None = None
) -> tuple[Figures, dict[str, object]]:
    """
    Args:
        turns: The transcript; None: that of the directory.
        most_scenes: Only the first ones of the data; None: all.

    Raises:
        GlyphoxaError: The data cannot be read.
    """
    figures, took_ms = Figures(), list[float]()
    extractors: dict[str, Extractor] = {}
    for scene in read_scenes(directory, turns, most=most_scenes):
        campaign, first = scene.campaign, scene.labels["from"]
        if campaign.id not in extractors:
            extractors[campaign.id] = readers.readers(campaign)[0]
        began = perf_counter_ns()
        found = await extractors[campaign.id].extract(scene.talk, scene.known)
        took_ms.append((perf_counter_ns() - began) / 1e6)
        figures.count(scene.labels, found, campaign.language)
        figures.refused += [{"scene": first, "what": "refused", "which": each} for each in found.refused]
    return figures, figures.report(len(took_ms), took_ms)


async def measured_with_a_model(
    directory: Path, settings: Settings, *, turns: Path | None, most_scenes: int | None
) -> tuple[Figures, dict[str, object]]:
    """
    Raises:
        GlyphoxaError: The data cannot be read, or the model cannot be asked.
    """
    memory = settings.memory.model_copy(update={"chronicle": "llm"})
    async with AsyncExitStack() as stack:
        readers = await open_talk_readers(settings.model_copy(update={"memory": memory}), stack)
        figures, report = await measured(directory, readers, turns=turns, most_scenes=most_scenes)
    return figures, {**report, "refused": len(figures.refused)}


def _options() -> argparse.ArgumentParser:
    parser = command("extraction", __doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--turns", type=Path, metavar="FILE", help="the transcript; default: turns.jsonl in DIR")
    parser.add_argument("--extractor", choices=("rules", "llm"), default="rules")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings with the model; default: local")
    parser.add_argument("--scenes", type=positive, metavar="N", help="only the first N")
    parser.add_argument("--failures", type=to_write, metavar="FILE", help="write wrong, missed and refused findings")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
