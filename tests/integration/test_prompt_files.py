"""The next process continues with the part of an NPC's prompt that the local model has read."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from glyphoxa.adapters.local.llama import LlamaServer, NotesToken, PromptFile, spoken_extras
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.judgement.small_model import notes_examples

pytestmark = pytest.mark.models

VALE, SMITH, INNKEEPER = CampaignId("vale"), NpcId("smith"), NpcId("innkeeper")
PERSONA = "You are Grimjaw, who lives in the mountain town of Ironhold and answers in one short sentence. " * 3


@pytest.fixture(scope="module")
def model() -> Path:
    return WeightStore().path("qwen2.5-coder-0.5b-instruct-q4_k_m")


async def n_read(server: LlamaServer, slot: int, question: str, persona: str = PERSONA) -> int:
    """How many tokens of a prompt with this question the model had to read."""
    async with AsyncOpenAI(base_url=server.base_url, api_key=server.api_key) as client:
        answer = await client.chat.completions.create(
            model="local",
            messages=[{"role": "system", "content": persona}, {"role": "user", "content": question}],
            max_tokens=1,
            extra_body=spoken_extras(slot),
        )
    return int((answer.model_extra or {})["timings"]["prompt_n"])


def sizes(directory: Path) -> list[int]:
    return [file.stat().st_size for file in directory.iterdir()]


def times(directory: Path) -> list[int]:
    return [file.stat().st_mtime_ns for file in directory.iterdir()]


async def test_a_persona_that_was_read_once_is_not_read_in_the_next_session(model: Path, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts"
    async with LlamaServer(model_path=model, slots=2, prompts_dir=prompts) as server:
        assert await n_read(server, 0, "Hello.") > 60
        await PromptFile(server, 0, VALE, SMITH).save()
        (file,) = prompts.iterdir()
        assert (stat.S_IMODE(prompts.stat().st_mode), stat.S_IMODE(file.stat().st_mode)) == (0o700, 0o600)
        # What the slot holds by now is newer than the file.
        await n_read(server, 0, "Where is the inn?")
        kept = PromptFile(server, 0, VALE, SMITH)
        await kept.restore()
        await kept.restore()
        assert await n_read(server, 0, "Where is the inn?") < 20

    async with LlamaServer(model_path=model, slots=2, prompts_dir=prompts) as server:
        # In another slot, as the campaign file lists its NPCs in another order.
        await PromptFile(server, 1, VALE, SMITH).restore()
        await PromptFile(server, 0, VALE, INNKEEPER).restore()
        assert await n_read(server, 1, "Where is the inn?") < 20
        file.write_bytes(b"no such thing" * 100)
        await PromptFile(server, 0, VALE, SMITH).restore()
        assert await n_read(server, 0, "Where is the inn?") > 60


async def test_without_a_directory_nothing_is_kept(model: Path) -> None:
    kept = PromptFile(LlamaServer(model_path=model, slots=2, prompts_dir=None), 0, VALE, SMITH)
    await kept.restore()
    await kept.save()


async def test_the_oldest_files_go_when_there_are_too_many(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LlamaServer(model_path=model, slots=2, prompts_dir=tmp_path) as server:
        await n_read(server, 0, "Hello.", "You are Grimjaw.")
        for npc in ("a", "b", "c"):
            await PromptFile(server, 0, VALE, NpcId(npc)).save()
        monkeypatch.setattr("glyphoxa.adapters.local.llama._KEPT_BYTES", 2 * max(sizes(tmp_path)))
        await PromptFile(server, 0, VALE, NpcId("d")).save()
        assert len(sizes(tmp_path)) == 2


@pytest.mark.parametrize(
    ("language", "known", "unknown"),
    [
        (
            "en",
            "Notes of Mira: The Salted Eel belongs to Dorn.\nKim asks: Who owns the Salted Eel?",
            "Notes of Mira: The Salted Eel belongs to Dorn.\nKim asks: How many rooms does the Salted Eel have?",
        ),
        (
            "de",
            "Notizen von Mira: Der Salzige Aal gehört Dorn.\nKim fragt: Wem gehört der Salzige Aal?",
            "Notizen von Mira: Der Salzige Aal gehört Dorn.\nKim fragt: Wie viele Zimmer hat der Salzige Aal?",
        ),
    ],
)
async def test_the_model_says_whether_notes_hold_an_answer_once_it_has_read_the_examples(
    model: Path, tmp_path: Path, language: str, known: str, unknown: str
) -> None:
    written: list[int] = []
    for _ in range(2):  # the second process finds the examples on disk
        async with LlamaServer(model_path=model, slots=1, prompts_dir=tmp_path) as server:
            token = NotesToken(server, 0, notes_examples(language))
            assert await token.log_odds(known) is None
            await token.get_ready()
            written = written or times(tmp_path)
            await token.get_ready()
            of_known, of_unknown = [await token.log_odds(notes) for notes in (known, unknown)]
            assert of_known is not None and of_unknown is not None and of_known > of_unknown
            other = NotesToken(server, 0, notes_examples("de" if language == "en" else "en"))
            assert await other.log_odds(known) is None
            for each in (token, other):
                await each.close()
    assert len(written) == 1 and times(tmp_path) == written


async def test_model_that_says_neither_cannot_tell(model: Path) -> None:
    async with LlamaServer(model_path=model, slots=1) as server:
        examples = [("system", "Answer with a number."), ("user", "2 + 2"), ("assistant", "4")]
        token = NotesToken(server, 0, examples)
        await token.get_ready()
        assert await token.log_odds("3 + 4") is None
        await token.close()
