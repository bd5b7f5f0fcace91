"""What benchmarks that ask NPCs and judge their answers have in common: a command line, a log of answers, an end."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.turn import positive, stoppable
from benchmarks.turn_world import a_directory
from glyphoxa.adapters.local import native_env
from glyphoxa.config.provider_sections import LlmSettings
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.observability import log


def print_figures(measure: Callable[[Path], Awaitable[Mapping[str, Any]]]) -> int:
    """Print the figures that `measure` finds in a directory of its own; returns the exit code."""
    native_env.prepare()
    log.set_up(level="WARNING")
    try:
        with a_directory() as directory:
            print(json.dumps(asyncio.run(stoppable(measure(directory)))))
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def add_options(parser: argparse.ArgumentParser, *, asked: str) -> None:
    """
    Args:
        asked: What is asked, in the plural.
    """
    parser.add_argument("--limit", type=positive, metavar="N", help=f"so many {asked}, the same in every run")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="adds answers with their prompts, a line each")
    parser.add_argument("--llm", metavar="NAME", help="a provider's name as in the settings; default: the shipped one")
    parser.add_argument("--llm-model", metavar="MODEL", help="of that provider")
    parser.add_argument("--llm-url", metavar="URL", help="of that provider")


def llm_of(options: argparse.Namespace) -> LlmSettings:
    named = {"name": options.llm, "model": options.llm_model, "base_url": options.llm_url}
    return LlmSettings.model_validate({key: value for key, value in named.items() if value is not None})


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def note(path: Path | None, answer: Mapping[str, object]) -> None:
    """Add a line to the file of answers, if there is one."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(answer, ensure_ascii=False) + "\n")
