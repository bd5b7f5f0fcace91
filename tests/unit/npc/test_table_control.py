"""The DM's commands at a table with real actors, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from glyphoxa.actors.supervisor import MailboxFull
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import PauseChanged, SessionEnds, Whispered
from glyphoxa.domain.heard import PartialHeard, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.domain.turn_record import Outcome, Unaddressed
from glyphoxa.npc.commands import (
    Direct,
    EndSession,
    LetNpcsTalk,
    Mute,
    Pause,
    Puppet,
    Readdress,
    SayAs,
    ShowControls,
    StopAll,
    SummariseEvery,
    TableCommand,
    Unmute,
    Unpause,
    WhisperTo,
)
from glyphoxa.prompt.conversation import RollingSummary
from glyphoxa.transcript.sessions import DM_VIEW, View
from tests.support.builders import BRAN, FORGE, INNKEEPER, MARKET, SMITH, TAMSIN, a_campaign, a_draft, a_partial
from tests.support.room_table import TableOfTwins, an_open_table

REPLY = "Aye."
DIRECTION = "Be afraid of the dark."


@pytest.fixture
async def table() -> AsyncIterator[TableOfTwins]:
    async with an_open_table(TableOfTwins(dms={BRAN})) as table:
        yield table


async def obeyed(table: TableOfTwins, command: TableCommand) -> str:
    obeying = asyncio.create_task(table.room.obey(command))
    await table.settle()
    return await obeying


async def answered(table: TableOfTwins, text: str, npc: NpcId = SMITH) -> None:
    await table.says(TAMSIN, text)
    table.mouth(npc).end()
    await table.settle()
    await table.pass_time(400)


def kept(table: TableOfTwins) -> list[tuple[str, str]]:
    return [(u.speaker_name, u.text) for u in table.spool.utterances.values()]


async def test_a_command_in_force_is_stored_even_if_its_effects_fail(table: TableOfTwins) -> None:
    stored: list[set[NpcId]] = []
    table.room.control.on_change(lambda controls: stored.append({*controls.muted}))
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    with pytest.raises(MailboxFull):
        for _ in range(10_000):
            table.npcs[SMITH].cover((), ())
        table.room.control.obey(Mute(SMITH), at_ms=table.now_ms)
    assert stored == [{SMITH}] == [table.room.control.controls.muted]


async def test_a_muted_npc_opens_no_turn_and_the_record_says_muted(table: TableOfTwins) -> None:
    assert await obeyed(table, Mute(SMITH)) == "Grimjaw is muted"
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    (turn,) = table.turns()
    assert (turn.outcome, turn.npc_id, turn.unaddressed) == (Outcome.NOT_ADDRESSED, None, Unaddressed.MUTED)
    assert "muted" in turn.address_reason
    assert table.mouth(SMITH).asked == [] == table.mouth(INNKEEPER).asked
    assert kept(table) == [("Tamsin", "Grimjaw, how is my blade?")]

    await obeyed(table, Unmute(SMITH))
    await answered(table, "Grimjaw, how is it?")
    assert table.turns()[-1].outcome is Outcome.ANSWERED


async def test_all_are_muted_and_may_speak_again(table: TableOfTwins) -> None:
    for command, report, muted in (
        (Mute(), "everybody is muted", {SMITH, INNKEEPER}),
        (Unmute(SMITH), "Grimjaw may speak again", {INNKEEPER}),
        (Unmute(), "everybody may speak again", set()),
    ):
        assert await obeyed(table, command) == report
        assert table.room.control.controls.muted == muted


async def test_direction_without_words_ends_the_current_one(table: TableOfTwins) -> None:
    await obeyed(table, Direct(SMITH, DIRECTION, 2))
    assert await obeyed(table, Direct(SMITH, "")) == "Grimjaw has no direction any more"
    assert table.room.control.controls.directions == {}


async def test_npc_muted_while_speaking_stops_and_keeps_what_was_heard(table: TableOfTwins) -> None:
    table.mouth(SMITH).reply = "Once upon a time"
    await table.says(TAMSIN, "Grimjaw, tell me a story.")
    await obeyed(table, Mute(SMITH))
    (turn,) = table.turns()
    assert (turn.outcome, turn.reply_heard) == (Outcome.INTERRUPTED, "Once")
    assert kept(table)[-1] == ("Grimjaw", "Once")


async def test_dms_words_as_an_npc_are_logged_as_the_npcs(table: TableOfTwins) -> None:
    words = "The gate is closed. Go home."
    assert await obeyed(table, SayAs(SMITH, words)) == "Grimjaw will say it as soon as the floor is free"
    assert table.mouth(SMITH).asked[-1].words == words
    assert table.mouth(SMITH).is_heard
    table.mouth(SMITH).end()
    await table.settle()
    assert kept(table) == [("Grimjaw", words)]
    (turn,) = table.turns()
    assert (turn.speaker_name, turn.address_reason, turn.outcome) == (
        "the DM",
        "words of the DM",
        Outcome.ANSWERED,
    )
    assert turn.reply_id in table.spool.utterances
    own = [message.content for message in table.npcs[SMITH].conversation.prompt("", "x").messages]
    heard = [message.content for message in table.npcs[INNKEEPER].conversation.prompt("", "x").messages]
    assert words in own and f"Grimjaw says: {words}" in heard


async def test_dms_words_go_before_pending_answers(
    table: TableOfTwins,
) -> None:
    table.mouth(SMITH).release = lambda turn: None  # type: ignore[method-assign]  # it is still thinking
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    await table.says(BRAN, "Grimjaw, and mine?")
    del table.mouth(SMITH).release
    await obeyed(table, SayAs(SMITH, "Quiet, both of you."))
    await obeyed(table, SayAs(SMITH, "I am busy."))
    outcomes = []
    for _ in range(3):
        table.mouth(SMITH).end()
        await table.settle()
        await table.pass_time(400)
        outcomes = [(turn.outcome, turn.reply_heard) for turn in table.turns()]
    assert outcomes == [
        (Outcome.SUPERSEDED, ""),
        (Outcome.ANSWERED, "Quiet, both of you."),
        (Outcome.ANSWERED, "I am busy."),
        (Outcome.ANSWERED, REPLY),
    ]


async def test_direction_is_in_the_npcs_prompts_and_never_in_the_log(table: TableOfTwins) -> None:
    assert await obeyed(table, Direct(SMITH, DIRECTION, 2)) == "Grimjaw is directed for its next 2 answers"
    for text in ("Grimjaw, one.", "Grimjaw, two.", "Grimjaw, three."):
        await answered(table, text)
    await answered(table, "Mirelle, hello.", INNKEEPER)
    assert [prompt.direction for prompt in table.mouth(SMITH).asked] == [DIRECTION, DIRECTION, ""]
    assert [prompt.direction for prompt in table.mouth(INNKEEPER).asked] == [""]
    everything = [m.content for npc in table.npcs.values() for m in npc.conversation.prompt("", "x").messages]
    assert not any(DIRECTION in line for line in [*everything, *(text for _, text in kept(table))])


async def test_all_that_a_bound_player_says_goes_to_one_npc(table: TableOfTwins) -> None:
    assert await obeyed(table, Puppet(TAMSIN, INNKEEPER)) == "what Tamsin says goes to Mirelle"
    await answered(table, "What a night.", INNKEEPER)
    assert table.turns()[-1].npc_id == INNKEEPER
    await obeyed(table, Puppet(TAMSIN, None))
    await table.move(MARKET)  # nobody goes on with anybody
    await table.says(TAMSIN, "What a night.")
    assert table.turns()[-1].unaddressed is Unaddressed.NO_NAME


async def test_stop_cuts_speech_and_cancels_answers_without_losing_words(table: TableOfTwins) -> None:
    table.mouth(SMITH).reply = "Once upon a time"
    await table.says(TAMSIN, "Grimjaw, tell me a story.")
    await table.says(TAMSIN, "(to Bran) hush")
    await obeyed(table, StopAll())
    await table.pass_time(1_000)
    assert kept(table) == [
        ("Tamsin", "Grimjaw, tell me a story."),
        ("Grimjaw", "Once"),
        ("Tamsin", "(to Bran) hush"),
    ]
    assert table.room._turn_taking.is_quiet
    await answered(table, "Grimjaw, go on.")
    assert table.turns()[-1].outcome is Outcome.ANSWERED


async def test_whisper_is_delivered_and_not_logged(table: TableOfTwins) -> None:
    table.state.add_player(a_campaign().player(TAMSIN))
    assert await obeyed(table, WhisperTo(TAMSIN, "The cup is poisoned.")) == "Tamsin reads it"
    [whispered] = [event for event in table.events if isinstance(event, Whispered)]
    assert (whispered.player, whispered.text) == (TAMSIN, "The cup is poisoned.")
    assert kept(table) == []
    everything = [m.content for npc in table.npcs.values() for m in npc.conversation.prompt("", "x").messages]
    assert not any("poisoned" in line for line in everything)


async def test_the_dm_commands_aloud_and_no_npc_hears_it_but_the_log_has_it(table: TableOfTwins) -> None:
    await table.says(BRAN, "Grimjaw, be quiet.")
    assert table.room.control.controls.muted == {SMITH}
    (said,) = table.spool.utterances.values()
    assert (said.text, said.witnesses) == ("Grimjaw, be quiet.", frozenset())
    assert all(len(npc.conversation.utterance_ids) == 0 for npc in table.npcs.values())
    assert table.turns()[0].unaddressed is Unaddressed.COMMAND
    assert table.mouth(SMITH).asked == []
    await table.says(BRAN, "Grimjaw, you may speak.")
    await answered(table, "Grimjaw, how is my blade?")
    assert table.turns()[-1].outcome is Outcome.ANSWERED


async def test_player_cannot_command(table: TableOfTwins) -> None:
    await answered(table, "Grimjaw, be quiet.")
    assert (table.room.control.controls.muted, table.turns()[0].npc_id) == (set(), SMITH)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (SayAs(INNKEEPER, "Hello."), "Mirelle is not in this scene; here: Grimjaw"),
        (SayAs(SMITH, "  "), "words for an NPC must not be empty"),
        (SayAs(SMITH, "x" * 601), "words for an NPC may have at most 600 characters, not 601"),
        (Direct(SMITH, "Be short.", 26), "a direction applies to 1 to 25 turns, not 26"),
        (Direct(SMITH, "Be short.", 0), "a direction applies to 1 to 25 turns, not 0"),
        (SummariseEvery(51), "summaries are made every 1 to 50 rounds, not 51"),
        (LetNpcsTalk(11), "NPCs may give each other 0 to 10 answers in a row, not 11"),
        (WhisperTo(TAMSIN, "Hush."), "Tamsin does not sit at the table and would not see it"),
    ],
)
async def test_refused_command_says_why_and_does_nothing(table: TableOfTwins, command: TableCommand, why: str) -> None:
    await table.move(FORGE)
    n_events = len(table.events)
    with pytest.raises(InvalidInput) as error:
        await obeyed(table, command)
    assert str(error.value) == why
    assert table.events[n_events:] == [] and table.mouth(SMITH).asked == []
    assert await obeyed(table, ShowControls()) == "scene: Market Square, session s1\nNPCs: Grimjaw\nplayers: nobody"


async def test_an_engine_that_chooses_its_own_words_is_given_none(table: TableOfTwins) -> None:
    table.mouth(SMITH).says_given_words = False
    with pytest.raises(InvalidInput, match="Grimjaw speaks with the engine 'cascaded', which chooses its own words"):
        await obeyed(table, SayAs(SMITH, "Hello."))


async def test_the_dm_is_shown_what_is_in_force(table: TableOfTwins) -> None:
    for command in (Mute(INNKEEPER), Direct(SMITH, DIRECTION, 1), Puppet(TAMSIN, SMITH)):
        await obeyed(table, command)
    assert (await obeyed(table, ShowControls())).splitlines() == [
        "scene: Market Square, session s1",
        "NPCs: Grimjaw, Mirelle",
        "players: nobody",
        "muted: Mirelle",
        f"directed for its next answer: Grimjaw: {DIRECTION}",
        "what Tamsin says goes to Grimjaw",
    ]


async def test_npcs_answer_each_other_while_the_dm_lets_them(table: TableOfTwins) -> None:
    table.mouth(SMITH).reply = "Mirelle, tell them."
    for most in (1, 0):
        await obeyed(table, LetNpcsTalk(most))
        await answered(table, "Grimjaw, who was it?")
        assert bool(table.mouth(INNKEEPER).asked) is bool(most)
        if most:
            table.mouth(INNKEEPER).end()
            await table.pass_time(400)
            table.mouth(INNKEEPER).asked.clear()


async def test_summaries_follow_the_interval_that_the_dm_sets(table: TableOfTwins) -> None:
    table.state.summaries = {DM_VIEW: RollingSummary(500), View(SMITH): RollingSummary(500)}
    assert await obeyed(table, SummariseEvery(1)) == "summaries are made every 1 round"
    assert {each.interval for each in table.state.summaries.values()} == {1}
    assert "summaries are made every 1 round" in await obeyed(table, ShowControls())


async def test_speech_in_a_pause_is_neither_answered_nor_kept(
    table: TableOfTwins,
) -> None:
    assert await obeyed(table, Pause()) == "the table is paused: nothing is heard, answered or stored"
    await table.says(TAMSIN, "Grimjaw, how is my blade?")
    assert kept(table) == [] and table.turns() == [] and table.mouth(SMITH).asked == []
    assert not [event for event in table.events if isinstance(event, SpeechStarted | PartialHeard | TurnEnded)]
    assert "the table is paused" in await obeyed(table, ShowControls())
    with pytest.raises(InvalidInput, match="the table is paused, so nobody would be heard: resume it first"):
        await obeyed(table, SayAs(SMITH, "Hush."))

    assert await obeyed(table, Unpause()) == "the table continues"
    await answered(table, "Grimjaw, and now?")
    assert kept(table) == [("Tamsin", "Grimjaw, and now?"), ("Grimjaw", REPLY)]
    assert [event.is_paused for event in table.events if isinstance(event, PauseChanged)] == [True, False]


async def test_speech_that_runs_into_a_pause_is_kept_and_not_answered(
    table: TableOfTwins,
) -> None:
    table.mouth(SMITH).reply = "Once upon a time"
    await table.says(TAMSIN, "Grimjaw, tell me a story.")
    table.room.mailbox.post(SpeechStarted(BRAN, table.now_ms))
    table.room.mailbox.post(a_partial(BRAN, "Grimjaw, hold", table.now_ms))
    await obeyed(table, Pause())
    table.room.mailbox.post(TurnEnded(a_draft(BRAN, "Grimjaw, hold on."), table.now_ms))
    await table.settle()
    await table.says(BRAN, "Where is the salt?")
    assert ("Bran", "Grimjaw, hold on.") in kept(table) and ("Grimjaw", "Once") in kept(table)
    assert "Where is the salt?" not in [text for _, text in kept(table)]
    assert [(t.outcome, t.unaddressed) for t in table.turns() if t.text == "Grimjaw, hold on."] == [
        (Outcome.NOT_ADDRESSED, Unaddressed.PAUSED)
    ]
    assert len(table.mouth(SMITH).asked) == 1


async def test_typed_line_in_flight_at_a_pause_is_kept(table: TableOfTwins) -> None:
    await obeyed(table, Pause())
    typed = replace(a_draft(TAMSIN, "Grimjaw, one."), typed=True)
    for event in (SpeechStarted(TAMSIN, table.now_ms), TurnEnded(typed, table.now_ms)):
        table.room.mailbox.post(event)
    await table.settle()
    assert kept(table) == [("Tamsin", "Grimjaw, one.")] and table.mouth(SMITH).asked == []


async def test_end_of_session_is_reported_to_caller_and_host(table: TableOfTwins) -> None:
    assert await obeyed(table, EndSession()) == "the session ends, and the table closes"
    assert [event for event in table.events if isinstance(event, SessionEnds)]


LAST = UtteranceId("")


async def test_readdressed_line_is_answered_by_the_right_npc_and_heard_stays_heard(table: TableOfTwins) -> None:
    table.mouth(SMITH).reply = "There is no ale here."
    await table.says(TAMSIN, "Grimjaw, an ale.")
    assert await obeyed(table, Readdress(INNKEEPER, LAST)) == "what Tamsin said was for Mirelle"
    await table.pass_time(1_000)
    table.mouth(INNKEEPER).end()
    await table.settle()
    wrong, right = table.turns()
    assert (wrong.npc_id, wrong.outcome, wrong.is_readdressed) == (SMITH, Outcome.INTERRUPTED, False)
    assert (right.npc_id, right.text, right.is_readdressed) == (INNKEEPER, "Grimjaw, an ale.", True)
    assert right.address_reason == "the DM says it was for Mirelle"
    assert right.utterance_id == wrong.utterance_id
    assert [text for _, text in kept(table)] == ["Grimjaw, an ale.", "There", "Aye."]
    for npc in (SMITH, INNKEEPER):
        lines = [each.content for each in table.npcs[npc].conversation.prompt("", "Tamsin").messages]
        assert sum("an ale" in line for line in lines) == 1
        assert not any("to Grimjaw" in line for line in lines)


async def test_line_that_was_kept_apart_is_heard_once_it_was_for_an_npc(table: TableOfTwins) -> None:
    await table.says(TAMSIN, "brb, an ale.")
    await obeyed(table, Readdress(None, LAST))
    assert (table.turns()[-1].unaddressed, table.turns()[-1].npc_id) == (Unaddressed.NOT_MEANT, None)
    assert table.npcs[SMITH].conversation.spoken == []
    await obeyed(table, Readdress(INNKEEPER, LAST))
    table.mouth(INNKEEPER).end()
    await table.settle()
    assert table.npcs[SMITH].conversation.spoken == ["brb, an ale.", "Aye."]


async def test_line_is_not_readdressed_to_an_npc_that_cannot_answer_it(table: TableOfTwins) -> None:
    with pytest.raises(InvalidInput, match="no player has spoken yet"):
        await obeyed(table, Readdress(SMITH, LAST))
    await table.move(FORGE)
    await table.says(TAMSIN, "Grimjaw, an ale.")
    with pytest.raises(InvalidInput, match="Mirelle is not in this scene; here: Grimjaw"):
        await obeyed(table, Readdress(INNKEEPER, LAST))
    await table.move(MARKET)
    with pytest.raises(InvalidInput, match="Mirelle was not there when Tamsin said it"):
        await obeyed(table, Readdress(INNKEEPER, LAST))
    with pytest.raises(InvalidInput, match="no player has said a line 'zzz' lately"):
        await obeyed(table, Readdress(SMITH, UtteranceId("zzz")))
    await obeyed(table, Mute(SMITH))
    with pytest.raises(InvalidInput, match="Grimjaw is muted: unmute it first"):
        await obeyed(table, Readdress(SMITH, LAST))
