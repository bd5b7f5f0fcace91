"""What is said: templates of table talk, filled with the names of one half and with ordinary words.

Everything is chosen by hashes of the texts, so the same files give the same sentences, and a name or template that
is added changes few others.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.spoken_names.dataset import SPLITS, Sentence, Split, SpokenMention, SpokenName

PER_NAME = 5
PER_SLOTTED = 8
_NAME_SLOT = re.compile(r"\{(\w+?)(2?)(?::(\w+))?\}")
_WORD_SLOT = re.compile(r"\[(\w+?)(2?)\]")


@dataclass(frozen=True, slots=True)
class Voices:
    """Voices by weight: a voice with weight 2 speaks twice as many sentences."""

    weights: Mapping[str, int]

    def for_sentence(self, key: str) -> str:
        listed = [voice for voice, weight in self.weights.items() for _ in range(weight)]
        return listed[_hash("voice", key) % len(listed)]


def split_of(key: str) -> Split:
    """The half a name or a sentence without names belongs to, by a hash of its text alone."""
    return SPLITS[hashlib.sha256(key.casefold().encode()).digest()[0] & 1]


def template_lines(path: Path) -> list[str]:
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    return list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))


def word_lists(path: Path) -> dict[str, list[str]]:
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines() if line)
    return {key: values.split("|") for key, values in rows}


def sentences_with_names(names: Sequence[SpokenName], templates: Sequence[str], voices: Voices) -> list[Sentence]:
    """`PER_NAME` sentences for each name, of templates that few other names of the half have used."""
    made: dict[str, Sentence] = {}
    for split in SPLITS:
        half = [name for name in names if name.split == split]
        used: Counter[str] = Counter()
        for name in half:
            for template in _templates_for(name, templates, used):
                used[template] += 1
                text, mentions = _filled(template, name, half)
                made.setdefault(text, _sentence(text, split, voices, mentions))
    return list(made.values())


def sentences_without_names(
    templates: Sequence[str], word_choices: Mapping[str, Sequence[str]], voices: Voices
) -> list[Sentence]:
    """All lines; one with slots several times. All fillings of a line belong to the same half."""
    made: dict[str, Sentence] = {}
    for template in templates:
        texts = _filled_with_words(template, word_choices) if _WORD_SLOT.search(template) else (template,)
        for text in texts:
            made.setdefault(text, _sentence(text, split_of(template), voices, ()))
    return list(made.values())


def to_be_spoken(sentence: Sentence) -> str:
    """The text for a voice: within a name, apostrophes go and hyphens part ("Vexahl", "Kazak Dhur").

    Voices spell out what stands around an apostrophe they do not know.
    """
    pieces: list[str] = []
    done = 0
    for mention in sentence.mentions:
        name = sentence.text[mention.start : mention.end]
        pieces += (sentence.text[done : mention.start], re.sub(r"['’](?!s\b)", "", name).replace("-", " "))
        done = mention.end
    return "".join([*pieces, sentence.text[done:]])


def glossary_for(sentence: Sentence, names: Iterable[SpokenName], *, size: int = 24) -> tuple[list[str], bool]:
    """The names a recogniser is told before this sentence, and whether its own are among them: in half of the cases.

    A table's glossary never holds just the name that is said next.
    """
    own = list(dict.fromkeys(mention.name for mention in sentence.mentions))
    is_hinted = bool(own) and _hash("hint", sentence.id) % 2 == 0
    others = [name.name for name in names if name.split == sentence.split and name.name not in own]
    others.sort(key=lambda name: _hash("glossary", sentence.id, name))
    listed = others[: size - len(own)] + own if is_hinted else others[:size]
    return sorted(listed, key=lambda name: _hash("order", sentence.id, name)), is_hinted


def _templates_for(name: SpokenName, templates: Sequence[str], used: Counter[str]) -> list[str]:
    fitting = [template for template in templates if _fits(name, template)]
    return sorted(fitting, key=lambda template: (used[template], _hash("template", name.name, template)))[:PER_NAME]


def _fits(name: SpokenName, template: str) -> bool:
    slot = _NAME_SLOT.search(template)
    if slot is None or slot.group(1) not in (name.type, "any"):
        return False
    if "{creature}s" in template and name.name.endswith(("s", "x", "h", "folk")):
        return False
    return slot.group(3) != "short" or bool(name.short)


def _filled(template: str, name: SpokenName, half: Sequence[SpokenName]) -> tuple[str, tuple[SpokenMention, ...]]:
    text = ""
    mentions: list[SpokenMention] = []
    done = 0
    taken = [name.name]
    for slot in _NAME_SLOT.finditer(template):
        kind, _, form = slot.groups()
        if mentions:
            chosen = min(
                (other for other in half if other.type == kind and other.name not in taken),
                key=lambda other: _hash("other", template, name.name, other.name),
            )
            taken.append(chosen.name)
        else:
            chosen = name
        text += template[done : slot.start()]
        said = chosen.short if form == "short" else chosen.name
        before = _before(chosen, form)
        if before and not text:
            before = before[0].upper() + before[1:]
        text += before
        mentions.append(SpokenMention(chosen.name, len(text), len(text) + len(said)))
        text += said
        done = slot.end()
    return text + template[done:], tuple(mentions)


def _before(name: SpokenName, form: str | None) -> str:
    if form == "a":
        return "an " if name.name[0] in "AEIOU" else "a "
    if form in ("bare", "short") or name.type == "creature":
        return ""
    return f"{name.article} " if name.article else ""


def _filled_with_words(template: str, choices: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for turn in range(PER_SLOTTED):

        def word(slot: re.Match[str], turn: int = turn) -> str:
            ranked = sorted(choices[slot.group(1)], key=lambda choice: _hash("word", template, choice))
            return ranked[(turn + (3 if slot.group(2) else 0)) % len(ranked)]

        text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", _WORD_SLOT.sub(word, template))
        yield text


def _sentence(text: str, split: Split, voices: Voices, mentions: tuple[SpokenMention, ...]) -> Sentence:
    return Sentence(hashlib.sha256(text.encode()).hexdigest()[:8], split, voices.for_sentence(text), text, mentions)


def _hash(*parts: str) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:6])
