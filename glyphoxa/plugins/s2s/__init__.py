"""Speech-to-speech providers."""

from glyphoxa.plugin import Plugin

PLUGIN = Plugin(providers=["glyphoxa.plugins.s2s.rows:ROWS"])
