"""No message to a player contains a hidden name of the campaign that they did not say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.events import TableEvent, TurnFinished, UtteranceKept, UtteranceRevised
from glyphoxa.domain.heard import Correction, Draft, EagerTurn, PartialHeard, TurnEnded, Utterance
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.turn_record import Outcome, Unaddressed
from glyphoxa.names.table_names import TableNames
from glyphoxa.npc.table_interface import Table
from glyphoxa.web.events import Hub, PageOutbox, PageReader, redacted
from tests.support.builders import SMITH, TAMSIN, a_campaign, a_draft, a_turn_record, an_utterance
from tests.support.web_table import TwinTable

HIDDEN = ("Zharothrix", "Vashkari", "Quibbleworth", "Ironhold")
SAID = [
    "we must find sharothrix",
    "Grim jaw, who is zharo thricks?",
    "I have heard of vash karri and of quibble worth.",
    "so we walked to iron hold",
    "Sharothrix!",
    "sharothrix's tower stands beyond iron hold",
]


def a_town_of_secrets() -> Campaign:
    campaign = a_campaign()
    secret = [
        Entity(EntityId("zharothrix"), "npc", "Zharothrix", hidden=True),
        Entity(EntityId("vashkari"), "npc", "Vashkari", known_by=(SMITH,)),
        Entity(EntityId("quibbleworth"), "item", "Quibbleworth", hidden=True),
        Entity(EntityId("ironhold"), "location", "the keep of the east", ("Ironhold",), hidden=True),
    ]
    return replace(campaign, entities=(*campaign.entities, *secret))


@pytest.fixture(scope="module")
def names() -> TableNames:
    return TableNames(a_town_of_secrets(), now_ms=lambda: 0)


def corrected(names: TableNames, said: str) -> Draft:
    right = names.correct(said)
    draft = a_draft(TAMSIN, right.text)
    return replace(draft, heard=replace(draft.heard, raw_text=said, corrections=right.corrections))


def kept_of(draft: Draft) -> Utterance:
    return an_utterance(draft.text, raw_text=draft.heard.raw_text, corrections=draft.heard.corrections)


def events_of(draft: Draft) -> Iterator[TableEvent]:
    """Every message that a turn of a player makes."""
    utterance = kept_of(draft)
    unmarked = replace(utterance, corrections=())
    yield PartialHeard(TAMSIN, draft.heard, 1)
    yield EagerTurn(draft)
    yield TurnEnded(draft, 2)
    yield UtteranceKept(utterance)
    yield UtteranceRevised(utterance, unmarked)
    yield UtteranceRevised(unmarked, utterance)
    why = f"{draft.heard.corrections[0].after} was called but is not here"
    turn = a_turn_record(Outcome.NOT_ADDRESSED, address_reason=why, unaddressed=Unaddressed.ABSENT)
    yield TurnFinished(replace(turn, text=draft.text, raw_text=draft.heard.raw_text))


@pytest.mark.parametrize("said", SAID)
async def test_no_message_to_a_player_holds_a_hidden_name_that_they_did_not_say(names: TableNames, said: str) -> None:
    draft = corrected(names, said)
    assert any(name in draft.text for name in HIDDEN), "the log and memory have the name"
    twin = TwinTable(campaign=a_town_of_secrets())
    twin.may_show = names.may_show  # type: ignore[method-assign]
    table: Table = twin
    hub, outbox = Hub(table), PageOutbox()
    with hub.joined(outbox, PageReader(TAMSIN)):
        for event in events_of(draft):
            hub.on(event)
    told = []
    while (message := await outbox.next()) is not None:
        told.append(message)
    assert len(told) == 7 and said.split()[0] in told[0]
    for message in (*told, json.dumps(hub.history(TAMSIN))):
        assert not any(name.lower() in message.lower() for name in HIDDEN), message


def test_public_names_are_corrected_for_players(names: TableNames) -> None:
    draft = corrected(names, "grim jaw, who is sharothrix?")
    shown = redacted(TurnEnded(draft, 1), names.may_show)
    assert isinstance(shown, TurnEnded)
    assert (draft.text, shown.draft.text) == ("Grimjaw, who is Zharothrix?", "Grimjaw, who is sharothrix?")
    assert [correction.after for correction in shown.draft.heard.corrections] == ["Grimjaw"]


def test_player_who_says_a_hidden_name_sees_it(names: TableNames) -> None:
    draft = corrected(names, "Who is Zharothrix?")
    assert redacted(TurnEnded(draft, 1), names.may_show) == TurnEnded(draft, 1)


def test_npc_caption_is_shown_without_a_hidden_correction(
    names: TableNames,
) -> None:
    edit = Correction(9, 19, "sharothrix", "Zharothrix", 1.0, "llm", "")
    said = an_utterance("I served Zharothrix.", npc=SMITH, corrections=(edit,))
    shown = redacted(UtteranceRevised(said, said), names.may_show)
    assert isinstance(shown, UtteranceRevised) and shown.utterance.text == "I served sharothrix."


def test_a_name_of_two_of_which_one_is_known_may_be_shown() -> None:
    campaign = a_town_of_secrets()
    other = Entity(EntityId("ship"), "item", "Zharothrix")
    names = TableNames(replace(campaign, entities=(*campaign.entities, other)), now_ms=lambda: 0)
    assert names.may_show("Zharothrix") and not names.may_show("Vashkari's blade")


def test_resumed_history_is_redacted_too(names: TableNames) -> None:
    draft = corrected(names, "we must find sharothrix")
    twin = TwinTable(campaign=a_town_of_secrets())
    twin.may_show = names.may_show  # type: ignore[method-assign]
    twin.earlier = (kept_of(draft),)
    assert "we must find sharothrix" in json.dumps(Hub(twin).history(TAMSIN))
