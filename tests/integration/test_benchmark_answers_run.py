"""The benchmarks that ask NPCs run whole, with a stand-in for the language model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.servers.openai import OpenAiServer, Reply
from tests.support.benchmark_runs import figures_of
from tests.support.proof import proof_only

DATA = Path(__file__).resolve().parents[2] / "benchmarks" / "data"

pytestmark = [pytest.mark.models, proof_only]


async def answers(*options: str | Path, reply: str, temporary: Path) -> dict[str, object]:
    async with OpenAiServer([Reply(reply)]) as openai:
        llm = ("--llm", "openai-compatible", "--llm-model", "stand-in", "--llm-url", openai.base_url)
        return await asyncio.to_thread(figures_of, *map(str, options), *llm, temporary=temporary)


async def test_grounding_judges_the_answer_of_a_whole_turn(reachable_dir: Path) -> None:
    data = DATA / "grounding" / "held_out" / "en"
    found = await answers("grounding", data, "--limit", "2", reply="I do not know.", temporary=reachable_dir)
    assert (found["questions"], found["right"] or 0.0, found["false_memory"] or 0.0) == (2, 0.0, 0.0)
    assert float(str(found["tokens_mean"])) > 0


async def test_persona_judges_every_line(reachable_dir: Path) -> None:
    found = await answers(
        *("persona", "--half", "tune", "--language", "en", "--limit", "2"),
        reply="I would not know, friend.",
        temporary=reachable_dir,
    )
    assert int(str(found["lines"])) + int(str(found["not_addressed"])) == 2
    assert found["silent"] == 0


def test_long_session_shows_what_left_the_window(reachable_dir: Path, tmp_path: Path) -> None:
    rounds = DATA / "long_session" / "rounds"
    talk = (rounds / "talk.jsonl").read_text("utf-8").splitlines()
    first, *_ = (rounds / "questions.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "campaign.yaml").write_text((rounds / "campaign.yaml").read_text("utf-8"), "utf-8")
    (tmp_path / "talk.jsonl").write_text("\n".join(talk[:75]), "utf-8")
    (tmp_path / "questions.jsonl").write_text(json.dumps({**json.loads(first), "at": [1, 24]}), "utf-8")
    in_prompt = figures_of("long_session", tmp_path, temporary=reachable_dir)["in_prompt"]
    assert in_prompt["window"] == {"1": 100.0, "24": 0.0}
    assert in_prompt["all"] == {"1": 100.0, "24": 100.0}
