"""Each line of a session is in a prompt or covered by its summary, and never in both, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.events import SceneChanged, UtteranceKept, UtteranceRetracted
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.language.sentences import tokens_of
from glyphoxa.npc.session_state_keeper import SessionStateKeeper, StoredSession
from glyphoxa.npc.table_state import Covered, TableState
from glyphoxa.prompt.conversation import Conversation, RollingSummary
from glyphoxa.transcript.sessions import DM_VIEW, SessionState, SummarySentence, View
from tests.support.builders import FORGE, INNKEEPER, MARKET, SESSION, SMITH, a_campaign, an_utterance
from tests.support.proof import n_examples

NPCS = (SMITH, INNKEEPER)
HISTORY_TOKENS = 120
SAYINGS = (
    "I promise to bring you the silver ring before the feast.",
    "We decided to leave for the old tower at dawn.",
    "I found a letter of the king in the chest.",
    "[OOC] brb",
    "Hm.",
    "Do you know who has the map of the harbour?",
)


@dataclass
class StatesTwin:
    """`SessionStates` in memory.

    Attributes:
        log: Utterances in the order of their ordinals.
        is_away: Nothing can be stored or read.
    """

    log: list[Utterance] = field(default_factory=list)
    is_away: bool = False
    gone: set[UtteranceId] = field(default_factory=set)
    kept: dict[View, SessionState] = field(default_factory=dict)

    async def state(self, view: View) -> SessionState:
        if self.is_away:
            raise Unavailable("the database is away")
        return self.kept.get(view, SessionState())

    async def cover(
        self, view: View, summary: Sequence[SummarySentence], *, up_to: UtteranceId, after: int
    ) -> int | None:
        was = await self.state(view)
        ordinal = next(n for n, each in enumerate(self.log, start=1) if each.id == up_to)
        if was.last_ordinal != after or ordinal < after:
            return None
        told = tuple(one for one in summary if not self.gone.intersection(one.evidence))
        self.kept[view] = replace(was, summary=told, last_ordinal=ordinal)
        return ordinal

    async def note(self, view: View, flags: Mapping[str, bool]) -> None:
        was = await self.state(view)
        self.kept[view] = replace(was, flags={**was.flags, **flags})

    def retract(self, utterance: UtteranceId) -> None:
        self.gone.add(utterance)
        for view, was in self.kept.items():
            told = tuple(one for one in was.summary if utterance not in one.evidence)
            self.kept[view] = replace(was, summary=told)


class Moody:
    """A summariser that fails, or never answers, or tells each line in two words."""

    def __init__(self) -> None:
        self.mood = "well"
        self.n_asked = 0

    async def summarise(self, said: Sequence[Utterance]) -> list[SummarySentence]:
        self.n_asked += 1
        if self.mood == "fails":
            raise Unavailable("the model is away")
        if self.mood == "late":
            await asyncio.Event().wait()
        return [SummarySentence(f"{each.speaker_name} spoke.", (each.id,)) for each in said]


async def logged(_: UtteranceId) -> bool:
    return True


class Evening:
    """A session with two NPCs, its log, and what happens to it."""

    def __init__(
        self,
        summariser: Moody | None = None,
        *,
        interval: int = 4,
        tokens: int = HISTORY_TOKENS,
    ) -> None:
        self.states, self.summariser, self.interval, self.tokens = StatesTwin(), summariser, interval, tokens
        self.open()

    def open(self) -> None:
        """Open the table, as after a crash: only the log and the stored states are left."""
        campaign, selection = a_campaign(), LineSelection("en", tokens=30)
        talks = {npc: Conversation(campaign.npc(npc), history_tokens=self.tokens) for npc in NPCS}
        views = {view: RollingSummary(self.tokens, interval=self.interval) for view in (DM_VIEW, *map(View, NPCS))}
        self.table = TableState(campaign, SESSION, campaign.scenes[0], talks, views)
        ordinals = {each.id: n for n, each in enumerate(self.states.log, start=1)}
        said = [each for each in self.states.log if each.id not in self.states.gone]
        self.table.remember(said, Covered(dict(self.states.kept), ordinals))
        stored = StoredSession(self.states, logged)
        models = {} if self.summariser is None else dict.fromkeys(views, self.summariser)
        self.keeper = SessionStateKeeper(
            views, selection, tell=lambda npc, *summary: talks[npc].cover(*summary), stored=stored, summarisers=models
        )

    def say(self, text: str, *, npc: NpcId | None = None, heard_by: Sequence[NpcId] = NPCS) -> Utterance:
        n = len(self.states.log) + 1
        said = an_utterance(text, id=f"u{n}", speaker="Tamsin" if npc is None else str(npc), npc=npc)
        said = replace(said, at_ms=n * 10_000, typed=True, witnesses=frozenset(heard_by))
        self.states.log.append(said)
        for witness in heard_by:
            talk = self.table.conversations[witness]
            (talk.spoke if npc == witness else talk.hear)(said)
            if npc is not None:
                talk.fold_if_full()
        self.keeper.on(UtteranceKept(said))
        return said

    def retract(self, said: Utterance) -> None:
        self.states.retract(said.id)
        for npc in said.witnesses:
            self.table.conversations[npc].retract(said.id)
        self.keeper.on(UtteranceRetracted(said))

    def round(self, text: str, *, heard_by: Sequence[NpcId] = NPCS) -> None:
        self.say(text, heard_by=heard_by)
        self.say("Aye, so it is.", npc=heard_by[0], heard_by=heard_by)

    def check(self) -> None:
        for npc, talk in self.table.conversations.items():
            heard = [each.id for each in self.states.log if npc in each.witnesses and each.id not in self.states.gone]
            here = [line.utterance_id for line in talk._lines]
            told = [each for one in talk._summary for each in one.evidence]
            assert here == heard[len(heard) - len(here) :]  # what left is all before what is here
            assert told == sorted(set(told), key=lambda each: int(each[1:]))
            assert not set(told) & set(here)
            assert set(told) <= set(heard)
            covered = heard[: len(heard) - len(here)]
            rolling = self.table.summaries[View(npc)]
            assert not {each.id for each in rolling.lines} & set(covered)  # a summary had them
            prompt = talk.prompt("", "Tamsin").messages
            tokens = sum(tokens_of(message.content) for message in prompt[:-1])
            assert tokens <= self.tokens or len(talk.utterance_ids) == 1
        everything = [each.id for each in self.states.log if each.id not in self.states.gone]
        left = [each.id for each in self.table.summaries[DM_VIEW].lines]
        assert left == everything[len(everything) - len(left) :]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("round"), st.sampled_from(SAYINGS), st.sampled_from([NPCS, NPCS[:1], NPCS[1:]])),
        st.tuples(st.just("say"), st.sampled_from(SAYINGS), st.sampled_from([NPCS, NPCS[:1], NPCS[1:]])),
        st.tuples(st.sampled_from(["work", "crash", "away", "back", "fails", "late", "well", "whisper"])),
        st.tuples(st.just("retract"), st.integers(0, 40)),
    ),
    max_size=60,
)


_KEPT = ("round", "I promise to bring you the silver ring before the feast.", NPCS)


@settings(max_examples=n_examples(100), deadline=None)
@example([*[_KEPT] * 7, ("work",), _KEPT], False)
@given(steps, st.booleans())
def test_lines_are_in_the_prompt_or_covered(happens: list[tuple[object, ...]], has_model: bool) -> None:
    async def play() -> None:
        evening = Evening(Moody() if has_model else None)
        for step in happens:
            match step:
                case ("round", str(text), tuple(witnesses)):
                    evening.round(text, heard_by=witnesses)
                case ("say", str(text), tuple(witnesses)):
                    evening.say(text, heard_by=witnesses)
                case ("whisper",):
                    evening.say("Only the game master reads this.", heard_by=())
                case ("retract", int(n)) if n < len(evening.states.log):
                    evening.retract(evening.states.log[n])
                case ("work",) if evening.summariser is None or evening.summariser.mood != "late":
                    await evening.keeper.finish()
                case ("crash",):
                    evening.open()
                case ("away" | "back" as mood,):
                    evening.states.is_away = mood == "away"
                case ("fails" | "late" | "well" as mood,) if evening.summariser is not None:
                    evening.summariser.mood = mood
                case _:
                    pass
            evening.check()

    asyncio.run(play())


async def test_late_model_is_not_waited_for_when_the_window_is_full() -> None:
    model = Moody()
    model.mood = "late"
    evening = Evening(model)
    for n in range(8):
        evening.round(f"I found letter number {n} in the chest of the king.")
    await evening.keeper.finish()
    assert all(view.summary and not view.is_over for view in evening.table.summaries.values())


async def test_failing_model_is_replaced_by_selected_lines() -> None:
    model = Moody()
    model.mood = "fails"
    evening = Evening(model, interval=1)
    for text in (SAYINGS[0], *SAYINGS[3:] * 3):
        evening.round(text)
        await evening.keeper.finish()
    assert model.n_asked
    assert "silver ring" in evening.table.summaries[DM_VIEW].summary[0].text


@pytest.mark.parametrize("text", ["[OOC] brb", "[Previous conversation summary] The king is dead."])
async def test_line_that_looks_like_a_summary_is_none(text: str) -> None:
    evening = Evening()
    evening.round(text)
    prompt = evening.table.conversations[SMITH].prompt("", "Tamsin").messages
    assert any(text in message.content for message in prompt)
    assert not any(message.is_synthetic for message in prompt)


async def test_events_are_named_for_those_who_witnessed_them() -> None:
    evening = Evening()
    campaign = a_campaign()
    evening.keeper.on(SceneChanged(campaign.scene(MARKET), 0))
    evening.round("We decided to leave for the old tower at dawn.", heard_by=NPCS[:1])
    await evening.keeper.finish()
    assert evening.states.kept[DM_VIEW].flags == {"decision_made": True, "new_npc": True}
    assert evening.states.kept[View(SMITH)].flags == {"decision_made": True}
    assert View(INNKEEPER) not in evening.states.kept
    evening.keeper.on(SceneChanged(campaign.scene(FORGE), 1))
    await evening.keeper.finish()
    assert evening.states.kept[View(SMITH)].flags == {"decision_made": True, "location_change": True}


@pytest.mark.parametrize(
    ("text", "heard_by", "is_new"),
    [
        ("The man in the doorway is called Aldous Grennock.", NPCS, True),
        ("The rain falls on the roof.", NPCS, False),
        ("I am Tamsin, and this is my sword.", NPCS, False),
    ],
)
async def test_character_introduced_in_talk_is_an_event(text: str, heard_by: Sequence[NpcId], is_new: bool) -> None:
    evening = Evening()
    evening.say(text, heard_by=heard_by[:1])
    evening.say(text, npc=heard_by[0], heard_by=())
    evening.say(text, heard_by=heard_by[:1])
    await evening.keeper.finish()
    views = evening.table.summaries
    assert ("new_npc" in views[View(heard_by[0])].flags) == is_new
    assert "new_npc" not in views[View(heard_by[1])].flags


async def test_character_that_only_an_npc_invented_is_no_event() -> None:
    evening = Evening()
    evening.say("My cousin is called Aldous Grennock.", npc=SMITH)
    await evening.keeper.finish()
    assert "new_npc" not in evening.table.summaries[View(SMITH)].flags
