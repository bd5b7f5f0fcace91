"""Voices and recognisers of cloud providers."""

from glyphoxa.plugin import Plugin

PLUGIN = Plugin(providers=["glyphoxa.plugins.voices.rows:ROWS"])
