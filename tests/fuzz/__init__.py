"""Hostile bytes for what reads them: `make fuzz`. Each module but those that run them is a target."""
