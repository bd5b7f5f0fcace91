"""How a running table is watched: logs. Spans of a turn, metrics and readiness will stand here."""
