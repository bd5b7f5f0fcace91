"""Random campaigns and evenings in which each word of its own is for players, or is not."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.campaign import Campaign, Entity, Exchange, Npc, Player, Relationship, Safety, Scene, Secret
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, Claim, Knower, Provenance, Visibility, secret_of, witnessed_by
from glyphoxa.world.event_kinds import EntityAdded, EntityScoped, FactReplaced, FactScoped, FactStated
from glyphoxa.world.event_log import Cause
from glyphoxa.world.graph import ConsentChange
from tests.support.builders import an_utterance

SESSION = SessionId("s1")


@dataclass
class Words:
    """Made-up words, each used once: those that players may read, and those that they may not."""

    chance: random.Random
    public: list[str] = field(default_factory=list)
    guarded: list[str] = field(default_factory=list)

    def word(self, *, is_public: bool) -> str:
        word = "".join(self.chance.choices("bdfgklmnprstvz", k=2)) + "".join(
            self.chance.choice("aeiou") + self.chance.choice("bdfgklmnprstvz") for _ in range(4)
        )
        (self.public if is_public else self.guarded).append(word)
        return word

    def hidden(self) -> str:
        return self.word(is_public=False)

    def shown(self) -> str:
        return self.word(is_public=True)


def _npc(words: Words, entity: Entity) -> Npc:
    example = Exchange(words.hidden(), words.hidden(), facts=words.hidden(), kept=words.hidden())
    return Npc(NpcId(words.hidden()), entity.id, entity.name, words.hidden(), examples=(example,))


def a_guarded_campaign(words: Words, id: CampaignId) -> Campaign:
    shown = [Entity(EntityId(w := words.shown()), "npc", w.title(), (), {"job": words.shown()}) for _ in range(4)]
    guarded = [
        Entity(EntityId(w := words.hidden()), "npc", w.title(), (words.hidden(),), {"job": words.hidden()}, hidden=True)
        for _ in range(3)
    ]
    # An id may be made of an earlier name.
    shown[2] = replace(shown[2], id=EntityId(words.hidden()))
    npcs = tuple(_npc(words, entity) for entity in (*shown[:2], *guarded[:1]))
    known = guarded[2] = replace(guarded[2], hidden=False, known_by=(npcs[0].id,))
    relations = (
        Relationship(shown[0].id, shown[1].id, "KNOWS", {"description": words.shown()}),
        # A public note that names somebody hidden, on a line of its own as YAML gives it.
        Relationship(shown[0].id, shown[3].id, "OWES", {"note": f"{words.hidden()}\n{guarded[1].name}\n"}),
        Relationship(shown[0].id, guarded[0].id, "FEARS", {"description": words.hidden()}),
        Relationship(shown[1].id, shown[2].id, "OWES", {"description": words.hidden()}, hidden=True),
        Relationship(shown[2].id, known.id, "SERVES", {"description": words.hidden()}),
    )
    return Campaign(
        id,
        words.shown(),
        "en",
        (*shown, *guarded),
        relations,
        npcs,
        (Player(PlayerId("tamsin"), "Tamsin"), Player(PlayerId("gm"), "Master", dm=True)),
        (Scene(SceneId(words.hidden()), shown[0].id, (npcs[0].id,), description=words.hidden()),),
        secrets=(
            Secret(f"{words.hidden()} buried the {words.hidden()}", frozenset({npcs[0].id})),
            Secret(words.hidden(), frozenset({npcs[1].id}), hidden=True),
        ),
        bible=words.hidden(),
        glossary={words.hidden(): words.hidden()},
        slots={words.hidden(): "one"},
        safety=Safety((words.hidden(),), (words.hidden(),)),
    )


def _visibility(words: Words, npc: NpcId) -> Visibility:
    told = Visibility.of("told", [Knower(npc, "told")])
    return words.chance.choice([PUBLIC, HIDDEN, secret_of([npc]), witnessed_by([npc]), told])


async def play(store: Store, words: Words, campaign: Campaign) -> None:
    dm, talk = Cause("dm", 5_000), Cause("talk", 5_000, SESSION, 1, UtteranceId("town-1"))
    npc, hidden_npc = campaign.npcs[0], campaign.npcs[2]
    secret = campaign.secrets[0].text
    guarded_name = campaign.entities[-2].name
    lines = [
        an_utterance(words.shown()),
        an_utterance(words.shown(), speaker=npc.name, npc=npc.id),
        an_utterance(f"{words.hidden()} {guarded_name}"),
        an_utterance(f"{words.hidden()} {secret}"),
        replace(an_utterance(words.hidden()), aside="whisper"),
        an_utterance(words.hidden(), speaker=hidden_npc.name, npc=hidden_npc.id),
        an_utterance(words.shown(), speaker="Stranger", npc=hidden_npc.id),
        an_utterance(words.hidden()),  # corrected
        an_utterance(words.hidden()),  # withheld
        replace(an_utterance(f"we met {guarded_name}"), raw_text=f"we met {words.shown()}"),
        an_utterance(words.hidden()),  # rolled back
    ]
    await store.log.append(
        replace(
            line, id=UtteranceId(f"{campaign.id}-{n}"), campaign_id=campaign.id, session_id=SESSION, at_ms=1_000 + n
        )
        for n, line in enumerate(lines, start=1)
    )
    events = []
    for _ in range(12):
        seen = _visibility(words, npc.id)
        word = words.word(is_public=seen == PUBLIC)
        subject = words.chance.choice(campaign.entities[:4]).id
        events.append(FactStated(Claim.attribute(subject, "note", word), visibility=seen))
    late = EntityAdded(EntityId(name := words.hidden()), "item", name.title())
    events += [late, EntityScoped(late.entity, HIDDEN)]
    subject = campaign.entities[3].id
    events.append(FactStated(Claim.attribute(subject, "note", f"It belongs to {guarded_name}, {words.hidden()}.")))
    was, scoped = Claim.attribute(subject, "age", words.hidden()), Claim.attribute(subject, "fear", words.hidden())
    events += [FactStated(was), FactReplaced(was.fact_id, Claim.attribute(subject, "age", words.shown()))]
    events += [FactStated(scoped), FactScoped(scoped.fact_id, HIDDEN)]
    events.append(FactStated(Claim.attribute(subject, "mood", words.hidden()), Provenance(confidence=0.2)))
    await store.world.commit(campaign.id, events, dm)
    reason = Provenance(confidence=0.9, reason=words.hidden())
    await store.world.commit(campaign.id, [FactStated(Claim.attribute(subject, "song", words.shown()), reason)], talk)
    await store.world.correct(campaign.id, UtteranceId("town-8"), words.shown(), dm)
    withheld = ConsentChange(PlayerId("tamsin"), "withheld", (UtteranceId("town-9"),))
    await store.world.consent(campaign.id, withheld, Cause("player", 5_000, SESSION))
    await store.world.rollback(campaign.id, SESSION, 10, dm)
    judged = (
        "INSERT INTO turn_judgements (campaign_id, session_id, utterance_id, ordinal, mode, risk, judged_by) "
        "VALUES ($1, $2, $3, 1, 'in_world_answer', 'low', $4)"
    )
    async with store.database.use(campaign.id) as connection:
        await connection.execute(judged, campaign.id, SESSION, "town-1", words.hidden())
