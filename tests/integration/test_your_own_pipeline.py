"""The pipeline that the documentation shows, word for word, found and run as an NPC's engine."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.local.hibari_voice import load_engine
from glyphoxa.app.engines import MouthSpec, find_mouth
from glyphoxa.app.models import LocalModels
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.ids import CampaignId, TurnId
from glyphoxa.npc.mouth import Finished, MouthEvent
from glyphoxa_pipelines.host import PipelineHost
from tests.support.patience import DEADLINE_S
from tests.support.pipecat_fakes import GRIMJAW, Memory, model_server, prompt

_DOCUMENT = Path(__file__).parents[2] / "CONTRIBUTING.md"


async def test_the_pipeline_in_the_documentation_gives_an_npc_its_voice(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", _DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "loud.py").write_text(shown, encoding="utf-8")
    finished: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()
    sound = bytearray()

    def listen(event: MouthEvent) -> None:
        if isinstance(event, Finished):
            finished.set_result(event)

    async with model_server() as server:
        provider = {"name": "openai-compatible", "base_url": server.base_url, "model": "m"}
        host = PipelineHost()
        (engines,) = re.findall(r"```yaml\n(engines:.*?)```", _DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL)
        (tmp_path / "glyphoxa.yaml").write_text(engines, encoding="utf-8")
        files = read_settings(tmp_path / "glyphoxa.yaml").engines
        mouth = await find_mouth("loud", files=files)(
            MouthSpec(
                campaign=CampaignId("vale"),
                npc=GRIMJAW,
                slot=0,
                language="en",
                settings=Settings.model_validate({"providers": {"llm": provider}}),
                local=LocalModels(hibari=load_engine()),
                host=host,
                context=Memory(),
                tools=None,
                others=(),
                listener=listen,
                sink=lambda _, pcm: sound.extend(pcm),
                now_ms=now_ms,
            )
        )
        await mouth.start()
        mouth.begin(TurnId("t1"), prompt("How is my blade?"))
        mouth.release(TurnId("t1"))
        heard = await asyncio.wait_for(finished, DEADLINE_S)
        await mouth.close()
        await host.close()
    assert heard.heard == "WELL MET! THE BLADE IS READY!"
    assert max(sound) > 0
