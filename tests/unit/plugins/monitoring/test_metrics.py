"""Figures of a table: what is counted, and that labels are bounded and hold nobody's words."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import replace
from pathlib import Path

from prometheus_client import generate_latest

from glyphoxa.domain.events import Degraded, MemoryChanged, MemoryHealth, Trouble, TurnFinished
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn import Fault, Outcome, Stage, Unaddressed, Unsaid
from glyphoxa.observability import ServiceTime, measure_lag
from glyphoxa.plugins.monitoring.metrics import MAX_SERVICES, OTHER, TableMetrics
from tests.unit.plugins.monitoring.test_turn_spans import ANSWERED

ROOT = Path(__file__).parents[4]


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
