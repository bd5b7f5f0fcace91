"""A turn becomes a trace without a word of what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from glyphoxa.domain.events import TurnFinished
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn import NO_PROMPT, AssembledPrompt, LookUp, Outcome, PromptPart, Stage, TurnRecord, Unaddressed
from glyphoxa.observability import ServiceTime
from glyphoxa.plugins.monitoring.tracing import TurnTracer, steps_of
from tests.support.builders import a_turn_record

ANSWERED = a_turn_record(
    id=TurnId("t0001"),
    speaker_name="Tamsin Speaks",
    raw_text="grim jaw my secret",
    text="Grimjaw, my secret?",
    address_reason="Grimjaw was called",
    reply="Your secret is safe.",
    reply_heard="Your secret is safe.",
    stages={
        Stage.SPEECH_END: 1_000,
        Stage.TRANSCRIPT_FINAL: 1_200,
        Stage.CORRECTED: 1_201,
        Stage.ADDRESSED: 1_201,
        Stage.CONTEXT_READY: 1_210,
        Stage.FIRST_TOKEN: 1_400,
        Stage.TURN_END: 1_480,
        Stage.FIRST_SENTENCE: 1_470,
        Stage.FIRST_AUDIO: 1_600,
        Stage.AUDIO_END: 3_000,
    },
    looked_up=(LookUp("search_facts", {"query": "secret"}, {"found": "secret"}, 40),),
    prompt=AssembledPrompt(
        text="You are Grimjaw. secret",
        parts=(PromptPart("persona", "campaign file", 120), PromptPart("talk", "the talk", 80)),
    ),
)
NS = 1_000_000


async def spans_of(record: TurnRecord, times: Sequence[ServiceTime] = ()) -> list[ReadableSpan]:
    """The exported spans of a turn, that of the turn itself first."""
    exporter = InMemorySpanExporter()
    tracer = TurnTracer(exporter)
    for time in times:
        tracer.measured(time)
    tracer.on(TurnFinished(record))
    await tracer.close()
    *steps, turn = exporter.get_finished_spans() or (None,)
    return [] if turn is None else [turn, *steps]


def attributes(span: ReadableSpan) -> Mapping[str, object]:
    return span.attributes or {}


def test_each_step_lies_between_its_marks() -> None:
    assert {step.name: (step.start_ms, step.end_ms) for step in steps_of(ANSWERED)} == {
        "end of turn": (1_000, 1_480),
        "transcription": (1_000, 1_200),
        "name correction": (1_200, 1_201),
        "hot context": (1_201, 1_210),
        "first token": (1_210, 1_400),
        "first sentence": (1_400, 1_470),
        "voice": (1_470, 1_600),
        "speaking": (1_600, 3_000),
    }


async def test_the_turns_span_holds_all_of_it_and_says_what_came_of_it() -> None:
    turn, *steps = await spans_of(ANSWERED, [ServiceTime("mouth-grimjaw", "SpokenLLM", "ttfb", 0.19, 1_400)])
    assert (turn.name, turn.start_time, turn.end_time) == ("turn", 1_000 * NS, 3_000 * NS)
    assert turn.status.is_unset
    assert attributes(turn)["glyphoxa.outcome"] == "answered"
    assert attributes(turn)["glyphoxa.first_audio_ms"] == 600
    assert attributes(turn)["glyphoxa.prompt_tokens"] == 200
    events = [(event.name, event.timestamp) for event in turn.events]
    assert events == [("SpokenLLM ttfb", 1_400 * NS), ("look-up", 3_000 * NS)]
    found = [(step.name, step.start_time, step.end_time) for step in steps]
    assert found == [(step.name, step.start_ms * NS, step.end_ms * NS) for step in steps_of(ANSWERED)]
    assert {step.parent.span_id for step in steps if step.parent is not None} == {turn.context.span_id}


async def test_no_word_that_was_said_or_thought_is_in_a_trace() -> None:
    spans = await spans_of(replace(ANSWERED, error="the provider said: secret", outcome=Outcome.FAILED))
    assert spans[0].status.status_code is StatusCode.ERROR
    for span in spans:
        assert "secret" not in span.to_json()
        assert "Tamsin Speaks" not in span.to_json()


async def test_a_turn_for_nobody_says_why_and_has_not_failed() -> None:
    record = replace(
        ANSWERED,
        npc_id=None,
        outcome=Outcome.NOT_ADDRESSED,
        unaddressed=Unaddressed.PLAYER,
        prompt=NO_PROMPT,
        looked_up=(),
    )
    turn, *_ = await spans_of(record)
    assert turn.status.is_unset
    assert attributes(turn)["glyphoxa.unaddressed"] == "player"
    assert "glyphoxa.npc" not in attributes(turn)


async def test_a_turn_without_times_leaves_no_trace() -> None:
    assert await spans_of(replace(ANSWERED, stages={})) == []
