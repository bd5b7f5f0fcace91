"""The memory graph: other ways to search memory, for NPCs of budget tier DEEP. All are off by default."""

from glyphoxa.plugin import Plugin

PLUGIN = Plugin(recall=["glyphoxa.plugins.memory_graph.deep_recall:open_deep_recall"])
