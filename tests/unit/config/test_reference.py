"""The page of settings lists every setting with its type, default and meaning."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from glyphoxa.app.engines import languages_of
from glyphoxa.cli.main import main
from glyphoxa.config.reference import meanings_of, reference
from glyphoxa.config.settings import Settings
from glyphoxa.providers.registry import rows


def settings(model: type[BaseModel] = Settings, above: str = "") -> Iterator[tuple[str, str, str]]:
    """Each with the section that it stands in, and what it means."""
    meanings = meanings_of(model)
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from settings(inner, f"{above}.{name}".removeprefix("."))
        else:
            yield above, name, meanings.get(name, "")


PAGE = reference(languages_of)


def section_of(text: str, name: str) -> str:
    """Return the text below the heading of a section; without a name, above all of them."""
    below = text.split(f"\n## {name}\n")[1] if name else text
    return below.split("\n## ")[0]


@pytest.mark.parametrize(("section", "name", "meaning"), [*settings()], ids=lambda part: part[:24])
def test_every_setting_has_a_meaning_and_a_row(section: str, name: str, meaning: str) -> None:
    assert len(meaning) > 3
    [row] = [line for line in section_of(PAGE, section).splitlines() if line.startswith(f"| `{name}` |")]
    _, kind, default, _, told = (cell.strip(" |") for cell in row.split(" | "))
    assert kind and default and told == meaning


def test_a_row_says_type_default_and_unit() -> None:
    turns, providers = section_of(PAGE, "turns"), section_of(PAGE, "Providers")
    pause = "| `pause_ms` | whole number, 50 to 2000 | `200` | ms | Silence after which an answer is prepared. |"
    assert pause in turns.splitlines()
    assert "`whisper`, `deepgram-nova`, `deepgram-flux` | `whisper` |" in section_of(PAGE, "providers.stt")
    assert all(f"| {row.kind} | `{row.name}` |" in providers for row in rows())


def test_the_command_line_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "reference"]) == 0
    assert capsys.readouterr().out == PAGE
