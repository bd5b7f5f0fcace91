import glyphoxa  # noqa: F401 - it has to run before what the modules of this package import first
