"""Every word that players read stands in the catalogues of the page, the same in each language, and nowhere else."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest

from glyphoxa.config.settings import Settings
from glyphoxa.web.access.records import CONSENT_LANGUAGES, consent_text
from glyphoxa.web.app import STATIC


@dataclass(frozen=True, slots=True)
class Literal:
    """
    Attributes:
        text: The text between the quotes; `${}` for each part of a template that is computed.
        before: The text before it in its line.
    """

    text: str
    before: str


def strings_of(source: str) -> list[Literal]:
    """In the order of their beginnings; those within a template's computed parts too."""
    found: dict[int, Literal] = {}
    _code(source, 0, found, in_template=False)
    return [found[start] for start in sorted(found)]


def _code(source: str, at: int, found: dict[int, Literal], *, in_template: bool) -> int:
    """Returns: Behind the brace that ends this part of a template, or the end."""
    depth = 0
    while at < len(source):
        if source.startswith("//", at):
            at = source.find("\n", at) % (len(source) + 1)
        elif source[at] in '"`':
            at = _string(source, at, found)
        else:
            depth += {"{": 1, "}": -1}.get(source[at], 0)
            at += 1
            if in_template and depth < 0:
                break
    return at


def _string(source: str, start: int, found: dict[int, Literal]) -> int:
    quote, text, at = source[start], "", start + 1
    while source[at] != quote:
        if source[at] == "\\":
            text, at = text + source[at : at + 2], at + 2
        elif quote == "`" and source.startswith("${", at):
            text, at = f"{text}${{}}", _code(source, at + 2, found, in_template=True)
        else:
            text, at = text + source[at], at + 1
    found[start] = Literal(text, source[source.rfind("\n", 0, start) + 1 : start])
    return at + 1


CATALOGUES = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted((STATIC / "words").glob("*.json"))}
IMPORT = re.compile(r'from "\./(\w+)\.js"')
HOLE = re.compile(r"\{(\w+)\}")

FAMILIES = {key.partition(".")[0] for key in CATALOGUES["en"]}

PUT_TOGETHER = ("consent.", "mic.", "outcome.", "stage.", "test.")
"""Beginnings of keys that are put together from a value in a module, or that belong to the server."""

SAYS_NOTHING = {
    "Content-Type",
    "Space",
    "Enter",
    "Escape",
    "KeyS",
    "NotAllowedError",
    "NotFoundError",
    "NotReadableError",
    "POST",
    "English",
    "Deutsch",
    "(pointer: coarse)",
    "${} · Glyphoxa",
    "input, textarea, select, button, a, summary, dialog, [tabindex]",
}
"""Names that the browser gives to things, and languages by their own names."""


def modules_of_the_players() -> dict[str, str]:
    """The page's modules, by name."""
    found: dict[str, str] = {}
    waiting = ["main", "join"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = (STATIC / "js" / f"{name}.js").read_text("utf-8")
            waiting += IMPORT.findall(found[name])
    return found


def spoken(text: str) -> bool:
    """Whether it is words for somebody: a capital and small letters, words with spaces between, or cut short."""
    return bool(re.search(r"[A-Z][a-z]|[^\W\d_]{2,}…|[^\W\d_]{2,}[,.:;…]? +[^\W\d_]{2,}", text.replace("${}", "")))


def said_outside(source: str) -> list[str]:
    return [
        each.text
        for each in strings_of(source)
        if spoken(each.text)
        and each.text not in SAYS_NOTHING
        and not (each.before.endswith("class: ") and each.text == each.text.lower())
    ]


class Texts(HTMLParser):
    """The text of a page, and what it says in attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.keys: list[str] = []
        self._without_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._without_script = self._without_script or tag == "noscript"
        for name, value in attrs:
            if name in ("data-t", "data-t-label", "data-t-placeholder"):
                self.keys.append(str(value))
            elif name in ("aria-label", "placeholder", "title", "alt") and value:
                self.said.append(value)

    def handle_endtag(self, tag: str) -> None:
        self._without_script = self._without_script and tag != "noscript"

    def handle_data(self, data: str) -> None:
        if data.strip() and not self._without_script:
            self.said.append(data.strip())


def test_catalogues_have_the_same_keys_and_placeholders() -> None:
    english, german = CATALOGUES["en"], CATALOGUES["de"]
    assert list(english) == list(german)
    for key, text in english.items():
        assert text.strip(), key
        assert german[key].strip(), key
        assert set(HOLE.findall(text)) == set(HOLE.findall(german[key])), key


def test_no_module_of_the_players_page_says_a_word_of_its_own() -> None:
    assert {name: said for name, text in modules_of_the_players().items() if (said := said_outside(text))} == {}


@pytest.mark.parametrize(
    "line",
    [
        'notice("seat", "The session is over.");',
        "x = `no sound: ${why}`;",
        'told = "sending…";',
        'b.title = "Dismiss";',
    ],
)
def test_a_word_in_a_module_is_found(line: str) -> None:
    assert said_outside(line) != []


@pytest.mark.parametrize("page", ["index.html", "join.html"])
def test_no_page_of_the_players_says_a_word_of_its_own(page: str) -> None:
    texts = Texts()
    texts.feed((STATIC / page).read_text("utf-8"))
    assert set(texts.said) == {"Glyphoxa"}
    assert set(texts.keys) <= CATALOGUES["en"].keys()


def test_page_words_have_no_missing_and_no_unused_keys() -> None:
    modules = "\n".join(modules_of_the_players().values())
    texts = Texts()
    texts.feed((STATIC / "index.html").read_text("utf-8"))
    texts.feed((STATIC / "join.html").read_text("utf-8"))
    literals = [each.text for each in strings_of(modules)]
    keys = CATALOGUES["en"]
    counted = {key.rpartition(".")[0] for key in keys if key.endswith(".one")}
    named = {text for text in literals if text.partition(".")[0] in FAMILIES and is_key(text)}
    assert named <= keys.keys() | counted
    # Some are put together: `talk.${state}`, and `many("ready", n)`, whose forms stand behind the key.
    begun = {text.partition("${}")[0] for text in literals if is_key(text.partition("${}")[0] + "x")} - {""}
    forms = {f"{text}.{form}" for text in literals for form in ("one", "other")}
    named |= {*literals, *texts.keys, *forms}
    assert [key for key in keys if key not in named and not key.startswith((*begun, *PUT_TOGETHER))] == []


def is_key(text: str) -> bool:
    return re.fullmatch(r"[a-z]+(\.[a-z_]+)+", text) is not None


def test_consent_is_translated_and_names_everything_recorded() -> None:
    assert set(CONSENT_LANGUAGES) == set(CATALOGUES)
    for language in CONSENT_LANGUAGES:
        text = consent_text(Settings(), language=language)
        assert text.language == language
        assert text.title == CATALOGUES[language]["consent.title"]
        assert not HOLE.search(text.whole)
