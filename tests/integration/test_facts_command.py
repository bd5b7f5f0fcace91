from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.command_line import BAKER, DEBT, SCARED, WENT, a_settings_file, run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def settings_file(tmp_path: Path, evenings_dsn: str) -> Path:
    return a_settings_file(tmp_path, evenings_dsn)


async def facts(settings_file: Path, *arguments: object) -> int:
    return await run("facts", *arguments, "--config", settings_file)


async def shown(capsys: Capture, settings_file: Path, *arguments: object) -> str:
    """What `glyphoxa show` prints."""
    capsys.readouterr()
    assert await run("show", *arguments, "--config", settings_file) == 0, capsys.readouterr().err
    return capsys.readouterr().out


async def told(capsys: Capture, settings_file: Path, *arguments: object) -> str:
    """What a verb that succeeds prints."""
    capsys.readouterr()
    assert await facts(settings_file, *arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


async def test_what_waits_is_listed_the_least_certain_first(settings_file: Path, capsys: Capture) -> None:
    text = await told(capsys, settings_file, "review")
    rows = [line for line in text.splitlines() if "pending" in line]
    assert re.search(rf"{DEBT.fact_id[:8]} +Elowen debt: 40 +pending +0.40 inferred +witnessed: Grimjaw", rows[0])
    assert re.search(r"Elowen OWES_MONEY_TO Grimjaw +pending +0.60 inferred +public +campaign file", rows[1])
    assert "conflict: 1 (glyphoxa facts review conflict)" in text


async def test_a_dm_confirms_rejects_and_takes_back(settings_file: Path, capsys: Capture) -> None:
    assert "Elowen debt: 40: accepted" in await told(capsys, settings_file, "accept", DEBT.fact_id[:6])
    text = await told(capsys, settings_file, "reject", DEBT.fact_id)
    assert text == "no longer held: Elowen debt: 40 (rejected)\n"
    assert "undone: rejected: Elowen debt: 40" in await told(capsys, settings_file, "undo")
    assert "undone: confirmed: Elowen debt: 40" in await told(capsys, settings_file, "undo")
    assert f"{DEBT.fact_id[:8]}" in await told(capsys, settings_file, "review")
    assert await facts(settings_file, "undo") == 1
    assert "there is no decision to undo" in capsys.readouterr().err


async def test_a_conflict_shows_with_what_and_is_settled(settings_file: Path, capsys: Capture) -> None:
    text = await told(capsys, settings_file, "review", "conflict")
    assert re.search(r"Grimjaw occupation: baker +conflict .* Grimjaw occupation: blacksmith", text)
    text = await told(capsys, settings_file, "accept", BAKER.fact_id)
    assert "Grimjaw occupation: baker: accepted" in text
    assert "no longer held: Grimjaw occupation: blacksmith (superseded)" in text
    assert "no facts disagree" in await told(capsys, settings_file, "review", "conflict")


async def test_what_rested_on_a_rejected_fact_is_stale(settings_file: Path, capsys: Capture) -> None:
    assert "no facts are stale" in await told(capsys, settings_file, "review", "stale")
    await told(capsys, settings_file, "reject", SCARED.fact_id)
    assert "Elowen debt: 40" in await told(capsys, settings_file, "review", "stale")


async def test_the_dm_sees_why_an_npc_knows_a_thing(settings_file: Path, capsys: Capture) -> None:
    await told(capsys, settings_file, "tell", SCARED.fact_id, "--to", "Elowen", "--by", "tamsin")
    text = await shown(capsys, settings_file, "fact", SCARED.fact_id[:8])
    for line in (
        f"{SCARED.fact_id}  Elowen fears: the sea",
        "  accepted",
        "  0.90 inferred, from talk, stated once",
        "  said: s1, ordinal 1, 2096-10-02 07:07 (utterance s1-1)",
        "    Tamsin: Elowen never goes near the water, she fears it.",
        "  known to: witnessed: Elowen, Grimjaw",
        "    Grimjaw was there when it was said, 2096-10-02 07:07 (utterance s1-1)",
        f"  on it rests {DEBT.fact_id[:8]} Elowen debt: 40 (pending)",
    ):
        assert line in text.splitlines()
    assert re.search(r"^    Elowen was told by Tamsin, 20", text, re.MULTILINE)
    assert re.search(r" talk +stated: Elowen fears: the sea \(witnessed: Grimjaw\) +s1, ordinal 1$", text, re.MULTILINE)
    assert re.search(r" dm +Tamsin told Elowen: it$", text, re.MULTILINE)


async def test_what_a_fact_rests_on_and_disputes_is_shown(settings_file: Path, capsys: Capture) -> None:
    text = await shown(capsys, settings_file, "fact", DEBT.fact_id)
    assert f"  rests on {SCARED.fact_id[:8]} Elowen fears: the sea (accepted)" in text
    text = await shown(capsys, settings_file, "fact", BAKER.fact_id)
    assert re.search(r"  disagrees with \w{8} Grimjaw occupation: blacksmith \(accepted\)", text)


async def test_a_dm_edits_and_retcons(settings_file: Path, capsys: Capture) -> None:
    text = await told(capsys, settings_file, "correct", DEBT.fact_id, "--value", "60")
    assert "Elowen debt: 60: accepted, witnessed: Grimjaw" in text
    assert "no longer held: Elowen debt: 40 (edited)" in text
    text = await told(capsys, settings_file, "retcon", WENT.fact_id, "--object", "the drowned lantern")
    assert "Elowen LOCATED_AT The Drowned Lantern: accepted" in text
    assert "(retconned)" in await told(capsys, settings_file, "retcon", SCARED.fact_id)
    text = await told(capsys, settings_file, "correct", BAKER.fact_id, "--predicate", "note", "--value", '["bakes"]')
    assert 'Grimjaw note: ["bakes"]: accepted' in text


async def test_what_is_over_is_closed(settings_file: Path, capsys: Capture) -> None:
    text = await told(capsys, settings_file, "close", SCARED.fact_id, "--at", "2096-11-01 12:00", "--day", "12")
    assert "no longer held: Elowen fears: the sea (closed)" in text
    text = await shown(capsys, settings_file, "fact", SCARED.fact_id)
    assert "  holds until 2096-11-01 12:00, until day 12 of the story" in text


async def test_secrets_are_kept_hidden_and_revealed(settings_file: Path, capsys: Capture) -> None:
    fact = SCARED.fact_id[:8]

    async def known_to(npc: str) -> bool:
        return fact in await shown(capsys, settings_file, "facts", "--as", npc)

    assert (await known_to("grimjaw"), await known_to("elowen")) == (True, False)
    assert "secret: Elowen" in await told(capsys, settings_file, "secret", fact, "--known-by", "the innkeeper")
    assert (await known_to("grimjaw"), await known_to("elowen")) == (False, True)
    await told(capsys, settings_file, "hide", fact)
    assert (await known_to("grimjaw"), await known_to("elowen")) == (False, False)
    await told(capsys, settings_file, "reveal", fact, "--to", "Grimjaw")
    assert (await known_to("grimjaw"), await known_to("elowen")) == (True, False)
    assert "public" in await told(capsys, settings_file, "reveal", fact)
    assert await known_to("elowen")


async def test_what_waits_is_known_to_no_npc(settings_file: Path, capsys: Capture) -> None:
    text = await shown(capsys, settings_file, "facts", "--as", "Grimjaw", "--limit", "500")
    assert "fears" in text and "debt" not in text and "baker" not in text and "OWES" not in text
    assert "debt" in await shown(capsys, settings_file, "facts", "--about", "Elowen")


async def test_a_fact_is_added_by_hand(settings_file: Path, capsys: Capture) -> None:
    text = await told(capsys, settings_file, "state", "Elowen", "KNOWS", "--object", "the silent bell")
    assert "Elowen KNOWS The Silent Bell: accepted, public" in text
    text = await told(capsys, settings_file, "state", "Elowen", "note", "--value", "sings", "--known-by", "Grimjaw")
    assert "Elowen note: sings: accepted, secret: Grimjaw" in text
    text = await told(capsys, settings_file, "state", "Elowen", "note", "--value", "is a spy", "--hidden")
    assert "Elowen note: is a spy: accepted, hidden" in text
    text = await told(capsys, settings_file, "state", "Grimjaw", "occupation", "--value", "spy")
    assert "Grimjaw occupation: spy: conflict, public" in text
    assert re.search(r"it disagrees with \w{8}: `glyphoxa facts accept \w{8}` ends that one", text)


async def test_a_rollback_is_shown_and_asked_for_before_it_is_done(settings_file: Path, capsys: Capture) -> None:
    await told(capsys, settings_file, "state", "Elowen", "note", "--value", "sings")
    capsys.readouterr()
    assert await facts(settings_file, "rollback", "s1", "2") == 1
    asked = capsys.readouterr()
    assert "no longer known: Grimjaw occupation: baker" in asked.out
    assert "no longer known: Elowen LOCATED_AT The Anvil" in asked.out
    assert "known again: Elowen LOCATED_AT The Drowned Lantern" in asked.out
    assert "events that are dropped: 2\nutterances that nobody recalls any more: 3\n" in asked.out
    assert "Use --yes to do it without a question" in asked.err
    assert "baker" in await told(capsys, settings_file, "review", "conflict")

    text = await told(capsys, settings_file, "rollback", "s1", "2", "--yes")
    assert (again := re.search(r"rolled back; to undo it: glyphoxa facts undo (\d+)", text))
    text = await shown(capsys, settings_file, "facts", "--about", "Elowen")
    assert "The Drowned Lantern" in text and "The Anvil" not in text and "sings" in text and "debt" in text
    text = await told(capsys, settings_file, "rollback", "s1", "2")
    assert text == "nothing was said or learned after that\n"
    assert "undone: rolled back to ordinal 2 of session s1" in await told(capsys, settings_file, "undo", again[1])
    assert "The Anvil" in await shown(capsys, settings_file, "facts", "--about", "Elowen")


async def test_what_was_known_at_an_earlier_time(settings_file: Path, capsys: Capture) -> None:
    text = await shown(capsys, settings_file, "facts", "--as-of", "s1", "--about", "Elowen")
    assert "The Drowned Lantern" in text and "The Anvil" not in text and "debt" in text
    text = await shown(capsys, settings_file, "facts", "--as-of", "s2", "--about", "Elowen", "--as", "Grimjaw")
    assert "The Anvil" in text and "debt" not in text
    assert "nothing was known" in await shown(capsys, settings_file, "facts", "--as-of", "2020-01-01")


async def test_an_event_in_the_middle_is_undone_and_brought_back(settings_file: Path, capsys: Capture) -> None:
    text = await shown(capsys, settings_file, "history")
    [line] = [line for line in text.splitlines() if "stated: Elowen fears: the sea" in line]
    seq = line.split()[0]
    assert "undone: stated: Elowen fears: the sea" in await told(capsys, settings_file, "undo", seq)
    text = await shown(capsys, settings_file, "history")
    assert re.search(rf"^{seq} .*stated: Elowen fears: the sea .*undone$", text, re.MULTILINE)
    [undoing] = [line.split()[0] for line in text.splitlines() if f"undid event {seq}" in line]
    await told(capsys, settings_file, "undo", undoing)
    assert "fears" in await shown(capsys, settings_file, "facts", "--about", "Elowen")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("accept", "xyz"), "no fact 'xyz' in campaign 'saltmere': nearest: "),
        (("accept", ""), "no fact '' in campaign 'saltmere'"),
        (("correct", DEBT.fact_id), "say what is so instead: a value, an object or a predicate"),
        (("correct", DEBT.fact_id, "--object", "Elowen"), "is an attribute: say a value, or a predicate, too"),
        (("correct", WENT.fact_id, "--object", "Elowen"), "'elowen' cannot be related to itself"),
        (
            ("state", "Elowin", "note", "--value", "x"),
            "no entity 'Elowin' in campaign 'saltmere': did you mean 'Elowen'?",
        ),
        (("state", "Elowen", "note"), "a fact has an object (another entity) or a value: say one of both"),
        (("state", "Elowen", "note", "--value", '"a\\u0000b"'), "'note' of 'elowen': text cannot hold NUL characters"),
        (("secret", DEBT.fact_id, "--known-by", "Vaelith"), "no NPC 'Vaelith' in campaign 'saltmere': valid: "),
        (("tell", DEBT.fact_id, "--to", "Elowen", "--by", "nobody"), "'nobody' is nobody who speaks in campaign"),
        (("close", DEBT.fact_id, "--at", "noon"), "--at 'noon' is no time such as 2026-11-22 or 2026-11-22T19:30"),
        (("undo", "9999"), "there is no event 9999 in campaign 'saltmere'"),
        (("rollback", "s3", "1"), "no session 's3' in campaign 'saltmere': valid: 1 (s1), 2 (s2), last"),
        (("rollback", "s1", "7"), "session 's1' has the ordinals 0 to 3, not 7"),
        (("review", "--campaign", "saltmer"), "no campaign 'saltmer' here: did you mean 'saltmere'?"),
    ],
)
async def test_a_mistake_is_one_line_that_names_the_thing(
    settings_file: Path, arguments: tuple[str, ...], said: str, capsys: Capture
) -> None:
    capsys.readouterr()
    assert await facts(settings_file, *arguments) == 1
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
