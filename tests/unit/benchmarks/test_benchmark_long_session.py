"""The benchmark of long sessions: its input and its counts."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.long_session import Course, Shown, figures, growth, read, usage_of
from glyphoxa.config.costs import PriceList
from glyphoxa.domain.errors import InvalidInput

DATA = Path(__file__).resolve().parents[3] / "benchmarks" / "data" / "long_session"


@pytest.mark.parametrize("name", ["rounds", "sessions"])
def test_each_answer_is_said_once_and_never_later(name: str) -> None:
    play = read(DATA / name)
    points = [session for session, _ in play.sessions] if name == "sessions" else sorted({x.round for x in play.talk})
    assert len(points) == 40
    for question in play.questions:
        at = [
            points.index(line.session if name == "sessions" else line.round) + 1
            for line in play.talk
            if any(word.casefold() in line.text.casefold() for word in question.any_of)
        ]
        assert {*at} == {question.said_in} and question.said_in <= min(question.at), question.id


def test_line_of_an_unknown_speaker_is_refused_with_its_place(tmp_path: Path) -> None:
    for each in (DATA / "rounds").iterdir():
        shutil.copy(each, tmp_path / each.name)
    row = {"session": "s", "round": 1, "scene": "landing", "speaker": "Korvald", "text": "Hello."}
    (tmp_path / "talk.jsonl").write_text(json.dumps(row), "utf-8")
    with pytest.raises(InvalidInput, match=r"talk.jsonl:1: no speaker 'Korvald'"):
        read(tmp_path)


def test_figures_count_each_arm_at_each_point() -> None:
    question = read(DATA / "rounds").questions[0]
    shown = [
        Shown(question, 5, {"window": True, "summary": True, "all": True}, 100),
        Shown(question, 40, {"window": False, "summary": False, "all": True}, 300),
    ]
    unheard = replace(question, id="unheard", knows=False)
    shown.append(Shown(unheard, 40, {"window": False, "summary": False, "all": False}, 300, by_tool=True))
    found = figures(shown, [])
    assert found["in_prompt"]["window"] == {"5": 100.0, "40": 0.0}
    assert found["at_last"] == {"prompt": 1, "tool": 0, "neither": [], "by_tool": 0}
    assert found["unwitnessed"] == {"questions": 1, "in_prompt": [], "by_tool": ["unheard"]}
    assert (found["by_kind_at_last"], found["right_at_last"]) == ({"term": 100.0}, None)


def test_growth_compares_the_last_quarter_with_the_second() -> None:
    early, late = Course(10.0, 100.0, 20, 16), Course(15.0, 110.0, 20, 16)
    found = growth([Course(99.0, 50.0, 1, 1), early, early, late])
    assert found == {"rounds": 4, "late_to_early": {"took": 1.5, "rss": 1.1, "files": 1.0, "tasks": 1.0}}
    assert growth([]) == {}


def test_usage_counts_tokens_by_setting() -> None:
    start = "s" * 8_192  # 2,048 tokens, of which the provider has cached whole blocks
    asked = [{"messages": [{"role": "user", "content": start + end}]} for end in ("a" * 400, "b" * 800)]
    form = {"json_schema": {"name": "TalkFindings"}}
    read = {"messages": [{"role": "user", "content": "c" * 3_954}], "response_format": form}
    evening = PriceList(hours=2, players=3, answers=2, usage={}, prices={})
    found = usage_of([*asked, read], ["d" * 80, ["e" * 40, "f" * 40]], evening)
    assert found["requests"] == {"providers.llm": 2, "memory.chronicle": 1}
    usage = found["usage"]
    # 2,149 and 2,249 tokens with "user: "; of the second, 2,048 are cached.
    assert (usage["providers.llm"]["input"], usage["providers.llm"]["cached_input"]) == (2_350, 2_048)
    assert usage["memory.chronicle"]["input"] == 1_000
    assert usage["providers.embeddings"] == {"input": 40}
    assert usage["providers.stt"] == {"minute": 360}
