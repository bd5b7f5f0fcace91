"""Monitoring of a running table: logs, metrics, traces and event loop lag."""
