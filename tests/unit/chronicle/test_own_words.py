"""An NPC keeps its own word: prices, promises, refusals and claims about itself, but no inventions about others."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.domain.events import UtteranceKept
from glyphoxa.domain.heard import Utterance
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry
from glyphoxa.npc.session_state_keeper import SessionStateKeeper
from glyphoxa.prompt.conversation import Conversation, RollingSummary
from glyphoxa.transcript.sessions import DM_VIEW, View
from tests.support.builders import INNKEEPER, SMITH, a_campaign, an_utterance

LINES: Final = tomllib.loads(Path(__file__).with_name("own_words.toml").read_text("utf-8"))
TOWN: Final = a_campaign()


def names(language: str) -> Gazetteer:
    return Gazetteer.build([Entry(e.name, e.id, e.type, e.aliases) for e in TOWN.entities], language=language)


def own_words(text: str, language: str = "en") -> str:
    said = [an_utterance(text, npc=SMITH, witnesses=frozenset({SMITH}))]
    return " ".join(one.text for one in LineSelection(language, lambda: names(language)).own_words(said, SMITH))


@pytest.mark.parametrize("row", LINES["commits"], ids=lambda row: row["text"])
def test_commitment_is_kept_as_the_npcs_own_claim(row: dict[str, Any]) -> None:
    kept = row.get("kept", row["text"])
    form = 'Du hast gesagt: "{}"' if row.get("language") == "de" else 'You said: "{}"'
    assert own_words(row["text"], row.get("language", "en")) == form.format(kept)


@pytest.mark.parametrize("row", LINES["others"], ids=lambda row: row["text"])
def test_statement_about_others_is_not_kept(row: dict[str, Any]) -> None:
    assert own_words(row["text"], row.get("language", "en")) == ""


def test_players_words_are_nobodys_own_words() -> None:
    line = an_utterance("That lantern costs eight crowns.")
    assert LineSelection("en").own_words([line], SMITH) == []
    assert LineSelection("en").own_words([replace(line, npc_id=INNKEEPER)], SMITH) == []


class Evening:
    """A smith and an innkeeper that hear everything, and the summaries of their session."""

    def __init__(self) -> None:
        self.talks = {npc: Conversation(TOWN.npc(npc), history_tokens=400) for npc in (SMITH, INNKEEPER)}
        self.views = {view: RollingSummary(400) for view in (DM_VIEW, View(SMITH), View(INNKEEPER))}
        selection = LineSelection("en", lambda: names("en"), tokens=200)
        self.keeper = SessionStateKeeper(
            self.views, selection, tell=lambda npc, *summary: self.talks[npc].cover(*summary)
        )
        self._n = 0

    async def say(self, text: str, *, by_smith: bool = False) -> None:
        self._n += 1
        speaker = "Grimjaw" if by_smith else "Tamsin"
        said: Utterance = an_utterance(text, id=f"u{self._n}", speaker=speaker, npc=SMITH if by_smith else None)
        said = replace(said, typed=True, at_ms=self._n * 10_000, witnesses=frozenset(self.talks))
        for npc, talk in self.talks.items():
            (talk.spoke if npc == said.npc_id else talk.hear)(said)
        self.keeper.on(UtteranceKept(said))
        await self.keeper.finish()

    def prompt(self, npc: Any) -> str:
        return "\n".join(message.content for message in self.talks[npc].prompt("And now?", "Tamsin").messages)


COMMITMENTS: Final = (
    "That lantern costs eight crowns, not one less.",
    "I will not sell you the black blade.",
    "That winter I was ill in bed and touched no metal.",
)
INVENTION: Final = "The paperwork was signed by Juno."


async def test_npc_does_not_forget_its_word_after_forty_lines() -> None:
    evening = Evening()
    for text in (*COMMITMENTS, INVENTION):
        await evening.say("Well?")
        await evening.say(text, by_smith=True)
    for n in range(20):
        await evening.say(f"We walked to mill number {n} and back, and the road was long.")
        await evening.say("Aye, so it is.", by_smith=True)
    for text in COMMITMENTS:
        assert f'You said: "{text}"' in evening.prompt(SMITH)
        assert text not in evening.prompt(INNKEEPER)
        assert text not in str(evening.views[DM_VIEW].summary)
    assert INVENTION not in evening.prompt(SMITH)


async def test_players_lines_keep_most_of_the_room_of_a_summary() -> None:
    evening = Evening()
    promise = "I promise to bring you the silver ring of the king before the feast."
    await evening.say(promise)
    for n in range(30):
        await evening.say("And?")
        await evening.say(f"I will not sell you blade number {n}, whatever you pay me for it.", by_smith=True)
    assert promise in evening.prompt(SMITH)
    own = [one for one in evening.views[View(SMITH)].summary if one.is_own]
    assert own
