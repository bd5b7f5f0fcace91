"""A request to forget acts on the NPCs' conversations before the next question, without a database."""

from __future__ import annotations

from glyphoxa.domain.events import UtteranceRetracted
from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.transcript_revision import Revisions
from tests.support.builders import BRAN, SESSION, SMITH, TAMSIN
from tests.support.room_table import TableOfTwins, an_open_table
from tests.support.virtual_time import in_virtual_time

SECRET, ANSWER, REQUEST = "Grimjaw, I stole the ring.", "You stole the ring!", "Grimjaw, forget what I said."
SPOKEN_MS = 1_000
"""The duration of a line at a table of twins."""


class ForgetfulTable(TableOfTwins):
    """A table whose revisions take what is kept, as `TableSession` connects them."""

    def __init__(self) -> None:
        super().__init__()
        quiet = self.room.wait_until_quiet
        self.revisions = Revisions(self.journal.recent, self.npcs, self.state, wait_until_quiet=quiet)
        self._n_seen = 0

    async def settle(self) -> None:
        await super().settle()
        seen, self._n_seen = self._n_seen, len(self.events)
        for event in self.events[seen : self._n_seen]:
            self.revisions.on(event)
        await super().settle()

    async def asked(self, player: PlayerId, question: str, reply: str = "Aye.") -> str:
        """Have the smith answer a question. Returns the prompt."""
        self.mouth(SMITH).reply = reply
        await self.says(player, question)
        self.mouth(SMITH).end()
        await self.settle()
        return str(self.mouth(SMITH).asked[-1])

    def retracted(self) -> list[str]:
        return [event.utterance.text for event in self.events if isinstance(event, UtteranceRetracted)]


@in_virtual_time
async def test_request_leaves_the_next_prompt_without_any_delay() -> None:
    async with an_open_table(ForgetfulTable()) as table:
        await table.asked(TAMSIN, "Grimjaw, how is the forge?")
        await table.asked(TAMSIN, SECRET, ANSWER)
        assert "ring" in await table.asked(BRAN, "Grimjaw, is it late?")
        before_ms = table.now_ms
        await table.asked(TAMSIN, REQUEST)
        assert table.now_ms - before_ms == SPOKEN_MS
        assert table.retracted() == [SECRET, ANSWER, REQUEST, "Aye."]
        prompt = await table.asked(BRAN, "Grimjaw, and now?")
        assert "ring" not in prompt
        assert "Forget" not in prompt
        assert "how is the forge" in prompt
        assert "is it late" in prompt
        recent = [each.text for each in table.journal.recent.of(SESSION)]
        assert not {SECRET, ANSWER, REQUEST} & set(recent)


@in_virtual_time
async def test_request_of_an_npc_or_about_another_player_retracts_nothing() -> None:
    async with an_open_table(ForgetfulTable()) as table:
        await table.asked(TAMSIN, SECRET, REQUEST)
        assert table.retracted() == []
        await table.asked(BRAN, REQUEST)
        assert table.retracted() == [REQUEST, "Aye."]
