from __future__ import annotations

import pytest

from glyphoxa.chat.dialect import Dialect, Habits, Rejection, dialect_of

REQUEST = {
    "messages": [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "A"},
        {"role": "user", "content": "B"},
    ],
    "stream": True,
    "temperature": 0.4,
    "seed": None,
    "max_tokens": 99,
}


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("Unknown parameter: 'temperature'.", {"temperature"}),
        ('[{"type": "extra_forbidden", "loc": ["body", "stream"], "msg": "Extra inputs"}]', {"stream"}),
        ("temperature and stream are not allowed", {"temperature", "stream"}),
        ("Unrecognized request argument supplied", {"temperature"}),
        ("invalid", {"temperature"}),
    ],
)
def test_refused_fields_are_left_out(text: str, gone: set[str]) -> None:
    changed = Dialect().after(Rejection(400, text), REQUEST)
    assert changed is not None
    assert changed.fitted(REQUEST).keys() == {"messages", "stream", "temperature", "max_tokens"} - gone


def test_limit_is_renamed_and_then_dropped() -> None:
    first = Dialect().after(Rejection(400, "max_tokens is not supported, use max_completion_tokens"), REQUEST)
    assert first is not None and first.fitted(REQUEST)["max_completion_tokens"] == 99
    second = first.after(Rejection(400, "max_completion_tokens: extra fields not permitted"), REQUEST)
    assert second is not None and not {"max_tokens", "max_completion_tokens"} & second.fitted(REQUEST).keys()


def test_roles_are_merged_before_the_system_message_is_folded() -> None:
    first = Dialect().after(Rejection(400, "roles must alternate"), REQUEST)
    assert first is not None
    assert first.fitted(REQUEST)["messages"] == [REQUEST["messages"][0], {"role": "user", "content": "A\n\nB"}]
    second = first.after(Rejection(500, "system role not supported"), REQUEST)
    assert second is not None
    assert second.fitted(REQUEST)["messages"] == [{"role": "user", "content": "S\n\nA\n\nB"}]


def test_tool_calls_are_never_merged() -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c"}]}
    results = [
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "tool", "tool_call_id": "d", "content": "2"},
    ]
    messages = [{"role": "user", "content": "A"}, call, *results]
    assert Dialect(merges=True).fitted({"messages": messages})["messages"] == messages


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_other_failures_change_nothing(status: int) -> None:
    assert Dialect().after(Rejection(status, "out of order"), REQUEST) is None


def test_settings_can_keep_roles_as_they_are() -> None:
    dialect = dialect_of("m", habits=Habits(roles="any"))
    changed = dialect.after(Rejection(400, "roles must alternate"), REQUEST)
    assert changed is not None and changed.fitted(REQUEST)["messages"] == REQUEST["messages"]


@pytest.mark.parametrize(
    ("model", "lacks"),
    [
        ("deepseek-r1:8b", True),
        ("DeepSeek-R1-Distill-Qwen-7B", True),
        ("Qwen3-30B-A3B-Thinking-2507", True),
        ("qwq-32b", True),
        ("llama3.2", None),
        ("gpt-4.1-mini", None),
    ],
)
def test_model_name_shows_that_opening_marks_are_missing(model: str, lacks: bool | None) -> None:
    assert dialect_of(model).lacks_opening is lacks
    assert dialect_of(model, habits=Habits(reasoning="none")).lacks_opening is None
