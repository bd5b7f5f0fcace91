"""A file is read whole, or refused with its line; and no file is too much for the reader."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import MOST_VALUES, InvalidFile, LocatedYaml, read_yaml
from glyphoxa.config.settings import read_settings
from tests.support.proof import n_examples

FUZZ = settings(
    deadline=None, max_examples=n_examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MOST_BYTES = 4 * 1024 * 1024
MOST_MEMORY = 300 * 1024 * 1024


def read(tmp_path: Path, text: str | bytes) -> LocatedYaml:
    path = tmp_path / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path)


def refusal(tmp_path: Path, text: str) -> str:
    """Without the path."""
    with pytest.raises(InvalidFile) as caught:
        read(tmp_path, text)
    return str(caught.value).replace(f"{tmp_path / 'file.yaml'}:", "")


def campaign_with(tmp_path: Path, attributes: str) -> Path:
    path = tmp_path / "campaign.yaml"
    path.write_text(f"campaign: {{name: Town}}\nentities:\n  - name: Reeds\n    type: location\n    {attributes}\n")
    return path


# Nothing is lost without a word


def test_a_comma_between_braces_does_not_lose_half_of_a_text(tmp_path: Path) -> None:
    text = "attributes: {description: In the Night of Reeds seven fishers drowned, ten years ago.}"
    with pytest.raises(InvalidFile) as caught:
        read_campaign(campaign_with(tmp_path, text))
    assert "campaign.yaml:5: 'ten years ago.' has no value: between braces, a comma ends" in str(caught.value)
    assert "put the text in quotes or on a line of its own" in str(caught.value)


@pytest.mark.parametrize(
    ("attributes", "line", "mistake"),
    [
        ("attributes:\n      occupation:", 6, "'occupation' has no value"),
        ("attributes:\n      occupation: ~", 6, "'occupation' has no value"),
        ("attributes:\n      goals:\n        - sleep\n        -", 8, "'1' has no value"),
        ("attributes:\n      past: {told: {}, hidden: null}", 6, "'hidden' has no value"),
        ("attributes:\n      She died. He wept.: 1", 6, "'She died. He wept.' looks like text"),
        ("attributes:\n      a smith who says all day long what he says: no", 6, "looks like text"),
        ("attributes: {past: {note: She died, he wept.: so they say}}", 5, "'he wept.' looks like text"),
    ],
)
def test_an_attribute_that_says_nothing_or_is_a_text_itself_is_a_mistake(
    tmp_path: Path, attributes: str, line: int, mistake: str
) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_campaign(campaign_with(tmp_path, attributes))
    assert f"campaign.yaml:{line}: " in str(caught.value) and mistake in str(caught.value)


@pytest.mark.parametrize(
    ("attribute", "warning"),
    [
        ("room: Room #3 by the stairs", "'#3 by the stairs' is a comment"),
        ("fillers: [Aye, well.]", "'Aye' and 'well.' are two"),
    ],
)
def test_text_that_yaml_drops_is_reported(tmp_path: Path, attribute: str, warning: str) -> None:
    (found,) = read_campaign(campaign_with(tmp_path, f"attributes:\n      {attribute}")).warnings
    assert "campaign.yaml:6: " in found and warning in found


@pytest.mark.parametrize(
    "attribute", ["room: blue  # the third", "room: blue # 3 of them", "room: 'Room #3'", "fillers: [Aye., Hm.]"]
)
def test_a_comment_and_a_list_are_nothing_to_point_out(tmp_path: Path, attribute: str) -> None:
    assert read_campaign(campaign_with(tmp_path, f"attributes:\n      {attribute}")).warnings == ()


@pytest.mark.parametrize(
    "written",
    ["12:30", "007", "0o17", "0x1F", "1_000", "1.50", "+5", ".5", "1e3", "yes", "No", "on", "off", "y", "2024-01-31",
     "-0", "=", "9" * 5000, "0." + "3" * 40, ".inf", ".nan", "<<"],
)  # fmt: skip
def test_non_numbers_are_kept_as_text(tmp_path: Path, written: str) -> None:
    assert read(tmp_path, f"a: {written}").value == {"a": written}


@pytest.mark.parametrize(
    ("written", "value"),
    [("12", 12), ("-3", -3), ("0", 0), ("0.5", 0.5), ("true", True), ("False", False), ("null", None), ("", None)],
)
def test_numbers_and_switches_are_what_they_look_like(tmp_path: Path, written: str, value: object) -> None:
    found = read(tmp_path, f"a: {written}").value
    assert found == {"a": value} and isinstance(found, dict) and type(found["a"]) is type(value)


def test_a_setting_takes_a_switch_and_a_number_however_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("logging: {content: yes}\nmemory: {auto_accept: .50}\nserver: {port: 07860}\n")
    found = read_settings(tmp_path / "s.yaml")
    assert (found.logging.content, found.memory.auto_accept, found.server.port) == (True, 0.5, 7860)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("a: &Co the merchants\n", "1: `&Co` names a value that nothing refers to"),
        ("a: b\n&Co the merchants: x\n", "2: `&Co` before a key"),
        ("a: &x b\nc: &x d\ne: *x\n", "2: `&x` is here twice, first on line 1"),
        ("a: *bold\n", "1: `*bold` refers to a value that nothing above names"),
        ("a: 1\nb: 2\na: 3\n", "3: key 'a' is here twice, first on line 1"),
        ("a: !Help me\n", "1: values of type '!Help' are not used here"),
        ("a: !Help [me]\n", "1: values of type '!Help' are not used here"),
        ("a: !!int me\n", "1: values of type 'tag:yaml.org,2002:int' are not used here"),
        ("a: !!bool me\n", "1: values of type"),
        ("a: !!float ''\n", "1: values of type"),
        ("a: b\n<<: *c\n", "2: `*c` refers"),
        ("a: &a [*a]\n", "1: this value contains itself"),
        ("a: !!python/object:os.system x\n", "1: values of type"),
        ("a: b\n<<: c\n", "2: `<<` takes the keys of other blocks"),
        ("? [a]\n: b\n", "1: a key must be a word"),
        ("a: b\n--- \nc: d\n", "2: a second document"),
        ("a: b\n...\n%TAG ! x\n", "3: a second document"),
        ("# of mine\n%YAML 1.1\n---\na: b\n", "2: a line that begins with %"),
    ],
)
def test_yaml_that_would_lose_text_is_refused_with_its_line(tmp_path: Path, text: str, refused: str) -> None:
    assert refusal(tmp_path, text).startswith(refused)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: b\nc: Note: it is cold\n", 2, "a ': ' inside a text, or a line with wrong indentation"),
        ("a: b\n\tc: d\n", 2, "a tab; indent with spaces"),
        ("a: @home\n", 1, "a text begins with `@`"),
        ("a: `home`\n", 1, "a text begins with ``"),
        ("a: 'it\nb: c\n", 1, "a quote that is opened and not closed"),
        ("a: \"Hm.\" he said\n", 1, "text"),
        ("a: {b: c\n", 2, "a `{` that is not closed"),
        ("a: [b, c\n", 2, "a `[` that is not closed"),
        ("a: b\nand a line\n", 2, "a line without `key: value`"),
        ("a:\n  - b\n  c\n", 3, "a line"),
        ("a: - b\n", 1, "`- ` after a key"),
        ("a: \"C:\\quay\"\n", 1, "a `\\` in double quotes begins an escape"),
        ("a: > text\n  more\n", 1, "text directly after `|` or `>`"),
        ("a: **bold**\n", 1, "a text that begins with `&` or `*`"),
        ("a: %x\n", 1, "a text begins with `%`"),
        ("a: !h!x y\n", 1, "a text that begins with `!`"),
        ("a:\n    b: c\n  d: e\n", 3, "indentation"),
    ],
)  # fmt: skip
def test_invalid_yaml_is_explained_in_words(tmp_path: Path, text: str, line: int, words: str) -> None:
    found = refusal(tmp_path, text)
    assert found.startswith(f"{line}: not YAML: ") and words in found


def test_keys_of_another_block_are_taken_and_ones_own_win(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 0}\nd:\n  <<: *b\n  z: 3\n"
    source = read(tmp_path, text)
    value = source.value
    assert isinstance(value, dict)
    assert (value["c"], value["d"]) == ({"x": 0, "y": 1, "z": 2}, {"z": 3, "y": 2})
    assert (source.line(("c", "z")), source.line(("d", "z"))) == (2, 6)


# No file is too much


def _merge_of_merges(depth: int, width: int) -> str:
    layers = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * width)}]}}\n" for n in range(1, depth))
    return f"a0: &a0 {{k: 1}}\n{layers}"


BOMBS = {
    "merge keys": _merge_of_merges(12, 10),
    "a chain of merge keys": "a0: &a0 {k: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}, k{n}: 1}}\n" for n in range(1, 3000)),
    "aliases": "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
    "a long text many times": f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 1000)}]\n",
    "short lines": "- a\n" * (MOST_BYTES // 4),
    "brackets": "[" * MOST_BYTES,
    "braces": "{a: " * (MOST_BYTES // 4),
    "dashes": "- " * (MOST_BYTES // 2),
    "directives": "".join(f"%TAG !a{n}! b\n" for n in range(MOST_BYTES // 20)) + "--- a",
    "a key": f"? {'x' * (MOST_BYTES - 20)}\n: 1",
    "a mistake at the end": "a:\n" + " - {b: c}\n" * 10_000 + "x: : y",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_stands_for_too_much_is_refused_before_it_is_expanded(tmp_path: Path, name: str) -> None:
    tracemalloc.start()
    try:
        found = refusal(tmp_path, BOMBS[name])
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
    assert found.partition(":")[0].isdigit() and "\n" not in found and len(found) < 200


@pytest.mark.parametrize("value", ["9" * 4_000_000, "0x" + "f" * 4_000_000, "1" + ":1" * 2_000_000, "1_" * 2_000_000])
def test_a_number_of_millions_of_digits_is_text(tmp_path: Path, value: str) -> None:
    assert read(tmp_path, f"a: {value}").value == {"a": value}


def test_a_large_campaign_is_read(tmp_path: Path) -> None:
    entities = "".join(f"  - {{name: Name{n}, type: item}}\n" for n in range(MOST_VALUES // 5 - 10))
    (tmp_path / "c.yaml").write_text(f"campaign: {{name: Town}}\nentities:\n{entities}")
    assert len(read_campaign(tmp_path / "c.yaml").campaign.entities) == MOST_VALUES // 5 - 10


_TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Cn", "Co"], blacklist_characters="﻿"), max_size=20)
_VALUES = st.recursive(
    _TEXT | st.booleans() | st.integers(-(10**17), 10**17),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


@FUZZ
@given(value=st.dictionaries(_TEXT, _VALUES, max_size=4), flow=st.booleans())
def test_output_of_a_yaml_writer_is_read_back(tmp_path: Path, value: dict[str, object], flow: bool) -> None:
    written = yaml.safe_dump(value, allow_unicode=True, default_flow_style=flow)
    assert read(tmp_path, written).value == value
