"""The room with real actors and mouths that follow the protocol, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from glyphoxa.actors.clock import TableClock
from glyphoxa.domain.events import Degraded, NpcSpeaks, NpcThinks, TurnFinished, UtteranceKept
from glyphoxa.domain.heard import (
    Correction,
    EagerTurn,
    Heard,
    HeardWord,
    NothingSaid,
    PartialHeard,
    SpeechPaused,
    SpeechStarted,
    TurnEnded,
)
from glyphoxa.domain.ids import NpcId, SpeakerId
from glyphoxa.domain.turn_record import LookUp, Outcome, Stage, Unaddressed
from glyphoxa.language.words import leads_to
from glyphoxa.npc.mouth import Finished, Injected, ReplyKnown, SentenceStarted
from glyphoxa.npc.room import Room
from glyphoxa.turns.open_turns import Patience
from glyphoxa.turns.questions import Questions
from glyphoxa.turns.turn_taking import TurnTaking
from tests.support.builders import (
    BRAN,
    FORGE,
    INNKEEPER,
    SMITH,
    TAMSIN,
    a_draft,
    a_partial,
    an_utterance,
)
from tests.support.patience import DEADLINE_S
from tests.support.room_table import NAMES, TableOfTwins, an_open_table, named
from tests.support.virtual_time import run_in_virtual_time


@pytest.fixture
async def table() -> AsyncIterator[TableOfTwins]:
    async with an_open_table(TableOfTwins()) as table:
        yield table


async def test_a_question_is_answered_and_both_are_kept_under_the_ids_of_the_turn(table: TableOfTwins) -> None:
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    table.mouth(SMITH).end()
    await table.settle()
    (turn,) = table.turns()
    assert (turn.outcome, turn.npc_id, turn.reply_heard) == (Outcome.ANSWERED, SMITH, "Aye.")
    assert turn.first_audio_ms == 500
    assert [turn.utterance_id, turn.reply_id] == list(table.spool.utterances)
    assert [(u.speaker_name, u.text) for u in table.spool.utterances.values()] == [
        ("Tamsin", "Grimjaw, how is my blade?"),
        ("Grimjaw", "Aye."),
    ]
    assert all(u.witnesses == {SMITH, INNKEEPER} for u in table.spool.utterances.values())


async def test_every_npc_present_overhears_and_one_answers(table: TableOfTwins) -> None:
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    table.mouth(SMITH).end()
    await table.settle()
    heard = [m.content for m in table.npcs[INNKEEPER].conversation.prompt("", "x").messages]
    assert "Tamsin says to Grimjaw: Grimjaw, how is my blade?" in heard
    assert "Grimjaw says: Aye." in heard
    assert table.mouth(INNKEEPER).asked == []


async def test_npc_outside_the_scene_hears_nothing(table: TableOfTwins) -> None:
    await table.move(FORGE)
    await table.says(TAMSIN, "Grimjaw, my brother is lost.")
    table.mouth(SMITH).end()
    await table.settle()
    assert all(INNKEEPER not in u.witnesses for u in table.spool.utterances.values())
    assert len(table.npcs[INNKEEPER].conversation.utterance_ids) == 0


async def test_only_the_heard_part_of_an_answer_is_kept(table: TableOfTwins) -> None:
    await table.says(TAMSIN, "Grimjaw, tell me a story.")
    table.mouth(SMITH).reply = "Once upon a time there was"
    table.room.mailbox.post(SpeechStarted(BRAN, table.now_ms))
    table.room.mailbox.post(a_partial(BRAN, "wait a moment", table.now_ms))
    await table.settle()
    (turn,) = table.turns()
    assert (turn.outcome, turn.reply_heard) == (Outcome.INTERRUPTED, "Once")
    last = list(table.spool.utterances.values())[-1]
    assert (last.text, last.raw_text) == ("Once", "Once upon a time there was")
    assert table.npcs[SMITH].conversation.prompt("", "x").messages[-2].content == "Once"


async def test_voice_holds_an_npc_cough_resumes_it_words_cut_it_off(table: TableOfTwins) -> None:
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    mouth = table.mouth(SMITH)
    for words, is_cut in ((None, False), ("Stop, I mean the axe.", True)):
        table.room.mailbox.post(SpeechStarted(BRAN, table.now_ms))
        await table.pass_time(250)
        assert mouth.is_held
        table.room.mailbox.post(SpeechPaused(BRAN, table.now_ms))
        await table.pass_time(300)
        if words is None:
            table.room.mailbox.post(NothingSaid(BRAN, table.now_ms))
        else:
            table.room.mailbox.post(EagerTurn(a_draft(BRAN, words, end_ms=table.now_ms)))
        await table.settle()
        assert (mouth.turn is None) is is_cut
        assert mouth.is_held is is_cut
    (record,) = table.turns()
    assert record.outcome is Outcome.INTERRUPTED
    assert record.silenced_after_ms == 0
    assert record.stages[Stage.AUDIO_END] == record.stages[Stage.SILENCED] == record.stages[Stage.BARGE_IN]


async def test_second_called_npc_reacts_to_what_was_heard(
    table: TableOfTwins,
) -> None:
    await table.says(TAMSIN, "Grimjaw, Mirelle, is iron dear?")
    first, second = table.mouth(SMITH), table.mouth(INNKEEPER)
    assert first.turn is not None
    table.room.mailbox.post(ReplyKnown(SMITH, first.turn, first.reply))
    await table.settle()
    (asked,) = second.asked
    assert asked.is_brief
    assert asked.messages[-1].content == "Grimjaw says: Aye."
    assert not second.is_heard
    first.end()
    await table.settle()
    await table.pass_time(300)
    assert second.is_heard
    second.reply = "Dear enough."
    second.end()
    await table.settle()
    lead, reaction = table.turns()
    assert (lead.npc_id, lead.outcome) == (SMITH, Outcome.ANSWERED)
    assert (reaction.npc_id, reaction.speaker_name, reaction.text) == (INNKEEPER, "Grimjaw", "Aye.")
    assert (reaction.outcome, reaction.reply_heard) == (Outcome.ANSWERED, "Dear enough.")
    assert reaction.utterance_id == lead.reply_id
    assert reaction.address_reason == "called together with Grimjaw"
    heard = [m.content for m in table.npcs[INNKEEPER].conversation.prompt("", "Tamsin").messages]
    assert heard.count("Grimjaw says: Aye.") == 1


async def test_waiting_turn_is_reported_plays_a_filler_and_counts_its_wait(
    table: TableOfTwins,
) -> None:
    table.room._turn_taking.patience = Patience(filler_after_ms=700)
    long, waiting = table.mouth(INNKEEPER), table.mouth(SMITH)
    long.is_slow = waiting.is_slow = True
    await table.says(BRAN, "Mirelle, tell me everything.")
    await table.says(TAMSIN, "Grimjaw, hello.")
    assert any(isinstance(event, NpcThinks) and event.npc == SMITH for event in table.events)
    long.sounds()
    await table.settle()
    await table.pass_time(9_000)
    assert not waiting.fillers
    long.end()
    await table.settle()
    await table.pass_time(300)
    await table.pass_time(1)
    assert waiting.fillers == ["Hm."]
    waiting.sounds()
    waiting.end()
    await table.settle()
    assert table.turns()[-1].waited_ms == 9_300


async def test_npc_called_by_another_has_its_words_once_in_its_prompt(table: TableOfTwins) -> None:
    table.room.control.controls.npc_to_npc = 1
    await table.says(TAMSIN, "Grimjaw, who has ale?")
    table.mouth(SMITH).reply = "Mirelle, tell her."
    table.mouth(SMITH).end()
    await table.settle()
    (asked,) = table.mouth(INNKEEPER).asked
    contents = [message.content for message in asked.messages]
    assert contents[-1] == "Grimjaw says: Mirelle, tell her."
    assert contents.count(contents[-1]) == 1
    assert not asked.is_brief


def test_npc_with_a_hanging_engine_restarts_within_two_seconds() -> None:
    async def evening() -> None:
        async with an_open_table(TableOfTwins()) as table:
            await table.says(TAMSIN, "Grimjaw, how is my blade?")
            broken, other = table.mouth(SMITH), table.mouth(INNKEEPER)
            broken.close = asyncio.Event().wait  # type: ignore[assignment, method-assign]
            broken.cancel = None  # type: ignore[assignment, method-assign]  # calling it raises: the actor crashes
            table.room.mailbox.post(SpeechStarted(BRAN, table.now_ms))
            table.room.mailbox.post(a_partial(BRAN, "hold on", table.now_ms))
            await table.settle()
            assert table.mouth(SMITH) is broken  # which still closes
            table.room.mailbox.post(TurnEnded(a_draft(BRAN, "Mirelle, an ale."), table.now_ms))
            await asyncio.sleep(2)
            await table.settle()
            assert table.mouth(SMITH) is not broken
            await table.pass_time(1_000)
            assert table.mouth(INNKEEPER) is other and other.is_heard
            heard = [m.content for m in table.npcs[SMITH].conversation.prompt("", "x").messages]
            assert "Tamsin says: Grimjaw, how is my blade?" in heard
            assert [turn.npc_id for turn in table.turns()] == [SMITH]

    run_in_virtual_time(evening())


async def test_next_question_is_answered_after_a_timeout(table: TableOfTwins) -> None:
    table.mouth(SMITH).release = lambda turn: None  # type: ignore[method-assign]  # an engine that hangs
    await table.says(TAMSIN, "Grimjaw, hello.")
    await table.pass_time(15_000)
    (timed_out,) = table.turns()
    assert timed_out.outcome is Outcome.TIMED_OUT
    assert len(table.mouth(SMITH).given_up) == 1
    await table.says(TAMSIN, "Mirelle, hello.")
    assert table.mouth(INNKEEPER).is_heard


async def test_npc_is_reported_as_thinking_before_its_answer(
    table: TableOfTwins,
) -> None:
    table.room.mailbox.post(SpeechStarted(TAMSIN, 0))
    await table.pass_time(800)
    table.room.mailbox.post(EagerTurn(a_draft(TAMSIN, "Grimjaw, hello.", end_ms=500)))
    await table.settle()
    assert not any(isinstance(event, NpcThinks) for event in table.events)  # they may still go on
    await table.says(TAMSIN, "Grimjaw, hello.")
    table.mouth(SMITH).end()
    await table.settle()
    kinds = (NpcThinks, NpcSpeaks, TurnFinished)
    told = [event for event in table.events if isinstance(event, kinds)]
    assert [type(event) for event in told] == [*kinds]
    assert isinstance(told[0], NpcThinks)
    assert (told[0].npc, told[0].player) == (SMITH, TAMSIN)


async def test_turn_of_a_permanently_failed_npc_ends_soon(table: TableOfTwins) -> None:
    await table.supervisor.stop(SMITH)
    table.room.mailbox.post(TurnEnded(a_draft(TAMSIN, "Grimjaw, hello."), table.now_ms))
    await table.settle()
    table.supervisor.start("grimjaw (declining)", table.npcs[SMITH].decline)
    await table.settle()
    table.room.mailbox.post(TurnEnded(a_draft(TAMSIN, "Grimjaw, are you there?"), table.now_ms))
    await table.settle()
    assert [turn.outcome for turn in table.turns()] == [Outcome.FAILED, Outcome.FAILED]


async def test_words_for_noise_are_stored_as_an_aside_and_open_no_turn(table: TableOfTwins) -> None:
    table.room.mailbox.post(SpeechStarted(TAMSIN, 0))
    table.room.mailbox.post(NothingSaid(TAMSIN, 900, a_draft(TAMSIN, "Thanks for watching!")))
    await table.settle()
    (stored,) = table.spool.utterances.values()
    assert (stored.text, stored.aside, stored.witnesses) == ("Thanks for watching!", Unaddressed.NOISE, frozenset())
    assert not stored.is_evidence
    assert table.turns() == []


async def test_typed_words_of_a_recogniser_are_said(table: TableOfTwins) -> None:
    typed = replace(a_draft(TAMSIN, "Grimjaw, thank you for watching!"), typed=True)
    table.room.mailbox.post(TurnEnded(typed, 1_000))
    await table.settle()
    assert table.mouth(SMITH).turn is not None
    (stored,) = table.spool.utterances.values()
    assert stored.aside is None


async def test_npc_goes_on_and_remembers_a_listeners_words(table: TableOfTwins) -> None:
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    mouth = table.mouth(SMITH)
    turn = mouth.turn
    await table.says(TAMSIN, "I see, thanks.")
    assert mouth.turn == turn
    assert not mouth.is_held
    mouth.end()
    await table.settle()
    assert [record.outcome for record in table.turns()] == [Outcome.NOT_ADDRESSED, Outcome.ANSWERED]
    stored = [utterance for utterance in table.spool.utterances.values() if utterance.text == "I see, thanks."]
    assert [utterance.witnesses for utterance in stored] == [{SMITH, INNKEEPER}]


async def test_player_who_leaves_is_not_shown_as_speaking(table: TableOfTwins) -> None:
    table.room.mailbox.post(SpeechStarted(TAMSIN, 0))
    table.room.leave(TAMSIN)
    await table.settle()
    assert isinstance(table.events[-1], NothingSaid)


def test_full_disk_loses_no_utterance_and_the_table_continues() -> None:
    async def evening() -> None:
        async with an_open_table(TableOfTwins()) as table:
            table.spool.is_full = True
            await table.says(TAMSIN, "Grimjaw, remember this.")
            assert table.mouth(SMITH).is_heard
            await asyncio.sleep(3)
            assert sum(isinstance(event, Degraded) for event in table.events) == 1
            table.spool.is_full = False
            table.mouth(SMITH).end()
            await asyncio.sleep(1)
            await table.settle()
            assert [u.text for u in table.spool.utterances.values()] == ["Grimjaw, remember this.", "Aye."]
            assert sum(isinstance(event, UtteranceKept) for event in table.events) == 2

    run_in_virtual_time(evening())


async def test_words_of_a_leaving_player_are_kept_with_word_data(
    table: TableOfTwins,
) -> None:
    grimjaw = Correction(4, 10, "grimja", "Grimjaw", 1.0, "phonetic", "")
    words = (HeardWord(0, 3, 0.9), HeardWord(4, 10, 0.3), HeardWord(11, 16, 0.9))
    table.room.mailbox.post(SpeechStarted(BRAN, table.now_ms))
    heard = Heard("ask Grimjaw about", "ask grimja about", (grimjaw,), 100, 100, words)
    table.room.mailbox.post(PartialHeard(BRAN, heard, 100))
    table.room.leave(BRAN)
    await table.settle()
    (kept,) = [event.utterance for event in table.events if isinstance(event, UtteranceKept)]
    assert (kept.text, kept.raw_text) == ("ask Grimjaw about", "ask grimja about")
    assert leads_to(kept.raw_text, kept.corrections, kept.text)
    assert kept.words == words
    assert not kept.typed


async def test_unheard_answer_is_not_stored(table: TableOfTwins) -> None:
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    table.mouth(SMITH).end(heard="")
    await table.settle()
    (turn,) = table.turns()
    assert turn.reply_id is None and turn.utterance_id is not None


async def test_look_ups_are_recorded_in_the_turn_they_answer(table: TableOfTwins) -> None:
    def look_up(npc: NpcId, query: str) -> LookUp:
        found = LookUp("memory_search_sessions", {"query": query}, {"found": []}, took_ms=5)
        table.room.looked_up(npc, found)
        return found

    look_up(SMITH, "before anybody asked")
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    blade, _ = look_up(SMITH, "blade"), look_up(INNKEEPER, "of another")
    table.mouth(SMITH).end()
    await table.settle()
    await table.says(TAMSIN, "Grimjaw, and my shield?")
    shield = look_up(SMITH, "shield")
    table.mouth(SMITH).end()
    await table.settle()
    assert [turn.looked_up for turn in table.turns()] == [(blade,), (shield,)]


async def test_a_turn_s_record_says_how_deep_the_npc_might_look_and_why(table: TableOfTwins) -> None:
    """A turn that was prepared at a pause and cancelled does not count as the first one."""
    for question in ("Grimjaw, hello.", "Grimjaw, nice day.", "Grimjaw, tell me everything."):
        await table.says(TAMSIN, question)
        mouth = table.mouth(SMITH)
        assert mouth.turn is not None
        table.room.mailbox.post(Injected(SMITH, mouth.turn, tier=mouth.asked[-1].tier))
        await table.settle()
        mouth.end()
        await table.settle()
    assert [(turn.tier, turn.tier_reason) for turn in table.turns()] == [
        ("FAST", "first turn of the conversation; limited by this NPC's tier"),
        ("FAST", "needs nothing more"),
        ("FAST", "asks for depth: 'tell me everything'; limited by this NPC's tier"),
    ]


async def test_quiet_is_when_nobody_speaks_and_no_answer_is_on_its_way(table: TableOfTwins) -> None:
    await asyncio.wait_for(table.room.wait_until_quiet(), DEADLINE_S)
    await table.says(TAMSIN, "Grimjaw, hello.")
    waiting = asyncio.create_task(table.room.wait_until_quiet())
    await table.settle()
    assert not waiting.done()
    table.mouth(SMITH).end()
    await asyncio.wait_for(waiting, DEADLINE_S)


async def test_a_turn_that_is_meant_for_nobody_says_why_in_words_and_in_one_word(table: TableOfTwins) -> None:
    await table.says(TAMSIN, "What a day.")
    (turn,) = table.turns()
    assert (turn.outcome, turn.unaddressed) == (Outcome.NOT_ADDRESSED, Unaddressed.NO_NAME)
    assert turn.address_reason == "no name, and several NPCs are here"


def piece(table: TableOfTwins, npc: NpcId, text: str) -> None:
    mouth = table.mouth(npc)
    assert mouth.turn is not None
    table.room.mailbox.post(SentenceStarted(npc, mouth.turn, text, table.now_ms))


async def test_heard_part_is_stored_while_the_answer_plays(table: TableOfTwins) -> None:
    """Sentence by sentence, never one that is still being said, and under the id that the whole gets."""
    table.mouth(SMITH).reply = "Aye."
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    await table.settle()
    assert table.spool.so_far == []
    table.now_ms += 900
    piece(table, SMITH, "It is sharp.")
    await table.settle()
    table.now_ms += 800
    piece(table, SMITH, "Take it.")
    await table.settle()
    assert [(said.text, said.raw_text) for said in table.spool.so_far] == [
        ("Aye.", "Aye. It is sharp."),
        ("Aye. It is sharp.", "Aye. It is sharp. Take it."),
    ]
    assert [said.duration_ms for said in table.spool.so_far] == [900, 1700]
    table.mouth(SMITH).reply = "Aye. It is sharp. Take it."
    table.mouth(SMITH).end()
    await table.settle()
    (whole,) = [said for said in table.spool.utterances.values() if said.npc_id == SMITH]
    assert {said.id for said in table.spool.so_far} == {whole.id}
    assert (whole.text, whole.witnesses) == ("Aye. It is sharp. Take it.", {SMITH, INNKEEPER})


async def test_heard_part_is_kept_after_an_engine_crash(table: TableOfTwins) -> None:
    table.mouth(SMITH).reply = "Aye."
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    piece(table, SMITH, "It is sharp.")
    await table.settle()
    mouth = table.mouth(SMITH)
    assert mouth.turn is not None
    table.room.mailbox.post(Finished(SMITH, mouth.turn, "", "", 0, False, table.now_ms, error="it fell"))
    await table.settle()
    (kept,) = [said for said in table.spool.utterances.values() if said.npc_id == SMITH]
    assert (kept.text, kept.raw_text) == ("Aye.", "Aye. It is sharp.")
    (turn,) = table.turns()
    assert (turn.reply_heard, turn.reply_id) == ("Aye.", kept.id)


async def test_unsaved_utterances_can_be_written_without_the_room(table: TableOfTwins) -> None:
    room = Room(
        table.state,
        turn_taking=TurnTaking(Questions(named, NAMES)),
        npcs=table.npcs,
        journal=table.journal,
        clock=TableClock(table.clock),
    )
    finished = a_draft(TAMSIN, "Grimjaw, one.", end_ms=500)
    for event in (SpeechStarted(TAMSIN, 0), TurnEnded(finished, 900), SpeechStarted(BRAN, 0)):
        room.mailbox.post(event)
    room.mailbox.post(a_partial(BRAN, "And I have", 700))
    assert [(said.speaker_id, said.text) for said in room.unwritten()] == [
        (TAMSIN, "Grimjaw, one."),
        (BRAN, "And I have"),
    ]
    assert room.unwritten() == []


async def test_flooded_npc_hears_the_newest_and_all_is_stored(
    table: TableOfTwins,
) -> None:
    await table.supervisor.stop(INNKEEPER)
    table.npcs[INNKEEPER].mailbox._capacity = 3_000
    for number in range(2_000):
        draft = a_draft(BRAN, f"What a day it is, number {number}.")
        table.room.mailbox.post(TurnEnded(draft, table.now_ms))
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    table.mouth(SMITH).end()
    async with asyncio.timeout(DEADLINE_S):
        await table.journal.wait_until_written()
    assert len(table.spool.utterances) == 2_002
    assert table.turns()[-1].outcome is Outcome.ANSWERED
    table.supervisor.start(INNKEEPER, table.npcs[INNKEEPER].run)
    await table.says(BRAN, "Is anybody there?")
    heard = [message.content for message in table.npcs[INNKEEPER].conversation.prompt("", "x").messages]
    assert any("number 1999" in line for line in heard)


async def test_aside_within_a_question_is_kept_and_asked_once(
    table: TableOfTwins,
) -> None:
    await table.move(FORGE)
    table.room.mailbox.post(SpeechStarted(TAMSIN, 0))  # somebody else still speaks: the answer is not heard yet
    await table.says(BRAN, "How is my blade?")
    await table.says(BRAN, "brb, pizza")
    asked = table.mouth(SMITH).asked[-1].messages
    assert asked[-1].content == "Bran says: How is my blade?"
    assert sum("blade" in message.content for message in asked) == 1
    by_text = {utterance.text: utterance.id for utterance in table.spool.utterances.values()}
    records = [(turn.outcome, turn.utterance_id) for turn in table.turns()]
    assert (Outcome.NOT_ADDRESSED, by_text["brb, pizza"]) in records
    table.room.mailbox.post(NothingSaid(TAMSIN, table.now_ms))
    await table.settle()
    table.mouth(SMITH).end()
    await table.settle()
    assert (table.turns()[-1].outcome, table.turns()[-1].utterance_id) == (
        Outcome.ANSWERED,
        by_text["How is my blade?"],
    )


async def test_conversation_continues_after_the_table_reopens(table: TableOfTwins) -> None:
    await table.says(TAMSIN, "Ten crowns, then.")
    assert not table.mouth(SMITH).asked
    asked = an_utterance("Grimjaw, how is my blade?", speaker=TAMSIN)
    answer = replace(an_utterance("Aye."), speaker_id=SpeakerId(SMITH), npc_id=SMITH, at_ms=table.now_ms - 5_000)
    table.room.remember([asked, answer])
    await table.says(TAMSIN, "Ten crowns, then.")
    assert table.mouth(SMITH).asked
