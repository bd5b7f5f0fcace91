"""The first campaign file can be played as it is, whatever its author calls things."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.campaign_template import Beginning, template


@pytest.mark.parametrize("language", ["en", "de", "de-AT", "fr"])
@pytest.mark.parametrize("name", ["Marta", 'O\'Hara: the "first" # one', "yes", "Ünal, née [X]"])
def test_a_first_campaign_holds_one_npc_with_a_secret_in_one_scene(language: str, name: str) -> None:
    text = template(Beginning("The Lantern Road", language, name, "Tamsin"))
    found = read_campaign(Path("first.yaml"), text)
    campaign = found.campaign
    assert (campaign.name, campaign.language) == ("The Lantern Road", language)
    assert [npc.name for npc in campaign.npcs] == [name]
    assert campaign.npcs[0].persona.split(",")[0] in (f"You are {name}".split(",")[0], f"Du bist {name}".split(",")[0])
    assert campaign.scenes[0].npcs == (campaign.npcs[0].id,)
    assert campaign.secrets[0].known_by == {campaign.npcs[0].id}
    assert all("examples" in warning for warning in found.warnings), "nothing of it is to be looked at again"
