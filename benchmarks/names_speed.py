"""How long the inline stage takes, and a change of one name, in small and in large campaigns.

    python -m benchmarks.names_speed [--names 1000 10000] [--words 21] [--changes 300]

Sentences are the clean ones of the spoken set, joined by "and" and cut to so many words; each is corrected once, so
that nothing is remembered of it. The names are those of the set, and invented ones to fill up. Timed as in a live
session: everything that is there to stay is kept from the garbage collector (`gc.freeze`). The last line printed is
a JSON object: for each number of names `p50_us` and `p99_us` of a sentence, `update_p50_ms` and `update_p99_ms` of
one name in the index, `follow_p50_ms` and `follow_p99_ms` of an entity that was changed in the graph until everything
at a table (corrector, key terms) goes by it, all on the table's own thread, and `build_ms`. The graph is a
twin in memory: the database is asked beside that thread.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from time import perf_counter_ns
from typing import cast

from benchmarks.names import percentile, read_lines
from benchmarks.spoken_names.dataset import HERE, read_names
from glyphoxa.domain.campaign import Campaign, Entity, Player, Scene
from glyphoxa.domain.events import SceneChanged
from glyphoxa.domain.ids import CampaignId, EntityId, PlayerId, SceneId
from glyphoxa.names.followed import NamesChanged
from glyphoxa.names.ports import LearnedNames
from glyphoxa.names.table_names import TableNames
from glyphoxa.speech.correction.corrector import Corrector
from glyphoxa.speech.language.vocabulary import vocabulary_of
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer

_WARM_UP = 50
_ONSETS = ("b", "dr", "f", "gr", "k", "l", "m", "n", "r", "s", "t", "thr", "v", "w", "z")
_VOWELS = ("a", "e", "i", "o", "u", "ae", "ia", "or")
_CODAS = ("n", "l", "r", "th", "sk", "nd", "m", "x")


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    sentences = _sentences(options.words)
    print(json.dumps({str(n): _measured(n, sentences, options.changes) for n in options.names}))
    return 0


def _measured(n_names: int, sentences: Sequence[str], changes: int) -> dict[str, float]:
    spoken = [Entry(name.name, EntityId(name.name), name.type) for name in read_names()]
    entries = [*spoken, *_many_names(max(0, n_names - len(spoken)))][:n_names]
    began = perf_counter_ns()
    gazetteer = Gazetteer.build(entries)
    build_ms = (perf_counter_ns() - began) / 1e6
    corrector = Corrector(gazetteer)
    for sentence in sentences[:_WARM_UP]:
        corrector.correct(sentence)
    gc.collect()
    gc.freeze()
    sentence_us: list[float] = []
    for sentence in sentences[_WARM_UP:]:
        began = perf_counter_ns()
        corrector.correct(sentence)
        sentence_us.append((perf_counter_ns() - began) / 1e3)
    update_ms: list[float] = []
    for entry in islice(_many_names(changes), changes):
        began = perf_counter_ns()
        gazetteer = gazetteer.with_entry(Entry(f"New {entry.name}", EntityId(f"new-{entry.entity_id}"), "npc"))
        update_ms.append((perf_counter_ns() - began) / 1e6)
    gc.unfreeze()
    follow_ms = asyncio.run(_followed(entries, changes))
    return {
        "p50_us": round(percentile(sentence_us, 50), 1),
        "p99_us": round(percentile(sentence_us, 99), 1),
        "update_p50_ms": round(percentile(update_ms, 50), 3),
        "update_p99_ms": round(percentile(update_ms, 99), 3),
        "follow_p50_ms": round(percentile(follow_ms, 50), 3),
        "follow_p99_ms": round(percentile(follow_ms, 99), 3),
        "build_ms": round(build_ms, 1),
    }


class _Graph:
    """A `LearnedNames`, as far as it is read by who follows names."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.held = {entry.entity_id: entry for entry in entries}

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        return [self.held[each] for each in (self.held if entities is None else entities) if each in self.held]


async def _followed(entries: Sequence[Entry], changes: int) -> list[float]:
    """Milliseconds of each of so many changes: renamed, with an alias, with a wrong form; new; gone."""
    place = entries[0].entity_id
    campaign = Campaign(
        CampaignId("town"),
        "The town",
        "en",
        tuple(Entity(entry.entity_id, entry.entity_type, entry.name) for entry in entries),
        (),
        (),
        (Player(PlayerId("hanna"), "Hanna"),),
        (Scene(SceneId("gate"), place, (), f"{entries[1].name} stands at the gate."),),
    )
    table = TableNames(campaign, now_ms=lambda: 0)
    table.on(SceneChanged(campaign.scenes[0], 0))
    graph = _Graph(entries)
    followed = table.following(cast("LearnedNames", graph))
    await followed.take(NamesChanged(None))
    gc.collect()
    gc.freeze()
    took_ms: list[float] = []
    for n in range(changes):
        old = entries[(n * 7919) % len(entries)]
        new = Entry(f"New {old.name}", EntityId(f"new-{n}"), "npc")
        changed = (
            replace(old, name=f"{old.name}or"),
            replace(old, aliases=(f"{old.name}ian",)),
            replace(old, learned=(f"{old.name[:3]} {old.name[3:]}el",)),
            new,
        )[n % 4]
        graph.held[changed.entity_id] = changed
        if n % 8 == 7:
            del graph.held[changed.entity_id]
            changed = graph.held.pop(EntityId(f"new-{n - 4}"))
        began = perf_counter_ns()
        await followed.take(NamesChanged(frozenset({changed.entity_id})))
        took_ms.append((perf_counter_ns() - began) / 1e6)
    gc.unfreeze()
    return took_ms


def _sentences(n_words: int) -> list[str]:
    lines = [line for split in ("tune", "test") for line in read_lines(HERE / f"C-{split}.txt")]
    ordinary = vocabulary_of("en").common
    named = tuple(name.name.casefold() for name in read_names())
    sentences: list[str] = []
    words: list[str] = []
    for line in lines:
        first, *rest = line.rstrip(".!?").split()
        is_sentence_start = first.lower() in ordinary and not line.casefold().startswith(named)
        words += ["and", first.lower() if is_sentence_start else first, *rest]
        if len(words) > n_words:
            sentences.append(" ".join(words[1 : n_words + 1]) + ".")
            words = []
    return sentences


def _many_names(n: int) -> list[Entry]:
    """Invented names, always the same ones."""
    entries: list[Entry] = []
    for k in range(n):
        first, rest = k % len(_ONSETS), k // len(_ONSETS)
        vowel, coda = _VOWELS[rest % len(_VOWELS)], _CODAS[(rest // len(_VOWELS)) % len(_CODAS)]
        name = f"{_ONSETS[first]}{vowel}{_CODAS[(k * 3) % len(_CODAS)]}{_VOWELS[(k * 5) % len(_VOWELS)]}{coda}"
        entries.append(Entry(f"{name.capitalize()}{_VOWELS[k % 3]}", EntityId(f"invented-{k}"), "location"))
    return entries


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.names_speed", description=__doc__.splitlines()[0])
    parser.add_argument("--names", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--words", type=int, default=21, help="of a sentence (default: 21)")
    parser.add_argument("--changes", type=int, default=300, help="of one name (default: 300)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
