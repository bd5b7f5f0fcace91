"""The most recent utterances, in this process's memory."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.ids import CampaignId
from glyphoxa.transcript.journal import RecentTalk
from tests.support.builders import an_utterance


def test_what_is_heard_again_after_a_better_text_came_is_there_once_with_that_text() -> None:
    talk, said = RecentTalk(), an_utterance("Mirror, wait.")
    better = replace(said, text="Mira, wait.")
    talk.heard(said)
    talk.revised(better)
    talk.heard(said)
    assert talk.of(said.session_id) == [better]


def test_an_utterance_of_another_campaign_with_the_same_id_is_another_one() -> None:
    talk, said = RecentTalk(), an_utterance("Wait.")
    other = replace(said, campaign_id=CampaignId("another"))
    talk.heard(said)
    talk.heard(other)
    assert talk.of(said.session_id) == [said, other]
