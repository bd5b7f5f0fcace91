"""A typed line that a page sends again, at a table with a real database: said once, also after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.domain.ids import LineId, SessionId, id_of_line, line_of
from tests.support.live_table import an_evening, settings_for, write_campaign

LINE = LineId("0123456789abcdefghijk")


async def test_a_line_that_is_sent_again_is_said_once_also_when_the_session_was_opened_again(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(write_campaign(tmp_path), dsn, tmp_path)
    async with an_evening(settings, monkeypatch) as evening:
        tamsin, bran = (player.id for player in evening.table.campaign.players)
        assert evening.table.say(tamsin, "Grimjaw, is it done?", line=LINE)
        assert evening.table.say(tamsin, "Grimjaw, is it done?", line=LINE)  # before it can be on disk
        kept = await evening.kept("Grimjaw, is it done?")
        assert line_of(kept.id) == LINE
        await evening.until(lambda: "Aye." in evening.kept_texts)
        assert not evening.table.say(tamsin, "Grimjaw, is it done?", line=LINE)
    async with an_evening(settings, monkeypatch) as evening:
        assert not evening.table.say(tamsin, "Grimjaw, is it done?", line=LINE)
        assert evening.table.say(bran, "Mine too, Grimjaw?", line=LINE)
        await evening.until(lambda: "Aye." in evening.kept_texts)
        assert evening.kept_texts == ["Mine too, Grimjaw?", "Aye."]
        assert await evening.table.kept() == 4


def test_only_what_was_typed_under_an_id_is_a_line() -> None:
    session = SessionId("an~odd~session")
    assert line_of(id_of_line(session, "tamsin", LINE)) == LINE  # type: ignore[arg-type]
    assert line_of(f"{session}-19a3b-000001") is None  # type: ignore[arg-type]
