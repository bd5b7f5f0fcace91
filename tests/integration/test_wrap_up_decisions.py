"""The wrap-up on a database: nothing forbidden is proposed or learned, and decisions are all or nothing."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import subprocess
import sys
import termios
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.background import chronicle_worker
from glyphoxa.app.desk import Desk, WrappedUp, desk_of
from glyphoxa.app.scope import Scope
from glyphoxa.config.settings import Settings
from glyphoxa.dm.wrap_up import MOST_LINES, LineDecision
from glyphoxa.domain.campaign import Campaign, Safety
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId
from glyphoxa.domain.knowledge import DM
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.world.event_log import Cause, difference
from tests.support.builders import INNKEEPER, SMITH, a_known_party, an_utterance
from tests.support.command_line import a_settings_file
from tests.support.patience import DEADLINE_S
from tests.support.postgres import TestServer
from tests.support.proof import n_examples, proof_only
from tests.support.world_tables import everything, stands_as_replayed

EVENING = SessionId("s1")
BELL = "I hid the silver bell of the abbey under the third stone bridge."
MILL = "Mirelle promised the miller that Bran will bring the ledger to the tower."
DEBT = "Mirelle owes the captain of the harbour forty golden crowns."
NAMES = ("Arvelin", "Broskar", "Celdric", "Dorwenna", "Elspira", "Fendrel", "Gosmer", "Hestane", "Ilvary", "Jorvik")
"""A line has a name that no other line has."""
STORY = (
    "I met {}, a ferryman of Osterley, who hid the silver bell under the third bridge.",
    "I promise {} that we will bring forty crowns to the old mill by winter.",
    "Who poisoned {} with hemlock in the tower of the queen?",
    "The scholar {} burned the library because the mayor had sold her golden crown.",
    "My grandmother drowned when {} opened the gates of the northern dam.",
    "Tomorrow I will ask {} for the key of the royal treasury.",
    "A blacksmith called {} forged seven swords out of a fallen star.",
    "{} is the brother of Mirelle, and he has deserted from the army.",
    "I dreamed that a white stag led {} to the grave of the first king.",
    "The monks gave me a map, and {} tore it into five pieces.",
)
FORBIDDEN = ("withheld", "off record", "marked", "unmarked", "topic", "whisper", "npc", "retracted")


@dataclass(frozen=True)
class Line:
    kind: str
    witnesses: frozenset[NpcId]


LINES = st.lists(
    st.builds(
        Line,
        kind=st.sampled_from(("story", "story", "story", *FORBIDDEN)),
        witnesses=st.frozensets(st.sampled_from((SMITH, INNKEEPER))),
    ),
    min_size=3,
    max_size=len(NAMES),
)


def a_world(name: str, language: str = "en") -> Campaign:
    party = replace(a_known_party(), id=CampaignId(name), language=language)
    return replace(party, safety=Safety(lines=("spiders",)))


def said(campaign: Campaign, n: int, text: str, **how: object) -> Utterance:
    line = an_utterance(text, id=f"{campaign.id}-u{n}", speaker="Tamsin")
    return replace(line, campaign_id=campaign.id, session_id=EVENING, at_ms=1_000_000 + 5_000 * n, **how)  # type: ignore[arg-type]


def utterances(campaign: Campaign, lines: Sequence[Line]) -> list[Utterance]:
    spoken: list[Utterance] = []
    for name, form, line in zip(NAMES, STORY, lines, strict=False):
        text = form.format(name)
        how: dict[str, object] = {"witnesses": line.witnesses}
        match line.kind:
            case "off record":
                text = f"Don't write this down. {text}"
            case "unmarked":
                text = f"Out of character: {text}"
            case "topic":
                text = f"{text[:-1]}, and spiders crept over everything."
            case "marked":
                how |= {"aside": Unaddressed.OUT_OF_CHARACTER}
            case "whisper":
                how = {"aside": Unaddressed.WHISPER, "witnesses": frozenset()}
            case "npc":
                how |= {"npc_id": SMITH, "speaker_name": "Grimjaw", "speaker_id": SpeakerId("grimjaw")}
        spoken.append(said(campaign, len(spoken) + 1, text, **how))
        if line.kind == "withheld":
            spoken.append(said(campaign, len(spoken) + 1, "Don't remember that.", witnesses=line.witnesses))
    return spoken


async def desk_for(store: Store, campaign: CampaignId) -> Desk:
    return await desk_of(Scope(store, Settings(), campaign))


@asynccontextmanager
async def opened(dsn: str, directory: Path) -> AsyncIterator[Store]:
    async with open_store(dsn) as store:
        await store.database.open()
        yield store


async def texts_of(store: Store, campaign: CampaignId, npc: NpcId) -> str:
    """Everything that an NPC may know, in one text."""
    desk = await desk_for(store, campaign)
    known = await desk.inspection.current(campaign, npc, limit=1_000)
    return "\n".join(desk.facts.words(fact) for fact in known)


def shown(seen: WrappedUp, desk: Desk) -> str:
    """Everything that a wrap-up shows, in one text."""
    proposed = [f"{each.line.utterance.text} {each.claim.content} {each.claim.ends}" for each in seen.proposals]
    names = [" ".join(each.names) for each in seen.names]
    return "\n".join((*proposed, *names, *seen.opened, *seen.closed, *seen.recap))


async def evening_holds(store: Store, campaign: Campaign, lines: Sequence[Line], *, is_read: bool) -> None:
    """Play an evening, decide on all of it, undo that, decide again, and take a line back."""
    await store.campaigns.load(campaign)
    await store.log.append(utterances(campaign, lines))
    if is_read:
        await chronicle_worker(store).read_new(campaign.id)
    by_name = dict(zip(NAMES, lines, strict=False))
    spoken = {name: each for name in by_name for each in utterances(campaign, lines) if name in each.text}
    for name, line in by_name.items():
        if line.kind == "retracted":
            cited = await (await desk_for(store, campaign.id)).inspection.said(campaign.id, spoken[name].id)
            assert cited is not None
            await (await desk_for(store, campaign.id)).timeline.retract(cited)
    await (await desk_for(store, campaign.id)).wrap_up(EVENING)
    desk = await desk_for(store, campaign.id)
    seen = await desk.wrap_up(EVENING)
    before = await everything(store, campaign.id)
    for name, line in by_name.items():
        assert line.kind == "story" or name not in shown(seen, desk), (line, name)
    for each in seen.proposals:
        assert each.heard_by.scope == "witnessed"
        assert {knower.npc for knower in each.heard_by.knowers} <= each.line.utterance.witnesses
    if not seen.proposals:
        return
    first, rest = seen.proposals[0], seen.proposals[1:]
    decisions = [LineDecision("edit", first.name, "The party swore an oath.")]
    decisions += [LineDecision("confirm", ",".join(each.name for each in rest))] if rest else []
    await desk.decide(EVENING, decisions)
    await desk.timeline.undo()
    assert difference(before, await everything(store, campaign.id)).is_empty, "undo gives back what was before"
    assert [each.name for each in (await desk.wrap_up(EVENING)).proposals] == [each.name for each in seen.proposals]
    await desk.decide(EVENING, decisions)
    await stands_as_replayed(store, campaign.id)
    quotes = [" ".join(each.text.split()) for each in spoken.values()]
    for sentence in (await desk.wrap_up(EVENING)).recap:
        quoted = sentence.partition("“")[2].rstrip("”.…")
        assert sentence == "The party swore an oath." or any(quoted in quote for quote in quotes), sentence
    for npc in (SMITH, INNKEEPER):
        known = await texts_of(store, campaign.id, npc)
        assert npc in first.line.utterance.witnesses or "The party swore an oath." not in known
        for name, line in by_name.items():
            assert name not in known or (line.kind == "story" and npc in line.witnesses), (line, name, npc)
    cited = await desk.inspection.said(campaign.id, first.line.utterance.id)
    assert cited is not None
    await desk.timeline.retract(cited)
    assert "The party swore an oath." not in shown(await desk.wrap_up(EVENING), desk)
    for viewer in (SMITH, INNKEEPER):
        assert "The party swore an oath." not in await texts_of(store, campaign.id, viewer)


def test_wrap_up_shows_and_teaches_only_what_it_may(postgres: TestServer, tmp_path: Path) -> None:
    evenings: list[tuple[list[Line], bool]] = [
        ([Line(kind if n % 3 else "story", frozenset({SMITH})) for n in range(len(NAMES))], number % 2 == 0)
        for number, kind in enumerate(FORBIDDEN)
    ]

    @given(lines=LINES, is_read=st.booleans())
    @examples(max_examples=n_examples(100), derandomize=True, database=None)
    def collect(lines: list[Line], is_read: bool) -> None:
        evenings.append((lines, is_read))

    collect()

    async def run() -> None:
        name = await postgres.create()
        try:
            async with opened(postgres.server.dsn(name), tmp_path) as store:
                for n, (lines, is_read) in enumerate(evenings):
                    await evening_holds(store, a_world(f"world{n}"), lines, is_read=is_read)
        finally:
            await postgres.drop(name)

    asyncio.run(run())


@pytest.fixture
async def store(dsn: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(dsn, tmp_path) as store:
        yield store


async def an_evening(store: Store, *texts: str) -> Campaign:
    campaign = a_world("harrowmoor")
    await store.campaigns.load(campaign)
    await store.log.append([said(campaign, n, text) for n, text in enumerate(texts, start=1)])
    return campaign


async def n_mentions(store: Store, campaign: Campaign) -> dict[str, int]:
    facts = await (await desk_for(store, campaign.id)).inspection.current(campaign.id, DM, limit=1_000)
    return {str(fact.claim.content): fact.mentions for fact in facts if fact.provenance.utterance_id is not None}


async def test_second_of_two_game_masters_gets_an_error(store: Store, dsn: str, tmp_path: Path) -> None:
    campaign = await an_evening(store, BELL, MILL, DEBT)
    async with opened(dsn, tmp_path) as other:
        one, two = await desk_for(store, campaign.id), await desk_for(other, campaign.id)
        made = await asyncio.gather(
            one.decide(EVENING, [LineDecision("confirm", "1,2")]),
            two.decide(EVENING, [LineDecision("confirm", "2,3")]),
            return_exceptions=True,
        )
    [error] = [each for each in made if isinstance(each, BaseException)]
    assert isinstance(error, InvalidInput)
    assert str(error).startswith("'2' is not proposed, or decided already; open: ")
    mentions = await n_mentions(store, campaign)
    assert len(mentions) == 2
    assert set(mentions.values()) == {1}


async def test_more_decisions_at_once_than_connections_are_all_made(store: Store) -> None:
    campaign = await an_evening(store, *(form.format(name) for form, name in zip(STORY, NAMES, strict=True)))
    desk = await desk_for(store, campaign.id)
    names = [each.name for each in (await desk.wrap_up(EVENING)).proposals]
    assert len(names) > 4, "more than the connections of one process"
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(desk.decide(EVENING, [LineDecision("confirm", name)]) for name in names))
    assert set((await n_mentions(store, campaign)).values()) == {1}
    assert not (await desk.wrap_up(EVENING)).proposals


async def test_decisions_stay_when_their_session_is_read_again(store: Store) -> None:
    campaign = await an_evening(
        store,
        "I am a ferryman, and my sister Ilvary fears the dark.",
        "Mirelle is a spy. Bran is a baker.",
        "I promise Bran that we will bring forty crowns to the old mill by winter.",
        "A blacksmith called Gosmer forged seven swords out of a fallen star.",
        "I met Arvelin, who hid the silver bell under the third bridge.",
    )
    await chronicle_worker(store).read_new(campaign.id)
    desk = await desk_for(store, campaign.id)
    findings = {
        str(each.claim.content or each.claim.predicate): each for each in (await desk.wrap_up(EVENING)).proposals
    }
    hidden = findings["baker"].finding
    assert hidden is not None
    await desk.facts.hide(hidden.id)
    await desk.facts.confirm([hidden.id])
    decisions = [
        LineDecision("reject", findings["SIBLING_OF"].name),
        LineDecision("confirm", findings["spy"].name),
        LineDecision("edit", findings["KNOWS"].name, "Tamsin never met the ferryman."),
        LineDecision("edit", "3", "Tamsin owes Bran forty crowns."),
        LineDecision("confirm", "4"),
    ]
    made = await desk.decide(EVENING, decisions)
    before = [await texts_of(store, campaign.id, npc) for npc in (SMITH, INNKEEPER)]
    world = await everything(store, campaign.id)
    for _ in range(2):
        await PostgresChronicleLog(store.database, store.world).read_again(campaign.id, EVENING)
        await chronicle_worker(store).read_new(campaign.id)
        assert [await texts_of(store, campaign.id, npc) for npc in (SMITH, INNKEEPER)] == before
        assert not (await (await desk_for(store, campaign.id)).wrap_up(EVENING)).proposals
        assert difference(world, await everything(store, campaign.id)).is_empty
    await stands_as_replayed(store, campaign.id)
    await store.world.undo(campaign.id, made.events[::-1], Cause("dm", 2_000_000))
    left = (await (await desk_for(store, campaign.id)).wrap_up(EVENING)).proposals
    assert {each.claim for each in left} == {each.claim for name, each in findings.items() if name != "baker"}
    assert "blacksmith" in before[0]
    assert "baker" not in before[0]


async def test_decision_about_a_merged_person_stays_when_read_again(store: Store) -> None:
    campaign = await an_evening(store, "A blacksmith called Gosmer forged seven swords.", "Gosmer is a ferryman.")
    await chronicle_worker(store).read_new(campaign.id)
    await (await desk_for(store, campaign.id)).decide(EVENING, [LineDecision("confirm", "all")])
    await (await desk_for(store, campaign.id)).entities.merge("Bran", "Gosmer")
    before = await texts_of(store, campaign.id, SMITH)
    await PostgresChronicleLog(store.database, store.world).read_again(campaign.id, EVENING)
    await chronicle_worker(store).read_new(campaign.id)
    assert "Bran, occupation: ferryman" in before
    assert await texts_of(store, campaign.id, SMITH) == before
    await stands_as_replayed(store, campaign.id)


async def test_recap_has_the_words_of_the_game_master_and_each_line_once(store: Store) -> None:
    campaign = await an_evening(
        store,
        "I promise Bran that we will bring forty crowns to the old mill by winter.",
        "I met Arvelin, a ferryman, who hid the silver bell under the third bridge.",
        "Mirelle is a spy. Bran is a baker.",
    )
    await chronicle_worker(store).read_new(campaign.id)
    desk = await desk_for(store, campaign.id)
    findings = {str(each.claim.content): each.finding for each in (await desk.wrap_up(EVENING)).proposals}
    spy = findings["spy"]
    assert spy is not None
    await desk.facts.hide(spy.id)
    decisions = [LineDecision("edit", "1", "Tamsin made Bran a promise."), LineDecision("confirm", "2,2b")]
    decisions += [LineDecision("confirm", "3"), LineDecision("confirm", "3b")]
    await desk.decide(EVENING, decisions)
    recap = (await desk.wrap_up(EVENING)).recap
    assert "Tamsin made Bran a promise." in recap
    assert "forty crowns" not in " ".join(recap), "the words of the line were replaced"
    assert " ".join(recap).count("silver bell") == 1
    assert "spy" not in " ".join(recap), "the game master hides it"


async def test_failed_decision_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = await an_evening(store, BELL, MILL, DEBT)
    desk, before = await desk_for(store, campaign.id), await everything(store, campaign.id)
    for decisions, problem in (
        ([LineDecision("confirm", "1,2"), LineDecision("to", "3", "Nobody")], NotFound),
        ([LineDecision("confirm", "1,2"), LineDecision("to", "3", "\udcff")], NotFound),
        ([LineDecision("confirm", "1"), LineDecision("edit", "3", "\0")], InvalidInput),
        ([LineDecision("confirm", "1"), LineDecision("edit", "3", "\udcff")], InvalidInput),
        ([LineDecision("confirm", "1"), LineDecision("burn", "2")], InvalidInput),
    ):
        with pytest.raises(problem):
            await desk.decide(EVENING, decisions)
        assert difference(before, await everything(store, campaign.id)).is_empty

    async def cut(*_: object, **__: object) -> None:
        """End all connections of the database, as a crash of the server does."""
        async with store.database.use(None) as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename = current_user"
            )
        raise AssertionError("the connection of the decision is closed")

    monkeypatch.setattr("glyphoxa.adapters.postgres.world.transaction.WorldTransaction.current", cut)
    with pytest.raises((Unavailable, AssertionError)):
        await desk.decide(EVENING, [LineDecision("confirm", "1,2"), LineDecision("reject", "3")])
    monkeypatch.undo()
    assert difference(before, await everything(store, campaign.id)).is_empty
    await (await desk_for(store, campaign.id)).decide(EVENING, [LineDecision("confirm", "1-3")])
    assert len(await n_mentions(store, campaign)) == 3


def on_a_terminal(
    settings: Path, *steps: tuple[str, str | Callable[[], object]], verb: Sequence[str] = ("wrap-up",), status: int = 0
) -> str:
    """Run a command on a terminal: for each step, wait for a text, and type keys or do something else.

    Returns what was shown.
    """
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "glyphoxa.cli.main", *verb, "--config", str(settings)]

    def control() -> None:
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with subprocess.Popen(command, start_new_session=True, preexec_fn=control, **streams) as process:  # noqa: PLW1509 - only this makes the terminal control it
        os.close(theirs)
        hang = threading.Timer(DEADLINE_S, process.kill)
        hang.start()
        shown, at = "", 0
        for text, keys in steps:
            while (found := shown.find(text, at)) < 0:
                shown += os.read(ours, 4_096).decode()
            at = found + len(text)
            if isinstance(keys, str):
                os.write(ours, keys.encode())
            else:
                keys()
        with suppress(OSError):  # the terminal is closed
            while more := os.read(ours, 4_096):
                shown += more.decode()
        hang.cancel()
        assert process.wait() == status, shown
    os.close(ours)
    return shown


async def test_single_keys_decide_on_a_terminal(store: Store, dsn: str, tmp_path: Path) -> None:
    campaign, asked = await an_evening(store, BELL, MILL, DEBT), "[q]uit"
    settings = a_settings_file(tmp_path, dsn)
    shown = await asyncio.to_thread(
        on_a_terminal,
        settings,
        ("3 left", ""),
        (asked, "\x1b[a"),
        (asked, "A"),
        (asked, "a"),
        ("2 left", ""),
        (asked, "u"),
        ("3 left", ""),
        (asked, "u"),
        (asked, "e"),
        ("Words: ", "Nobody knows where the bell is.\n"),
        ("2 left", ""),
        (asked, "t"),
        ("Name: ", "Nobody At All\n"),
        ("no entity", ""),
        ("2 left", ""),
        (asked, "t"),
        ("Name: ", "Grimjaw\n"),
        ("1 left", ""),
        (asked, "d"),
        ("nothing is left to decide", ""),
    )
    assert "to read aloud: Nobody knows where the bell is." in shown
    facts = await (await desk_for(store, campaign.id)).inspection.current(campaign.id, DM, limit=1_000)
    kept = {str(fact.claim.content): fact.claim.subject for fact in facts if fact.provenance.utterance_id is not None}
    assert len(kept) == 2
    assert "Nobody knows where the bell is." in kept
    assert "e-grimjaw" in kept.values()


@pytest.mark.parametrize(
    ("verb", "steps"),
    [
        (("wrap-up",), (("[q]uit", "e"), ("Words: ", "Nobody\x03"))),
        pytest.param(("entity", "remove", "Bran"), (("[y/N] ", "\x03"),), marks=proof_only),
    ],
)
async def test_interrupt_ends_a_question_at_once(
    store: Store, dsn: str, tmp_path: Path, verb: Sequence[str], steps: Sequence[tuple[str, str]]
) -> None:
    campaign = await an_evening(store, BELL)
    before = await everything(store, campaign.id)
    await asyncio.to_thread(on_a_terminal, a_settings_file(tmp_path, dsn), *steps, verb=verb, status=130)
    assert difference(before, await everything(store, campaign.id)).is_empty


async def test_line_that_changed_after_it_was_shown_stays_open(store: Store, dsn: str, tmp_path: Path) -> None:
    campaign, loop = await an_evening(store, BELL), asyncio.get_running_loop()

    async def correct() -> None:
        desk = await desk_for(store, campaign.id)
        [first] = (await desk.wrap_up(EVENING)).proposals
        cited = await desk.inspection.said(campaign.id, first.line.utterance.id)
        assert cited is not None
        await desk.timeline.correct(cited, "Mirelle poisoned the old king with hemlock in the tower.")

    shown = await asyncio.to_thread(
        on_a_terminal,
        a_settings_file(tmp_path, dsn),
        ("[q]uit", lambda: asyncio.run_coroutine_threadsafe(correct(), loop).result()),
        ("", "a"),
        ("has changed meanwhile", ""),
        ("[q]uit", "q"),
    )
    assert "poisoned" in shown.partition("has changed meanwhile")[2]
    assert not await n_mentions(store, campaign)


async def test_quit_and_next_leave_proposals_open(store: Store, dsn: str, tmp_path: Path) -> None:
    await an_evening(store, BELL, MILL, DEBT)
    settings, asked = a_settings_file(tmp_path, dsn), "[q]uit"
    shown = await asyncio.to_thread(on_a_terminal, settings, (asked, "n"), ("2 left", ""), (asked, "\x04"))
    assert "bell" in shown.partition("2 left")[2]
    assert "harbour" in shown.partition("2 left")[2]


async def test_long_evening_is_wrapped_up(store: Store) -> None:
    words = ("bell", "mill", "crown", "ferry", "bridge", "ledger", "tower", "harbour", "abbey", "well")
    lines = [
        f"Mirelle hid the {words[n % 10]} of {words[n // 10 % 10]} {n} behind the {words[n // 100 % 10]} in autumn."
        for n in range(2_000)
    ]
    campaign = await an_evening(store, *lines)
    desk = await desk_for(store, campaign.id)
    seen = await desk.wrap_up(EVENING)
    assert 0 < len(seen.proposals) <= MOST_LINES
