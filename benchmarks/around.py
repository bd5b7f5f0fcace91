"""Is talk found better with the graph than without, where a question takes two steps?

    python -m benchmarks.around [--people 96] [--questions 120] [--embeddings real]

"Who of the Lantern Watch was seen at the old mine?": the talk says that Joren was seen there, the graph that Joren is
one of the Watch, and neither says both. An invented campaign holds people, the groups they belong to, where they live
and whom they know, and talk that names each of them with what others did as well. The last line printed is a JSON
object: for each way of asking the percent of what answers that is among the first five and ten found.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.memory_vectors import Embeddings
from benchmarks.memory_words import invented_name
from benchmarks.turn import positive
from benchmarks.turn_world import a_directory
from glyphoxa.adapters.local import native_env
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import Claim
from glyphoxa.domain.recalled import learned_from
from glyphoxa.domain.utterance import Utterance
from glyphoxa.observability import log
from glyphoxa.recall.around import NEARER, RecallAround
from glyphoxa.recall.semantic.question_vectors import QuestionVectors
from glyphoxa.transcript.ports import TalkQuery
from glyphoxa.world.api import Cause, EntityAdded, FactStated

_CAMPAIGN: Final = CampaignId("around")
_WITNESS: Final = NpcId("witness")
_BEGAN_MS: Final = 1_700_000_000_000
_IN_A_GROUP: Final = 8
_DID: Final = (
    ("was seen at the old mine", "was seen at the old mine"),
    ("owes the miller six crowns", "owes money to the miller"),
    ("asked for a healer at dawn", "needed a healer"),
    ("sold a silver ring", "sold jewellery"),
    ("came back from the marsh with wet boots", "has been in the marsh"),
    ("quarrelled with the ferryman", "had a quarrel with the ferryman"),
    ("bought rope and lanterns", "bought rope"),
    ("cannot pay the rent this winter", "cannot pay the rent"),
    ("was at the funeral", "went to the funeral"),
    ("hid a letter from the abbot", "hides a letter"),
    ("lost a horse on the north road", "lost a horse"),
    ("dreams of the drowned bell", "dreams of a bell"),
)  # fmt: skip
_OF_EACH: Final = 24
"""So many people did each of these things."""


@dataclass(frozen=True, slots=True)
class Asked:
    """
    Attributes:
        around: Whom the graph is asked about.
        answers: Every utterance that answers it.
    """

    text: str
    around: EntityId
    answers: frozenset[str]


Ask = Callable[[Asked], Awaitable[list[str]]]


async def build(store: Store, dice: random.Random, people: int) -> list[tuple[str, Asked]]:
    """The campaign, with its questions by kind: "person" takes no relation, "group" and "home" one, "fellows" two."""
    names: list[str] = []
    while len(names) < people:
        name = invented_name(dice, "npc").split()[0]
        if name not in names:
            names.append(name)
    ids = [EntityId(name.lower()) for name in names]
    groups = [EntityId(f"group-{n}") for n in range(people // _IN_A_GROUP)]
    homes = [EntityId(f"home-{n}") for n in range(people // _IN_A_GROUP)]
    called = {group: f"the {invented_name(dice, 'location')} Watch" for group in groups}
    called |= {home: f"{invented_name(dice, 'location')} Court" for home in homes}
    of_group = {person: groups[n % len(groups)] for n, person in enumerate(ids)}
    at_home = {person: dice.choice(homes) for person in ids}
    async with store.database.use(_CAMPAIGN) as connection:
        await connection.execute("INSERT INTO campaigns (id, name, language) VALUES ($1, $1, 'en')", _CAMPAIGN)
    happened: list[Any] = [EntityAdded(i, "npc", name, ()) for i, name in zip(ids, names, strict=True)]
    happened += [EntityAdded(group, "faction", called[group].removeprefix("the "), ()) for group in groups]
    happened += [EntityAdded(home, "location", called[home], ()) for home in homes]
    for person in ids:
        happened.append(FactStated(Claim.relation(person, "MEMBER_OF", of_group[person])))
        happened.append(FactStated(Claim.relation(person, "LOCATED_AT", at_home[person])))
        happened += [FactStated(Claim.relation(person, "KNOWS", o)) for o in dice.sample(ids, 3) if o != person]
    await store.world.commit(_CAMPAIGN, happened, Cause("dm", _BEGAN_MS))

    said = [(person, what) for what in range(len(_DID)) for person in dice.sample(ids, min(_OF_EACH, people))]
    dice.shuffle(said)
    name_of = dict(zip(ids, names, strict=True))
    await store.log.append([_utterance(n, f"{name_of[p]} {_DID[what][0]}.") for n, (p, what) in enumerate(said)])
    await store.chunks.fill_missing(_CAMPAIGN)

    def answers(who: Sequence[EntityId], what: int) -> frozenset[str]:
        return frozenset(f"u{n}" for n, (p, w) in enumerate(said) if w == what and p in who)

    asked: list[tuple[str, Asked]] = []
    for what, (_, question) in enumerate(_DID):
        for group in groups:
            members = [p for p in ids if of_group[p] == group]
            asked.append(("group", Asked(f"Who of {called[group]} {question}?", group, answers(members, what))))
        for home in homes:
            there = [p for p in ids if at_home[p] == home]
            asked.append(("home", Asked(f"Who of {called[home]} {question}?", home, answers(there, what))))
        for person in dice.sample(ids, 12):
            text = f"Is it true that {name_of[person]} {question}?"
            asked.append(("person", Asked(text, person, answers([person], what))))
            fellows = [p for p in ids if of_group[p] == of_group[person] and p != person]
            text = f"Who of {name_of[person]}'s fellows {question}?"
            asked.append(("fellows", Asked(text, person, answers(fellows, what))))
    return [(kind, each) for kind, each in asked if each.answers]


def _utterance(n: int, text: str) -> Utterance:
    return Utterance(
        id=UtteranceId(f"u{n}"),
        campaign_id=_CAMPAIGN,
        session_id=SessionId(f"s{n // 100}"),
        speaker_id=SpeakerId("merle"),
        speaker_name="Merle",
        text=text,
        raw_text=text,
        at_ms=_BEGAN_MS + n * 10_000,
        duration_ms=2_000,
        witnesses=frozenset({_WITNESS}),
    )


def ways(store: Store) -> dict[str, Ask]:
    """By name. `recall` is what is found without the graph; `1.15` what a relation nearer counts."""

    async def recall(asked: Asked) -> list[str]:
        found = await store.past_talk.recall(_CAMPAIGN, _WITNESS, TalkQuery(asked.text, limit=10), patient=True)
        return [str(learned_from(one)) for one in found]

    def around(by: QuestionVectors, nearer: float) -> Ask:
        asking = RecallAround(store.graph_rag, by, nearer=nearer)

        async def ask(asked: Asked) -> list[str]:
            found = await asking.recall_around(_CAMPAIGN, _WITNESS, asked.text, around=asked.around, limit=10)
            return [str(passage.recalled.utterance_id) for passage in found]

        return ask

    arms = {
        f"around_{by}_{nearer}": around(vectors, nearer)
        for by, vectors in (("words", QuestionVectors(None)), ("meaning", store.past_talk.vectors))
        for nearer in sorted({1.0, 1.05, 1.1, NEARER, 1.2, 1.3})
    }
    return {"recall": recall, **arms}


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    dice = random.Random(options.seed)
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(a_directory())
        embeddings = Embeddings.load(options.embeddings, seed=options.seed)
        store = await stack.enter_async_context(open_store(None, data_dir=directory, embedder=embeddings.embedder))
        await store.database.open()
        asked = await build(store, dice, options.people)
        figures: dict[str, Any] = {"embeddings": embeddings.kind}
        for kind in ("person", "group", "home", "fellows"):
            of_kind = [each for of, each in asked if of == kind]
            some = dice.sample(of_kind, min(options.questions, len(of_kind)))
            for name, ask in ways(store).items():
                found = [(each, await ask(each)) for each in some]
                figures[f"{kind}.{name}"] = {f"r{k}": _recall(found, k) for k in (5, 10)}
                print(kind, name, figures[f"{kind}.{name}"], flush=True)
            figures[f"{kind}.questions"] = len(some)
        return figures


def _recall(found: Sequence[tuple[Asked, list[str]]], k: int) -> float:
    """Percent of what answers a question that is among the first `k`, of what could be; in the mean."""
    shares = [len(each.answers & set(ids[:k])) / min(k, len(each.answers)) for each, ids in found]
    return round(100 * sum(shares) / max(1, len(shares)), 1)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.around", description="Talk found with the graph.")
    parser.add_argument("--people", type=positive, default=96)
    parser.add_argument("--questions", type=positive, default=120, help="of each kind, at most")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--embeddings", choices=("real", "invented"), help="by default real if the model is here")
    options = parser.parse_args(argv)
    native_env.prepare()
    log.set_up(level="WARNING")
    print(json.dumps(asyncio.run(measure(options))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
