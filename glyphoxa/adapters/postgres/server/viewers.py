"""Who asks: the DM, who sees everything, or an NPC, from whom secrets are kept in every query."""

from __future__ import annotations

from glyphoxa.domain.knowledge import Dm, Viewer


def viewer_parameter(viewer: Viewer) -> str | None:
    """The `$viewer` of queries: NULL for the DM, who sees everything, the NPC's id otherwise.

    Raises:
        ValueError: The id is empty: nobody, rather than the DM.
    """
    if isinstance(viewer, Dm):
        return None
    if not viewer:
        raise ValueError("memory is asked in the name of DM or of an NPC, not of ''")
    return viewer
