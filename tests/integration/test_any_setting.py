"""NPCs without examples of their own, in four settings, with the real local model: what they say fits each of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from benchmarks.asking import answered, open_tone_mouth
from glyphoxa.actors.deadline import ClosingStack
from glyphoxa.app.models import LocalModels, load_local_models
from glyphoxa.app.table import TableBuilder
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import SessionId
from tests.support.proof import proof_only

pytestmark = [pytest.mark.models, proof_only]

SMALLEST = "qwen-0.5b"
BIBLES = {
    "1350": "It is the spring of 1350, and the plague has passed through the county.",
    "1926": "In the winter of 1926 the liner Halcyon sails for New York.",
    "2139": "The year is 2139. Station Kestrel mines the sea floor, four thousand metres down.",
    "today": "A dog has vanished from a small town with one supermarket and one bus.",
}
PLACE, SECRET = "Gallery Nine", "You sealed Gallery Nine while two porters were still inside."
REMARK = "We will walk through Gallery Nine tomorrow at six."
GIFT = "I will give you a box of fresh lemons."
OF_EXAMPLES = ("bridge", "roof", "lock", "bread", "journey", "winters", "uncle", "somebody")


def written(folder: Path, bible: str) -> Path:
    document = {
        "campaign": {"name": "The House", "bible": bible},
        "entities": [
            {"name": "Rusk", "type": "npc", "attributes": {"occupation": "porter"}},
            {"name": "Pilar", "type": "npc"},
            {"name": PLACE, "type": "location"},
        ],
        "relationships": [
            {"source": "Rusk", "type": "brother of", "target": "Pilar"},
            {"source": "Rusk", "type": "LOCATED_AT", "target": PLACE},
        ],
        "npcs": [
            {"entity": "Rusk", "persona": "You are Rusk, a porter. You grumble, and you mean well.", "voice": "heart"}
        ],
        "players": [{"name": "Juno"}],
        "scenes": [{"id": "hall", "location": PLACE, "npcs": ["Rusk"]}],
        "secrets": [{"text": SECRET, "known_by": ["Rusk"]}],
    }
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def settings_in(folder: Path) -> Settings:
    """The model's most probable words, so that each run gets the same answers."""
    return Settings.model_validate(
        {
            "data_dir": folder,
            "providers": {"llm": {"name": SMALLEST, "temperature": 0}, "embeddings": {"name": "none"}},
            "memory": {"postgres_dsn": "none"},
            "turns": {"reply_deadline_ms": 60_000},
        }
    )


async def replies(settings: Settings, local: LocalModels, path: Path, when: str, lines: list[str]) -> list[str]:
    campaign = read_campaign(path).campaign
    session = SessionId(when)
    async with ClosingStack() as stack:
        builder = TableBuilder(
            settings=settings,
            campaign=campaign,
            session=session,
            local=local,
            store=None,
            mouths={"cascaded": open_tone_mouth},
            stack=stack,
        )
        table = await builder.open(tell=lambda _: None)
        (juno,), (rusk,) = campaign.players, campaign.npcs
        table.state.add_player(juno)
        records = [await answered(table, juno, line, npc=rusk) for line in lines]
        await table.close()
    return [record.reply if record else "" for record in records]


async def test_npcs_without_examples_fit_any_setting(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    asked = ["Can you use a computer?", GIFT, REMARK, "Rusk, who is your sister?"]
    async with ClosingStack() as stack:
        local = await load_local_models(settings, stack, slots=1, tell=lambda _: None)
        for when, bible in BIBLES.items():
            path = written(tmp_path, bible)
            computer, gift, remark, sister = said = await replies(settings, local, path, when, asked)
            assert all(said)
            assert ("do not know that word" in computer) == (when == "1350"), said
            assert "I will give" not in gift, said
            assert "sealed" not in remark and "porters" not in remark, said
            assert "Pilar" in sister, said
            assert not [word for reply in said for word in OF_EXAMPLES if word in reply.casefold()], said
