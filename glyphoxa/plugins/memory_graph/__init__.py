"""The memory graph: other ways to search memory, for NPCs of budget tier DEEP. All are off by default."""

from glyphoxa.plugin import Plugin

PLUGIN = Plugin(recall=["glyphoxa.plugins.memory_graph.opening:open_deep_recall"])
