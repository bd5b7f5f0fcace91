from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is declared to a model.

    Attributes:
        name: With a dot. Providers allow none: see `wire_name`.
        parameters: Each argument's JSON schema.
        estimated_ms: What it usually takes, as long as that was not measured; for choosing, not for enforcing.
        lasts_ms: How long an answer may be given again to the same call of the same turn. No longer than that: the DM
            may hide meanwhile what it tells.
    """

    name: str
    description: str
    parameters: Mapping[str, Mapping[str, object]]
    required: tuple[str, ...]
    estimated_ms: int
    lasts_ms: int = 2_000

    @property
    def wire_name(self) -> str:
        return self.name.replace(".", "_")
