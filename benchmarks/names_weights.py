"""The weights of `glyphoxa.speech.correction.evidence`, fitted anew: a logistic regression on what was really heard.

    python -m benchmarks.names_weights --clean TALK.txt [--split tune] [--share 0.35]

Right are the windows of the spoken set's transcripts that stand where a name was said, when the name most like
them is that name, and the isolated wrong forms. Wrong are all other windows; those that overlap a name's place
without being it count a fifth, because a better window beside them wins. `TALK.txt` is real table talk that holds
none of the names, one utterance a line. The last line printed is a JSON object: each weight as it was `fitted` and
as it is `shipped`. The shipped ones are rounded, and shifted so that talk without names is hardly ever changed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.names import read_lines, read_table
from benchmarks.spoken_names.alignment import align, heard_for, tokens
from benchmarks.spoken_names.dataset import (
    HERE,
    SPLITS,
    Heard,
    Sentence,
    heard_path,
    mention_spans,
    read_heard,
    read_names,
    read_sentences,
)
from benchmarks.spoken_names.measure import entries_of
from glyphoxa.domain.utterance import HeardWord
from glyphoxa.speech.correction.evidence import WEIGHTS, Look, Window, WordContext
from glyphoxa.speech.correction.windows import SHORTEST, Reader
from glyphoxa.speech.language.words import words
from glyphoxa.speech.names.gazetteer import Gazetteer, Name
from glyphoxa.speech.names.similarity import Similarity, Spelling

_WIDEST = 6
_OVERLAPPING = 0.2
_PENALTY = 0.3
_SETTINGS = ("tiny",)
_FEATURES = (
    "bias", "sound", "edits", "spelling", "margin", "same_sound", "set_off", "within", "capital", "ordinary",
    "several", "edge", "ordinary_within", "stop_word", "rarity", "short", "short_form", "missing_word", "sure",
    *(f"unsure below {limit}" for limit, _ in WEIGHTS.unsure),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Labelled:
    """A window and the name most like it. `weight`: how much it counts."""

    features: dict[str, float]
    is_name: bool
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name stands in a transcript, by characters."""

    start: int
    end: int
    name: str


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    names = [name for name in read_names() if name.split == options.split]
    gazetteer = Gazetteer.build(entries_of(names))
    rows = [*spoken_rows(gazetteer, options.split), *isolated_rows(gazetteer, options.split)]
    draw = random.Random(0)
    for line in read_lines(options.clean):
        if draw.random() < options.share:
            rows += labelled(line, (), gazetteer, ())
    fitted = fit(rows)
    shipped = {**asdict(WEIGHTS), **{f"unsure below {limit}": weight for limit, weight in WEIGHTS.unsure}}
    told = {key: {"fitted": round(float(fitted[key]), 2), "shipped": shipped[key]} for key in _FEATURES}
    print(json.dumps({"windows": len(rows), "names": sum(row.is_name for row in rows), "weights": told}))
    return 0


def spoken_rows(gazetteer: Gazetteer, split: str) -> Iterator[Labelled]:
    for setting in _SETTINGS:
        heard = read_heard(heard_path(setting))
        for sentence in read_sentences():
            if sentence.split == split and sentence.id in heard:
                written = heard[sentence.id]
                yield from labelled(written.text, written.heard_words(), gazetteer, _places(sentence, written))


def isolated_rows(gazetteer: Gazetteer, split: str) -> Iterator[Labelled]:
    for form, name, _ in read_table(HERE / f"P-{split}.tsv"):
        for row in labelled(form, (), gazetteer, [Place(0, len(form), name)]):
            if row.weight == 1.0:
                yield row


def labelled(
    text: str, heard: Sequence[HeardWord], gazetteer: Gazetteer, places: Sequence[Place]
) -> Iterator[Labelled]:
    """Every window that is like some name and does not spell one."""
    spoken = words(text)
    fixed = {
        at
        for first in range(len(spoken))
        for last, name in gazetteer.spelled_from(spoken, first)
        if not name.is_ordinary
        for at in range(first, last + 1)
    }
    transcript = Reader(gazetteer.vocabulary).read(spoken, heard, fixed)
    for first in range(len(spoken)):
        joined = ""
        for last in range(first, min(first + _WIDEST, len(spoken))):
            if last in fixed or (last > first and not spoken[last].joins):
                break
            joined += spoken[last].folded
            window = transcript.window(first, last) if len(joined) >= SHORTEST else None
            like = _most_like(joined, gazetteer) if window is not None else None
            if window is None or like is None:
                continue
            start, end = spoken[first].start, spoken[last].start + len(spoken[last].text)
            touched = [place for place in places if start < place.end and end > place.start]
            meant = next((place.name for place in touched if start == place.start and abs(end - place.end) <= 2), None)
            weight = 1.0 if meant is not None or not touched else _OVERLAPPING
            yield Labelled(features(window, *like), meant == like[1].canonical, weight)


def features(window: Window, likeness: Similarity, name: Name, margin: float) -> dict[str, float]:
    """What `glyphoxa.speech.correction.evidence` multiplies with its weights."""
    is_ordinary, confidence = window.look is Look.ORDINARY, window.confidence
    found = {
        "bias": 1.0,
        "sound": likeness.sound,
        "edits": likeness.edits,
        "spelling": likeness.spelling,
        "margin": min(1.0, 5 * margin),
        "same_sound": likeness.same_sound,
        "set_off": window.placement is WordContext.SET_OFF,
        "within": window.placement is WordContext.WITHIN,
        "capital": window.look is Look.CAPITAL,
        "ordinary": is_ordinary,
        "several": window.n_words > 1,
        "edge": window.starts_or_ends_with_stop_word,
        "ordinary_within": is_ordinary and window.placement is WordContext.WITHIN,
        "stop_word": min(3, window.stop_words),
        "rarity": is_ordinary * min(window.rarity, 70) / 70,
        "short": max(0, 7 - len(name.joined)),
        "short_form": name.kind == "short",
        "missing_word": max(0, len(name.words) - window.n_words),
        "sure": confidence is not None and confidence >= 0.95,
    }
    below = None if confidence is None else next((limit for limit, _ in WEIGHTS.unsure if confidence < limit), None)
    found |= {f"unsure below {limit}": below == limit for limit, _ in WEIGHTS.unsure}
    return {key: float(value) for key, value in found.items()}


def fit(rows: Sequence[Labelled]) -> dict[str, float]:
    """Logistic regression with a small quadratic penalty on all but the bias, by Newton's method."""
    x: npt.NDArray[np.float64] = np.array([[row.features[key] for key in _FEATURES] for row in rows])
    y = np.array([float(row.is_name) for row in rows])
    counts = np.array([row.weight for row in rows])
    penalty = 2 * _PENALTY * np.diag([0.0] + [1.0] * (len(_FEATURES) - 1))
    weights = np.zeros(len(_FEATURES))
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -40, 40)))
        gradient = x.T @ (counts * (p - y)) + penalty @ weights
        curvature = (x * (counts * p * (1 - p))[:, None]).T @ x + penalty
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(weights)), gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-6:
            break
    return dict(zip(_FEATURES, weights.tolist(), strict=True))


def _most_like(heard: str, gazetteer: Gazetteer) -> tuple[Similarity, Name, float] | None:
    codes = gazetteer.coder(heard) if gazetteer.coder else ()
    its = Spelling(heard, gazetteer.sounder(heard), codes)
    likenesses = [
        (Similarity.of(its, Spelling(name.joined, name.sound, name.codes)), name)
        for name in gazetteer.alike(heard, codes, limit=6)
        if name.joined != heard
    ]
    if not likenesses:
        return None
    best, name = max(likenesses, key=lambda each: each[0].overall)
    next_best = max((like.overall for like, other in likenesses if other.entity_id != name.entity_id), default=0.45)
    return best, name, best.overall - next_best


def _places(sentence: Sentence, heard: Heard) -> list[Place]:
    reference, written = tokens(sentence.text), tokens(heard.text)
    spans = align([token.word for token in reference], [token.word for token in written])
    found: list[Place] = []
    for mention, covered in zip(sentence.mentions, mention_spans(sentence, reference), strict=True):
        place = heard_for(spans, covered)
        if not place.is_empty:
            found.append(Place(written[place.first].start, written[place.end - 1].end, mention.name))
    return found


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.names_weights", description=__doc__.splitlines()[0])
    parser.add_argument("--clean", type=Path, required=True, metavar="TALK.txt")
    parser.add_argument("--split", choices=SPLITS, default="tune")
    parser.add_argument("--share", type=float, default=0.35, help="of the lines of TALK.txt (default: 0.35)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
