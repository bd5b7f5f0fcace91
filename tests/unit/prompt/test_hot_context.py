"""An NPC's hot context, under deadlines, and looked up while somebody still speaks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.events import UtteranceRetracted
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import (
    HIDDEN,
    PUBLIC,
    Claim,
    Fact,
    Knower,
    Provenance,
    Recalled,
    RecalledFact,
    RecalledUtterance,
    Visibility,
    learned_from,
    secret_of,
)
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.language.relations import IN_ENGLISH
from glyphoxa.language.sentences import RoomLeft
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.identity import KnownSentences, beginning_of, identity_of
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.scene import Scenes
from glyphoxa.prompt.select import OWN_WORDS
from glyphoxa.transcript.ports import TalkQuery
from glyphoxa.world.graph import Known, may_know
from tests.support.builders import FORGE, INNKEEPER, MARKET, SMITH, TAMSIN, a_campaign, an_utterance, known
from tests.support.memory import GraphTwin, LogTwin
from tests.support.minds import PATIENT, Mind
from tests.support.patience import DEADLINE_MS


def owns(owner: str, owned: str, visibility: Visibility = PUBLIC) -> Fact:
    claim = Claim.relation(EntityId(owner), "OWNS", EntityId(owned))
    return known(claim, visibility)


ELDRINAX = EntityId("e-eldrinax")
CROWN, FORGED = "Who made the king's crown?", "Grimjaw forged the king's false crown."
BROTHER = an_utterance("My brother Joren was lost in the fen.", id="told")


class AMind(Mind):
    """The hot context of the smith and the innkeeper, over twins that can be late or away."""

    def __init__(self, *, deadline_ms: int = DEADLINE_MS) -> None:
        self.log = LogTwin()
        self.talks = {npc.id: Conversation(npc) for npc in a_campaign().npcs}
        super().__init__(
            a_campaign(),
            talk=self.log,
            budgets=Budgets(recall_deadline_ms=deadline_ms),
            conversations=self.talks,
        )


@pytest.fixture
async def mind() -> AsyncIterator[AMind]:
    async with at_the_forge(AMind()) as mind:
        yield mind


@pytest.fixture
async def hasty_mind() -> AsyncIterator[AMind]:
    """For what is late."""
    async with at_the_forge(AMind(deadline_ms=200)) as mind:
        yield mind


@asynccontextmanager
async def at_the_forge(mind: AMind) -> AsyncIterator[AMind]:
    await mind.assembly.enter(a_campaign().scene(FORGE))
    await mind.log.append([BROTHER])
    yield mind
    await mind.prefetch.close()


async def test_identity_scene_and_what_is_asked_about_are_there(mind: AMind) -> None:
    hot = await mind.assembly.gather(SMITH, "What do you know of Eldrinax?")
    assert "Grimjaw is a smith." in hot.identity
    assert "Mirelle knows Grimjaw." in hot.identity
    assert hot.scenes == {a_campaign().scene(FORGE): "night, the forge."}
    assert hot.facts == ("Eldrinax is an old wizard.",)
    assert hot.omitted == ()


async def test_what_nobody_told_an_npc_is_named_as_such(mind: AMind) -> None:
    hot = await mind.assembly.gather(SMITH, "What did I tell you about my horse?")
    assert hot.facts == ("Nobody has told Grimjaw anything about that.",)
    assert hot.recalled == ()


async def test_a_name_is_not_called_unknown_while_memory_is_late(hasty_mind: AMind) -> None:
    hasty_mind.log.weather.late = True
    hot = await hasty_mind.assembly.gather(SMITH, "Who is Tarquin?")
    assert hot.omitted
    assert hot.facts == ()


async def test_somebody_else_who_begins_to_speak_takes_no_facts_from_an_answer(mind: AMind) -> None:
    recall = mind.log.recall

    async def meanwhile(*asked: Any, **options: Any) -> list[Recalled]:
        for _ in range(20):  # until what is new was read
            await asyncio.sleep(0)
        mind.prefetch.begin(PlayerId("bran"))
        return await recall(*asked, **options)

    mind.log.recall = meanwhile  # type: ignore[method-assign] # another player coughs
    hot = await mind.assembly.gather(SMITH, "What do you know of Eldrinax?")
    assert hot.facts == ("Eldrinax is an old wizard.",)


async def test_who_asks_for_an_owner_is_told_the_owner_and_nothing_else(mind: AMind) -> None:
    """The owner is found by name, not by likeness; the partial transcript brings it as well."""
    mind.graph.of_world.append(owns("e-mirelle", "e-eldrinax"))
    question = "Who owns Eldrinax?"
    await mind.partial(TAMSIN, "Who owns Eldrinax")
    assert mind.assembly.gather_nowait(SMITH, question).facts == ("Mirelle owns Eldrinax.",)
    hot = await mind.assembly.gather(SMITH, question)
    assert hot.facts == ("Mirelle owns Eldrinax.",)
    assert [one.path for one in hot.recalled] == ["named 'Eldrinax', asks for 'owns'"]


async def test_who_asks_how_two_hang_together_is_told_the_chain_between_them(mind: AMind) -> None:
    """Its second link stands in the identity already."""
    mind.graph.of_world.append(owns("e-mirelle", "e-eldrinax"))
    hot = await mind.assembly.gather(SMITH, "How is Eldrinax related to you?", within_ms=DEADLINE_MS)
    assert hot.facts[0] == "Mirelle owns Eldrinax."
    [link] = [one for one in hot.recalled if recalled_line(one) == hot.facts[0]]
    assert isinstance(link, RecalledFact)
    assert link.path == "asks how 'Eldrinax' and 'Grimjaw' are related"


async def test_a_chain_over_a_secret_is_not_told(mind: AMind) -> None:
    mind.graph.of_world.append(owns("e-mirelle", "e-eldrinax", secret_of([SMITH])))
    question = "How is Eldrinax related to you?"
    for npc in (SMITH, INNKEEPER):
        hot = await mind.assembly.gather(npc, question, within_ms=DEADLINE_MS)
        assert hot.facts == ("Eldrinax is an old wizard.",)


async def test_what_is_asked_while_it_is_spoken_is_decided_by_the_whole_question(mind: AMind) -> None:
    mind.graph.of_world.append(owns("e-mirelle", "e-eldrinax"))
    await mind.partial(TAMSIN, "What do you know of Eldrinax")
    mind.graph.weather.away = True
    assert mind.assembly.gather_nowait(SMITH, "What do you know of Eldrinax").facts == ("Eldrinax is an old wizard.",)
    hot = await mind.assembly.gather(SMITH, "What do you know of Eldrinax, and who owns him?")
    assert hot.facts[-1] == "Mirelle owns Eldrinax."


async def test_what_a_question_asks_of_an_npc_itself_stands_beside_it(mind: AMind) -> None:
    hot = await mind.assembly.gather(SMITH, "Who knows Mirelle?")
    assert "Mirelle knows Grimjaw." in hot.identity
    assert hot.facts == ("Mirelle knows Grimjaw.",)
    other = await mind.assembly.gather(SMITH, "What of Mirelle?")
    assert other.facts == ("Mirelle keeps the inn.",)


async def test_what_is_in_the_talk_of_the_prompt_is_not_recalled_again(hasty_mind: AMind) -> None:
    """Neither the utterance nor the same words of another evening."""
    mind = hasty_mind
    asked = "Do you remember my brother Joren?"
    await mind.partial(TAMSIN, asked)
    mind.talks[SMITH].hear(replace(BROTHER, text="My brother was lost."))
    mind.log.weather.late = True
    assert (await mind.assembly.gather(SMITH, asked)).recalled == ()
    mind.talks[SMITH].retract(BROTHER.id)
    mind.talks[SMITH].hear(replace(BROTHER, id=UtteranceId("again")))
    assert (await mind.assembly.gather(SMITH, asked)).recalled == ()
    mind.talks[SMITH].retract(UtteranceId("again"))
    assert [learned_from(one) for one in (await mind.assembly.gather(SMITH, asked)).recalled] == ["told"]


async def test_what_is_recalled_and_not_told_is_noted_with_the_reason(mind: AMind) -> None:
    await mind.log.append([an_utterance("Where is my dog?", id="dog")])
    asked = "What of my brother?"

    async def why_not(npc: NpcId = SMITH) -> dict[str | None, str]:
        hot = await mind.assembly.gather(npc, asked)
        return {learned_from(one.recalled): one.why for one in hot.rejected}

    assert await why_not() == {"dog": "it is a question"}
    mind.talks[SMITH].hear(replace(BROTHER, id=UtteranceId("again")))
    assert (await why_not())["told"] == "it is already in the prompt's transcript"
    assert await why_not(INNKEEPER) == {}  # she heard none of it


async def test_a_secret_that_the_talk_does_not_come_to_stands_nowhere_in_the_prompt(mind: AMind) -> None:
    for question in ("Good evening.", "Grimjaw, what is your secret?", "What do you know of Eldrinax?", ""):
        hot = await mind.assembly.gather(SMITH, question)
        primed = mind.assembly.gather_nowait(SMITH, question)
        assert "crown" not in f"{hot}{primed}{mind.assembly.standing(SMITH)}", question


async def test_a_secret_stays_in_mind_while_the_talk_is_of_it(mind: AMind) -> None:
    mind.talks[SMITH].hear(an_utterance(CROWN))
    assert (await mind.assembly.gather(SMITH, "And who paid for it?")).kept == (FORGED,)
    mind.talks[SMITH].hear(an_utterance("A dagger for six crowns?"))
    assert (await mind.assembly.gather(SMITH, "Too dear.")).kept == (FORGED,)  # the plural is the same word
    mind.talks[SMITH].hear(an_utterance(CROWN))
    assert (await mind.assembly.gather(SMITH, "What happened in the Night of Reeds?")).kept == ()
    mind.talks[SMITH].hear(an_utterance("An ale, please."))
    assert (await mind.assembly.gather(SMITH, "Thank you.")).kept == ()


async def test_of_many_secrets_those_that_the_question_is_most_about_are_in_mind(mind: AMind) -> None:
    for n in range(5):
        claim = Claim.attribute(ELDRINAX, "secret", f"The crown number {n} lies in the well.")
        mind.graph.of_world.append(known(claim, secret_of([SMITH])))
    kept = (await mind.assembly.gather(SMITH, "Did the king lose a false crown?")).kept
    assert kept[0] == FORGED
    assert len(kept) == 2


def test_a_german_genitive_of_a_hidden_name_is_not_told_with_the_scene() -> None:
    town = replace(a_campaign(), language="de")
    looks = "Netze trocknen. Das ist Eldrinaxs Turm."
    market = replace(town.scene(MARKET), description=looks)
    assert looks in scenes_of(town).line(market, SMITH)
    hidden = [replace(entity, hidden=True) if entity.id == ELDRINAX else entity for entity in town.entities]
    line = scenes_of(replace(town, entities=tuple(hidden))).line(market, SMITH)
    assert "Netze trocknen." in line and "Eldrinax" not in line


def scenes_of(town: Campaign) -> Scenes:
    return Scenes(town, KnownSentences(town, KnownWorld(town, None).known), tokens=60)


def test_a_scene_is_told_in_the_campaigns_language_and_within_its_budget() -> None:
    town = replace(a_campaign(), language="de")
    market = replace(town.scene(MARKET), description="Die Buden schließen. " * 30)
    line = scenes_of(town).line(market, SMITH)
    assert line.startswith("evening, Market Square. Die Buden schließen.")
    assert line.endswith("Mirelle ist hier.")
    assert len(line) <= 240


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("He is old and tired of it all. He is wise. He is rich and lives far away.", "He is old and tired of it all."),
        ("He is old, and tired of everything that there is to see", "He is old, and tired of everything …"),
        ("x" * 100, "x" * 38 + " …"),
    ],
)
def test_a_description_that_is_too_long_by_itself_is_shortened(text: str, told: str) -> None:
    assert RoomLeft.of(10).fitting([text], cuts=True) == [told]


def test_shortened_description_states_no_fact_of_an_identity() -> None:
    claim = Claim.attribute(ELDRINAX, "description", "Eldrinax is old and tired of it all. He is wise.")
    known = Known(a_campaign().entity(ELDRINAX), (Fact(claim.fact_id, claim, seq=1),))
    identity = identity_of(known, tokens=10, words=IN_ENGLISH)
    assert (identity.lines, identity.facts) == (("Eldrinax is old and tired of it all.",), frozenset())


@given(st.lists(st.text(alphabet="ab .!", min_size=1, max_size=60), min_size=1, max_size=5), st.integers(6, 30))
def test_an_identity_is_never_empty_and_never_over_its_budget(texts: list[str], tokens: int) -> None:
    found = RoomLeft.of(tokens).fitting(texts, cuts=True)
    assert found
    assert sum(map(len, found)) <= tokens * 4


@pytest.mark.parametrize("is_removed", [False, True])
async def test_who_may_no_longer_know_of_itself_has_nothing_of_it_in_mind(mind: AMind, is_removed: bool) -> None:
    """Neither what it knew before nor what the file says: the graph has answered, and the world was stored."""
    assert (await mind.assembly.gather(SMITH, CROWN)).kept == (FORGED,)
    own = a_campaign().npc(SMITH).entity_id
    mind.graph.scoped = [
        (entity, secret_of([INNKEEPER]) if entity.id == own else visibility)
        for entity, visibility in mind.graph.scoped
        if not is_removed or entity.id != own
    ]
    hot = await mind.assembly.gather(SMITH, CROWN)
    assert (hot.identity, hot.kept) == ((), ())


async def test_the_examples_of_an_npc_tell_nothing_that_the_dm_has_hidden_since(mind: AMind) -> None:
    town = a_campaign()
    smith = replace(town.npc(SMITH), examples=())
    at_the_forge = Claim.relation(smith.entity_id, "LOCATED_AT", town.scene(FORGE).location)
    fact = known(at_the_forge, provenance=Provenance(dm_confirmed=True))
    mind.graph.of_world.append(fact)
    await mind.assembly.enter(town.scene(FORGE))
    assert "Where do I find you?" in str(beginning_of(town, smith, mind.assembly.known(SMITH)))
    mind.graph.of_world[-1] = replace(fact, visibility=HIDDEN)
    await mind.assembly.enter(town.scene(FORGE))
    assert "Where do I find you?" not in str(beginning_of(town, smith, mind.assembly.known(SMITH)))
    own = smith.entity_id
    mind.graph.scoped = [(e, HIDDEN if e.id == own else visibility) for e, visibility in mind.graph.scoped]
    await mind.assembly.enter(town.scene(FORGE))
    assert mind.assembly.known(SMITH) is None
    assert "smith" not in str(beginning_of(town, smith, None)[1:])


async def test_an_entity_of_which_an_npc_may_not_know_is_not_there_for_it(mind: AMind) -> None:
    eldrinax = next(entity for entity, _ in mind.graph.scoped if entity.name == "Eldrinax")
    mind.graph.scoped = [one for one in mind.graph.scoped if one[0] is not eldrinax] + [
        (eldrinax, secret_of([INNKEEPER]))
    ]
    question = "What do you know of Eldrinax?"
    await mind.partial(TAMSIN, question)
    # The same line as for a name that nobody has: it does not tell that there is such a wizard.
    assert (await mind.assembly.gather(SMITH, question)).facts == ("Grimjaw has never heard of Eldrinax.",)
    assert (await mind.assembly.gather(SMITH, "Who is Oldrun?")).facts == ("Grimjaw has never heard of Oldrun.",)
    assert (await mind.assembly.gather(INNKEEPER, question)).facts == ("Eldrinax is an old wizard.",)


async def test_a_secret_about_others_is_told_with_their_names(mind: AMind) -> None:
    claim = Claim.relation(EntityId("e-eldrinax"), "CHILD_OF", EntityId("e-mirelle"))
    mind.graph.of_world.append(known(claim, secret_of([SMITH])))
    asked = "Whose child is Eldrinax?"
    assert (await mind.assembly.gather(SMITH, asked)).kept == ("Eldrinax is a child of Mirelle.",)
    assert (await mind.assembly.gather(INNKEEPER, asked)).kept == ()


async def test_changed_fact_is_reread_in_the_next_speech(mind: AMind) -> None:
    visibility = Visibility.of("told", [Knower(SMITH, "told", SpeakerId("tamsin"))])
    await mind.partial(TAMSIN, "What do you know of Eldrinax")
    mind.graph.of_world.append(known(Claim.attribute(ELDRINAX, "rumour", "Eldrinax is dead."), visibility))
    mind.prefetch.begin(TAMSIN)
    await mind.partial(TAMSIN, "What do you know of Eldrinax")
    assert "Eldrinax is dead." in mind.assembly.gather_nowait(SMITH, "What of Eldrinax").facts


async def test_at_a_table_whose_database_was_never_there_an_npc_knows_itself_from_the_file() -> None:
    """The file limits what it knows."""
    mind = AMind()
    mind.graph.weather.away = True
    await mind.assembly.enter(a_campaign().scene(FORGE))
    smith, innkeeper = [await mind.assembly.gather(npc, CROWN) for npc in (SMITH, INNKEEPER)]
    assert "Grimjaw is a smith." in smith.identity
    assert smith.kept == (FORGED,)
    assert innkeeper.kept == ()
    assert "facts: the database is away" in smith.omitted


async def test_what_was_hidden_from_an_npc_while_they_spoke_is_not_in_its_answer(mind: AMind) -> None:
    """Also of itself."""
    asked = "What do you know of Eldrinax?"
    mind.graph.of_world.append(owns("e-grimjaw", "e-eldrinax"))
    await mind.partial(TAMSIN, asked)
    assert "Grimjaw owns Eldrinax." in mind.assembly.gather_nowait(SMITH, asked).identity
    mind.graph.of_world[-1] = owns("e-grimjaw", "e-eldrinax", secret_of([INNKEEPER]))
    hot = await mind.assembly.gather(SMITH, asked)
    assert "Grimjaw owns Eldrinax." not in (*hot.identity, *hot.facts)


async def test_what_was_found_for_one_player_stays_while_another_speaks(hasty_mind: AMind) -> None:
    """It belongs to the words so far: another question does not get it."""
    mind = hasty_mind
    await mind.partial(TAMSIN, "Do you remember my brother and")
    await mind.partial(PlayerId("bran"), "What does a good dagger cost at")
    mind.log.weather.late = True
    hot = await mind.assembly.gather(SMITH, "Do you remember my brother and his lantern?", asker="Tamsin")
    assert [fact.utterance_id for fact in hot.recalled if isinstance(fact, RecalledUtterance)] == ["told"]
    other = await mind.assembly.gather(SMITH, "What does a good dagger cost at the fair?", asker="Bran")
    assert other.recalled == ()


async def test_what_was_looked_up_before_a_retraction_is_not_used(hasty_mind: AMind) -> None:
    mind = hasty_mind
    await mind.partial(TAMSIN, "Do you remember my brother and")
    mind.prefetch.on(UtteranceRetracted(an_utterance("my brother")))
    mind.log.weather.late = True
    assert (await mind.assembly.gather(SMITH, "Do you remember my brother and his lantern?")).recalled == ()


async def test_who_is_called_is_reminded_first_and_sound_gets_through_before_the_next(
    mind: AMind, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    recall_nowait = mind.log.recall_nowait

    def noted(campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[Recalled] | None:
        happened.append(npc)
        return recall_nowait(campaign, npc, query)

    monkeypatch.setattr(mind.log, "recall_nowait", noted)
    before = asyncio.all_tasks()
    mind.prefetch.on_partial(TAMSIN, "Mirelle, do you remember my brother Joren?")
    asyncio.get_running_loop().call_soon(happened.append, "sound")
    await asyncio.gather(*(asyncio.all_tasks() - before))
    assert happened == [INNKEEPER, "sound", SMITH]
    assert [
        one.utterance_id for one in mind.prefetch.recalled(SMITH, "Mirelle, do you remember my brother Joren?")
    ] == ["told"]


CLAIM = replace(
    an_utterance("It was Eldrinax who stole the tithe box.", id="claim", speaker="Grimjaw", npc=SMITH),
    witnesses=frozenset({SMITH, INNKEEPER}),
)


@pytest.mark.parametrize("asked", ["Who stole the tithe box?", "Can you tell me who stole the tithe box?"])
async def test_what_an_npc_said_itself_is_no_fact_the_next_evening(mind: AMind, asked: str) -> None:
    """Nor anything else that it has in mind, unless it is asked what it said. What it said is recorded as left out."""
    await mind.log.append([CLAIM])
    hot = await mind.assembly.gather(SMITH, asked)
    assert not any("tithe" in line for line in (*hot.facts, *hot.remembered, *hot.identity))
    assert (CLAIM.id, OWN_WORDS) in [(learned_from(one.recalled), one.why) for one in hot.rejected]


async def test_who_asks_an_npc_what_it_said_hears_it_quoted_and_apart_from_facts(mind: AMind) -> None:
    await mind.log.append([CLAIM])
    asked = "Who stole the tithe box, what did you say of Eldrinax?"
    hot = await mind.assembly.gather(SMITH, asked)
    assert "You said: It was Eldrinax who stole the tithe box." in hot.remembered
    assert hot.facts == ("Eldrinax is an old wizard.",)
    told = (*hot.facts, *hot.remembered)
    assert tuple(recalled_line(one) for one in hot.recalled)[: len(told)] == told


async def test_what_another_npc_claimed_is_told_as_its_words_and_not_as_a_fact(mind: AMind) -> None:
    await mind.log.append([CLAIM])
    hot = await mind.assembly.gather(INNKEEPER, "Who stole the tithe box?")
    assert hot.remembered == ("Grimjaw said: It was Eldrinax who stole the tithe box.",)
    assert hot.facts == ()


async def test_the_prompt_cache_is_primed_with_the_words_of_the_answer(mind: AMind) -> None:
    primed = mind.assembly.gather_nowait(SMITH, "")
    answered = await mind.assembly.gather(SMITH, "Hello.")
    assert (primed.identity, primed.scenes) == (answered.identity, answered.scenes)


async def test_a_new_speech_starts_with_an_empty_sheet(mind: AMind) -> None:
    await mind.partial(TAMSIN, "do you remember my brother Joren then")
    mind.prefetch.begin(TAMSIN)
    assert mind.assembly.gather_nowait(SMITH, "Hello there.").facts == ()


async def test_the_table_plays_on_without_memory() -> None:
    """`none`."""
    campaign = a_campaign()
    prefetch = Prefetch(
        KnownWorld(campaign, None),
        talk=None,
        present=lambda: {SMITH: "Grimjaw"},
    )
    assembly = HotContexts(prefetch)
    prefetch.on_partial(TAMSIN, "do you remember Eldrinax from last time")
    assert (await assembly.gather(SMITH, "Hello?")).facts == ()


SCOPES = st.sampled_from(["public", "witnessed", "told", "secret", "hidden"])
VISIBILITIES = st.builds(
    lambda scope, npcs: Visibility.of(scope, [Knower(npc, "secret") for npc in npcs]),
    SCOPES,
    st.sets(st.sampled_from([SMITH, INNKEEPER])),
)
SPEECHES = st.lists(
    st.tuples(
        st.lists(VISIBILITIES, min_size=4, max_size=4),
        VISIBILITIES,
        st.lists(
            st.tuples(
                st.sampled_from(["partial", "ready", "asked"]),
                st.sampled_from([SMITH, INNKEEPER]),
                st.sampled_from([0, 1]),
            )
        ),
    ),
    max_size=4,
)


@given(SPEECHES)
def test_whatever_is_looked_up_for_whom_nobody_has_in_mind_what_is_not_for_it(
    speeches: list[tuple[list[Visibility], Visibility, list[tuple[str, NpcId, int]]]],
) -> None:
    """Visibility changes from speech to speech, and no look-up is seen by another NPC."""
    questions = ("What do you know of Eldrinax?", "Who fears token3 or has a rumour of Eldrinax?")
    claims = [
        *(Claim.attribute(ELDRINAX, "rumour", f"Eldrinax lost his token{n}.") for n in range(2)),
        Claim.attribute(EntityId("e-grimjaw"), "rumour", "Grimjaw has a token2."),
        Claim.relation(EntityId("e-mirelle"), "FEARS_TOKEN3", ELDRINAX),
    ]

    async def evening() -> None:
        mind = AMind()
        public = list(mind.graph.scoped)
        for visibilities, of_eldrinax, steps in speeches:
            mind.graph.scoped = [(e, of_eldrinax if e.id == ELDRINAX else scope) for e, scope in public]
            mind.graph.of_world = [
                Fact(claim.fact_id, claim, seq=1, visibility=visibility)
                for claim, visibility in zip(claims, visibilities, strict=True)
            ]
            await mind.assembly.enter(a_campaign().scene(FORGE))
            mind.prefetch.begin(TAMSIN)
            for step, npc, which in steps:
                question = questions[which]
                if step == "partial":
                    await mind.partial(TAMSIN, question)
                    continue
                hot = mind.assembly.gather_nowait(npc, question)
                if step == "asked":
                    hot = await mind.assembly.gather(npc, question)
                has_in_mind = set(re.findall(r"token\d", " ".join((*hot.facts, *hot.identity)).lower()))
                scopes = {entity.id: scope for entity, scope in mind.graph.scoped}
                visible = {fact.id for fact in mind.graph.of_world if may_know(npc, fact, scopes.get)}
                assert has_in_mind <= {f"token{n}" for n, claim in enumerate(claims) if claim.fact_id in visible}
        await mind.prefetch.close()

    asyncio.run(evening())


@pytest.mark.parametrize("name", ["Sword of Vexmoor", "Ade Okoro"])
@pytest.mark.parametrize("visibility", [PUBLIC, secret_of([INNKEEPER])])
async def test_part_of_a_name_in_the_world_is_unheard_only_if_secret(name: str, visibility: Visibility) -> None:
    graph = GraphTwin.of(a_campaign())
    graph.scoped.append((Entity(EntityId("e-new"), "item" if "Sword" in name else "npc", name), visibility))
    mind = Mind(a_campaign(), graph=graph, budgets=PATIENT)
    await mind.assembly.enter(a_campaign().scene(FORGE))
    asked = "Vexmoor" if "Sword" in name else "Ade"
    hot = await mind.assembly.gather(SMITH, f"Do you know {asked}?")
    await mind.prefetch.close()
    assert (f"Grimjaw has never heard of {asked}." in hot.not_known) is (visibility != PUBLIC)
