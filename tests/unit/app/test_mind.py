"""The first hot context of a table's NPCs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.app.table import state_of
from glyphoxa.config.sections import TurnsSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import SessionId
from glyphoxa.transcript.journal import SessionMark
from glyphoxa.transcript.sessions import LastSessions
from tests.support.builders import INNKEEPER, SMITH, a_campaign


@pytest.mark.parametrize(
    ("language", "filler_after_ms", "fillers"),
    [("en", 1_500, "Hm. Well. Ah."), ("de-AT", 800, "Hm. Nun. Ach."), ("en", 0, "")],
)
def test_an_npc_without_fillers_has_those_of_its_language_where_they_are_wanted(
    tmp_path: Path, language: str, filler_after_ms: int, fillers: str
) -> None:
    settings = Settings(data_dir=tmp_path, turns=TurnsSettings(filler_after_ms=filler_after_ms))
    campaign = replace(a_campaign(), language=language)
    session = SessionId("s1")
    mark = SessionMark(LastSessions(tmp_path), campaign.id, session, now_ms=lambda: 1)
    talk = state_of(settings, campaign, session, mark).conversations
    assert talk[SMITH].npc.fillers == ("Hm.",)  # its author's
    assert " ".join(talk[INNKEEPER].npc.fillers) == fillers
