import glyphoxa  # noqa: F401 - must be imported before the other imports of this package
