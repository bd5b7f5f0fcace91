"""What `campaign check` says of an NPC that would play badly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from glyphoxa.cli.main import main
from glyphoxa.config.campaign_file import read_campaign

GOOD = {"persona": "You are Oskar, a tired harbourmaster.", "examples": [{"said": "Hello.", "reply": "Good day."}]}


def written(path: Path, npc: dict[str, Any], *, language: str = "en") -> Path:
    document = {
        "campaign": {"name": "Quay", "language": language},
        "entities": [
            {"name": "Oskar", "type": "npc", "aliases": ["the harbourmaster"]},
            {"name": "The Wharf", "type": "location"},
        ],
        "npcs": [{"entity": "Oskar", **npc}],
        "players": [{"name": "Tamsin"}],
        "scenes": [{"location": "The Wharf", "npcs": ["Oskar"]}],
        "secrets": [{"text": "You take bribes.", "known_by": ["Oskar"]}],
    }
    file = path / "quay.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000), "utf-8")
    return file


def remarks(path: Path, language: str = "en", **changes: Any) -> list[tuple[str, str]]:
    """Each with the text of its line."""
    file = written(path, {**GOOD, **changes}, language=language)
    lines = file.read_text("utf-8").splitlines()
    found = [warning.removeprefix(f"{file}:").partition(": ") for warning in read_campaign(file).warnings]
    return [(lines[int(line) - 1].strip(" -"), text) for line, _, text in found]


def test_an_npc_that_plays_well_is_not_remarked_on(tmp_path: Path) -> None:
    assert remarks(tmp_path) == []
    assert remarks(tmp_path, "de", persona="Du bist Oskar, ein müder Hafenmeister.") == []
    assert remarks(tmp_path, "fr", persona="Tu es Oskar.") == []


@pytest.mark.parametrize(
    ("changes", "line", "text"),
    [
        ({"persona": ""}, "entity: Oskar", "'Oskar' has no `persona`: say who it is and how it speaks"),
        (
            {"persona": "Oskar is a harbourmaster who cares about fees and tides."},
            "persona: Oskar is a harbourmaster",
            "is not in the second person ('Oskar is a harbourmaster who cares about...'): write 'You are Oskar, ...'",
        ),
        ({"persona": "You are Oskar. " * 100}, "persona: ", "more than 1,200 crowd out the talk"),
        ({"examples": []}, "entity: Oskar", "'Oskar' has no `examples`: default ones are used"),
        (
            {"examples": [{"said": "Peter says: Hello.", "reply": "Good day."}]},
            "said: 'Peter says: Hello.'",
            "`said` says already who speaks ('Peter says:'): write only the words",
        ),
        (
            {"examples": [{"said": "Hello.", "facts": "Facts: It rains.", "reply": "Good day."}]},
            "facts: 'Facts: It rains.'",
            "`facts` begins with its label",
        ),
        (
            {"examples": [{"said": "Hello.", "remembered": "Remembered: Peter said: Hm.", "reply": "Good day."}]},
            "remembered: 'Remembered: Peter said: Hm.'",
            "`remembered` begins with its label",
        ),
        (
            {"examples": [{"said": "Hello.", "reply": "*nods* Good day."}]},
            "reply: '*nods* Good day.'",
            "'*nods* Good day.' is not what 'Oskar' would say aloud",
        ),
        ({"examples": [{"said": "Hello.", "reply": "Oskar: Aye."}]}, "reply: 'Oskar: Aye.'", "no name in front"),
        ({"examples": [{"said": "Hello.", "reply": "Oskar nods."}]}, "reply: Oskar nods.", "no stage direction"),
    ],
)
def test_what_makes_an_npc_play_badly_is_said_with_its_line(
    tmp_path: Path, changes: dict[str, Any], line: str, text: str
) -> None:
    [(at, told)] = remarks(tmp_path, **changes)
    assert at.startswith(line)
    assert text in told


def test_a_persona_in_german_is_told_in_german_how_it_begins(tmp_path: Path) -> None:
    [(_, told)] = remarks(tmp_path, "de", persona="Oskar ist Hafenmeister.")
    assert "write 'Du bist Oskar, ...'" in told


def test_the_check_warns_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, {"persona": "Oskar is old."})
    assert main(["campaign", "check", str(file)]) == 0
    assert capsys.readouterr().err.count("warning:") == 2


def test_how_the_prompts_of_an_npc_begin_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, {"persona": GOOD["persona"]})
    assert main(["campaign", "prompt", str(file), "--npc", "The Harbourmaster"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("[system]\nYou are Oskar, a tired harbourmaster.\nYou speak aloud, as Oskar,")
    assert "[user]\nPeter says: Hello, Oskar. How are you?\n\n[assistant]\n" in shown
    assert "`examples:` under 'Oskar' in the file replaces them" in shown
    assert shown.endswith("marked to be kept:\n  You take bribes.\n")


def test_an_npc_that_is_not_in_the_file_has_no_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "prompt", str(written(tmp_path, GOOD)), "--npc", "Oscar"]) == 1
    assert "no NPC 'Oscar' in 'Quay', did you mean 'Oskar'?" in capsys.readouterr().err
