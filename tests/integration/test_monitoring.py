"""A table that is served is watched from outside: figures, health and traces, in a real process."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pipecat.frames.frames import Frame, TextFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from glyphoxa.observability import ServiceTime
from glyphoxa_pipelines.host import PipelineHost
from tests.integration.test_serve_ends import a_table, ended, read_until, said_at, settings_file
from tests.support.patience import DEADLINE_S

SAID = "Grimjaw, are you there?"


class Collector(HTTPServer):
    """Takes traces as a collector does."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.bytes_taken = b""
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = ExportTraceServiceRequest.FromString(body)
        assert isinstance(self.server, Collector)
        self.server.bytes_taken += body
        self.server.names += [
            span.name for spans in request.resource_spans for scope in spans.scope_spans for span in scope.spans
        ]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    yield server
    server.shutdown()
    server.server_close()


def watched(settings: Path, endpoint: str) -> Path:
    document = yaml.safe_load(settings.read_text("utf-8"))
    document["observability"] = {"metrics_port": 0, "traces_endpoint": endpoint}
    settings.write_text(yaml.safe_dump(document), "utf-8")
    return settings


def test_figures_health_and_traces_of_a_table(tmp_path: Path, collector: Collector) -> None:
    settings = watched(settings_file(tmp_path), f"http://127.0.0.1:{collector.server_port}/v1/traces")
    with a_table("", settings) as process:
        url = read_until(process, "Metrics for Prometheus").split()[-1]
        before = httpx.get(url, timeout=DEADLINE_S)
        assert before.headers["content-type"].startswith("text/plain")
        ready = httpx.get(url.replace("/metrics", "/readyz"), timeout=DEADLINE_S)
        assert (ready.status_code, ready.json()["ready"]) == (200, True)
        assert httpx.get(url.replace("/metrics", "/healthz"), timeout=DEADLINE_S).json()["ok"] is True
        assert httpx.get(url.replace("/metrics", "/api/table"), timeout=DEADLINE_S).status_code == 404
        said_at(process, SAID)
        shown = httpx.get(url, timeout=DEADLINE_S).text
        process.send_signal(signal.SIGTERM)
        code, errors = ended(process)
    assert (code, "Traceback" in errors) == (0, False)
    assert re.search(r"^glyphoxa_utterances_total [1-9]", shown, re.MULTILINE)
    assert "turn" in collector.names
    assert b"are you there" not in collector.bytes_taken


def test_a_collector_that_is_away_is_said_once_and_costs_the_table_nothing(tmp_path: Path) -> None:
    settings = watched(settings_file(tmp_path), "http://127.0.0.1:9/v1/traces")
    with a_table("", settings) as process:
        said_at(process, SAID)
        process.send_signal(signal.SIGTERM)
        code, errors = ended(process)
    assert (code, "Traceback" in errors) == (0, False)
    assert errors.count("observability.traces_endpoint is unreachable") == 1


def test_a_taken_port_is_named_by_its_setting_before_anything_is_loaded(tmp_path: Path, collector: Collector) -> None:
    settings = watched(settings_file(tmp_path), "http://127.0.0.1:9/v1/traces")
    document = yaml.safe_load(settings.read_text("utf-8"))
    document["observability"]["metrics_port"] = collector.server_port
    settings.write_text(yaml.safe_dump(document), "utf-8")
    with a_table("", settings) as process:
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert "choose another with observability.metrics_port" in errors


class Measuring(FrameProcessor):
    def can_generate_metrics(self) -> bool:
        return True

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TextFrame):
            await self.start_processing_metrics()
            await self.stop_processing_metrics()
        await self.push_frame(frame, direction)


async def test_what_pipecat_measures_of_a_service_is_told_with_its_graph() -> None:
    host, told = PipelineHost(), list[ServiceTime]()
    host.measure(told.append)
    line = await host.add("mouth-grimjaw", [Measuring()], on_error=pytest.fail)
    line.send(TextFrame("Aye."))
    await line.wait_until_drained()
    await host.close()
    assert [(time.graph, time.service, time.measure) for time in told] == [("mouth-grimjaw", "Measuring", "processing")]


async def test_nothing_is_measured_for_nobody() -> None:
    host = PipelineHost()
    line = await host.add("mouth-grimjaw", [processor := Measuring()], on_error=pytest.fail)
    assert processor.metrics_enabled is False
    assert line.worker.reached_downstream_types == ()
    await host.close()
