from __future__ import annotations

import re

from tests.support.command_line import BAKER, DEBT, SCARED, CommandLine


async def test_what_waits_is_listed_the_least_certain_first(cli: CommandLine) -> None:
    text = await cli.told("facts", "review")
    rows = [line for line in text.splitlines() if "pending" in line]
    assert re.search(rf"{DEBT.fact_id[:8]} +Elowen, debt: 40 +pending +0.40 inferred +witnessed: Grimjaw", rows[0])
    assert re.search(r"Elowen owes money to Grimjaw +pending +0.60 inferred +public +campaign file", rows[1])
    assert "conflict: 1 (glyphoxa facts review conflict)" in text


async def test_a_conflict_shows_with_what_and_is_settled(cli: CommandLine) -> None:
    text = await cli.told("facts", "review", "conflict")
    assert re.search(r"Grimjaw, occupation: baker +conflict .* Grimjaw, occupation: blacksmith", text)
    text = await cli.told("facts", "accept", BAKER.fact_id)
    assert "Grimjaw, occupation: baker: accepted" in text
    assert "no longer held: Grimjaw, occupation: blacksmith (superseded)" in text
    assert "no facts disagree" in await cli.told("facts", "review", "conflict")


async def test_the_dm_sees_why_an_npc_knows_a_thing(cli: CommandLine) -> None:
    await cli.told("facts", "tell", SCARED.fact_id, "--to", "Elowen", "--by", "tamsin")
    text = await cli.told("show", "fact", SCARED.fact_id[:8])
    for line in (
        f"{SCARED.fact_id}  Elowen, fears: the sea",
        "  status: accepted",
        "  certainty: 0.90 inferred",
        "  known to: witnessed: Elowen, Grimjaw",
        "  from: session 1, line 1",
        "  who knows it: Grimjaw was there when it was said, 2096-10-02 07:07 (utterance s1-1)",
        "  said: Tamsin: Elowen never goes near the water, she fears it.",
        "  when: 2096-10-02 07:07",
        "  utterance: s1-1",
        "  origin: talk",
        "  stated: once",
        f"  supports: {DEBT.fact_id[:8]} Elowen, debt: 40: pending, 0.40 inferred, witnessed: Grimjaw",
    ):
        assert line in text.splitlines()
    assert re.search(r"^  who knows it: Elowen was told by Tamsin, 20", text, re.MULTILINE)
    assert re.search(
        r" talk +stated: Elowen, fears: the sea \(witnessed: Grimjaw\) +session 1, line 1$", text, re.MULTILINE
    )
    assert re.search(r" dm +Tamsin told Elowen: Elowen, fears: the sea$", text, re.MULTILINE)


async def test_what_a_fact_rests_on_and_disputes_is_shown(cli: CommandLine) -> None:
    text = await cli.told("show", "fact", DEBT.fact_id)
    assert f"  rests on: {SCARED.fact_id[:8]} Elowen, fears: the sea: accepted, " in text
    text = await cli.told("show", "fact", BAKER.fact_id)
    assert re.search(r"  contradicts: \w{8} Grimjaw, occupation: blacksmith: accepted, ", text)


async def test_what_waits_is_known_to_no_npc(cli: CommandLine) -> None:
    text = await cli.told("show", "facts", "--as", "Grimjaw", "--limit", "500")
    assert "fears" in text and "debt" not in text and "baker" not in text and "OWES" not in text
    assert "debt" in await cli.told("show", "facts", "--about", "Elowen")


async def test_a_rollback_is_shown_and_asked_for_before_it_is_done(cli: CommandLine) -> None:
    await cli.told("facts", "state", "Elowen", "note", "--value", "sings")
    code, shown, asked = await cli.run("facts", "rollback", "s1", "2")
    assert (code, "Use --yes to skip the question" in asked) == (1, True)
    assert "no longer known: Grimjaw, occupation: baker" in shown
    assert "no longer known: Elowen is at The Anvil" in shown
    assert "known again: Elowen is at The Drowned Lantern" in shown
    assert "events to be dropped: 2\nutterances that NPCs will no longer recall: 3\n" in shown
    assert "baker" in await cli.told("facts", "review", "conflict")

    text = await cli.told("facts", "rollback", "s1", "2", "--yes")
    assert (again := re.search(r"rolled back; to undo it: glyphoxa facts undo (\d+)", text))
    text = await cli.told("show", "facts", "--about", "Elowen")
    assert "The Drowned Lantern" in text and "The Anvil" not in text and "sings" in text and "debt" in text
    text = await cli.told("facts", "rollback", "s1", "2")
    assert text == "nothing was said or learned after that\n"
    assert "undone: rolled back to line 2 of session 1" in await cli.told("facts", "undo", again[1])
    assert "The Anvil" in await cli.told("show", "facts", "--about", "Elowen")


async def test_a_mistake_is_one_line_that_names_the_thing(cli: CommandLine) -> None:
    for arguments, said in (
        (("close", DEBT.fact_id, "--at", "noon"), "--at 'noon' is not a time such as 2026-11-22 or 2026-11-22T19:30"),
        (("undo", "9999"), "there is no event 9999 in campaign 'saltmere'"),
        (("rollback", "s3", "1"), "no session 's3' in campaign 'saltmere': valid: 1 (s1), 2 (s2), last"),
        (("review", "--campaign", "saltmer"), "no campaign 'saltmer' here: did you mean 'saltmere'?"),
    ):
        assert said in await cli.problem("facts", *arguments), arguments
