"""Metrics and traces of a table: what is counted and traced, without a word of what was said."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client import generate_latest

from glyphoxa.domain.events import Degraded, MemoryChanged, MemoryHealth, Trouble, TurnFinished
from glyphoxa.domain.ids import NpcId, TurnId
from glyphoxa.domain.turn_record import (
    NO_PROMPT,
    AssembledPrompt,
    Fault,
    LookUp,
    Outcome,
    PromptPart,
    Stage,
    TurnRecord,
    Unaddressed,
    Unsaid,
)
from glyphoxa.observability import ServiceTime, measure_lag
from glyphoxa.plugins.monitoring.observers import MAX_SERVICES, OTHER, TableMetrics, TurnTracer, steps_of
from tests.support.builders import a_turn_record

ROOT = Path(__file__).parents[4]
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
    for measured in times:
        tracer.measured(measured)
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


def value(metrics: TableMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_a_turn_is_counted_by_its_outcome_with_its_times() -> None:
    metrics = TableMetrics()
    unsaid = (Unsaid("I am an assistant.", Fault.ASSISTANT),)
    metrics.on(TurnFinished(replace(ANSWERED, stages={**ANSWERED.stages, Stage.FILLER: 1_300}, unsaid=unsaid)))
    assert value(metrics, "glyphoxa_turns_total", outcome="answered") == 1
    assert value(metrics, "glyphoxa_turns_total", outcome="failed") == 0
    assert value(metrics, "glyphoxa_first_audio_seconds_sum") == 0.6
    assert value(metrics, "glyphoxa_turn_step_seconds_sum", step="transcription") == 0.2
    assert value(metrics, "glyphoxa_unsaid_sentences_total", fault="assistant") == 1
    assert value(metrics, "glyphoxa_fillers_total") == 1


def test_a_turn_for_nobody_is_counted_by_its_reason() -> None:
    metrics = TableMetrics()
    record = replace(ANSWERED, npc_id=None, outcome=Outcome.NOT_ADDRESSED, unaddressed=Unaddressed.PLAYER)
    metrics.on(TurnFinished(record))
    assert value(metrics, "glyphoxa_unaddressed_total", reason="player") == 1


def test_memory_that_is_away_and_troubles_are_told() -> None:
    metrics = TableMetrics()
    metrics.on(MemoryChanged(MemoryHealth("degraded", since_ms=1, why="secret address", waiting=7), at_ms=1))
    metrics.on(Degraded("secret address", 1, Trouble.DISK, NpcId("grimjaw")))
    assert value(metrics, "glyphoxa_memory_degraded") == 1
    assert value(metrics, "glyphoxa_memory_waiting_utterances") == 7
    assert value(metrics, "glyphoxa_troubles_total", trouble="disk") == 1
    metrics.on(MemoryChanged(MemoryHealth("ok"), at_ms=2))
    assert value(metrics, "glyphoxa_memory_degraded") == 0


def test_no_word_name_or_id_is_in_the_figures() -> None:
    metrics = TableMetrics()
    metrics.on(TurnFinished(ANSWERED))
    shown = generate_latest(metrics.registry).decode().lower()
    for word in ("your secret", "grimjaw", "tamsin", "t0001"):
        assert word not in shown


def test_services_beyond_the_bound_share_one_label() -> None:
    metrics = TableMetrics()
    for n in range(MAX_SERVICES + 5):
        metrics.measured(ServiceTime("mouth-grimjaw", f"Service{n}", "ttfb", 0.1, 0))
    assert value(metrics, "glyphoxa_service_seconds_count", service="Service0", measure="ttfb") == 1
    assert value(metrics, "glyphoxa_service_seconds_count", service=OTHER, measure="ttfb") == 5


async def test_a_blocked_event_loop_is_noticed() -> None:
    late = asyncio.Queue[float]()
    task = asyncio.create_task(measure_lag(late.put_nowait, every_s=0.001))
    await late.get()
    time.sleep(0.02)  # noqa: ASYNC251 - what is to be noticed
    blocked_s = await late.get()
    task.cancel()
    assert blocked_s >= 0.015


def test_the_dashboard_and_the_page_about_it_know_every_metric_by_its_name() -> None:
    metrics = TableMetrics()
    told = {sample.name for metric in metrics.registry.collect() for sample in metric.samples}
    told |= {f"{name.removesuffix('_count')}_bucket" for name in told if name.endswith("_count")}
    told |= {"process_cpu_seconds_total", "process_resident_memory_bytes"}
    dashboard = json.loads((ROOT / "deploy/grafana/glyphoxa.json").read_text("utf-8"))
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    assert set(re.findall(r"\b(?:glyphoxa|process)_\w+", asked)) <= told | {"glyphoxa_service_seconds_bucket"}
    written = set(re.findall(r"`(glyphoxa_\w+)`", (ROOT / "docs/reference/metrics.md").read_text("utf-8")))
    families = {metric.name for metric in metrics.registry.collect() if metric.name.startswith("glyphoxa_")}
    assert {name.removesuffix("_total") for name in written} == families
