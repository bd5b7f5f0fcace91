"""A campaign for other programs: notes in a folder, and a calendar of its sessions."""

from glyphoxa.plugin import Plugin

PLUGIN = Plugin(
    actions={"campaign": "glyphoxa.plugins.exports.verb:OUT"},
    pages=["glyphoxa.plugins.exports.calendar_page:add_calendar"],
)
