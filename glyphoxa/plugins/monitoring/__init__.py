"""Metrics for Prometheus and traces over OTLP: both are off until a setting asks for them."""

from glyphoxa.plugin import Plugin

PLUGIN = Plugin(
    settings={"observability": "glyphoxa.plugins.monitoring.settings:ObservabilitySettings"},
    observers=["glyphoxa.plugins.monitoring.settings:open_metrics", "glyphoxa.plugins.monitoring.settings:open_traces"],
    pages=["glyphoxa.plugins.monitoring.metrics_port:serve_metrics"],
)
