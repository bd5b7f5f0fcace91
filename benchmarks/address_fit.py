"""Fit the models that decide who is meant, and write their weights.

    python -m benchmarks.address_fit [FILE ...] [--check FILE ...] [--out DIR]

`FILE` has cases as for `benchmarks.address`. `--check` reports the figures on other files, of the scores alone. `--out`
writes the weights of `glyphoxa.language.calls` and `glyphoxa.turns.addressee` below a package folder. Needs
scikit-learn, which nothing else here does. The result is the same each time.

Each model is fitted to what those before it say of worlds that they were not fitted to. A punctuated line also counts
without its punctuation, as many recognisers write it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np
from numpy import float32, int8, int16
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from benchmarks.address import NOW_MS, Case, CaseNpc, CasePlayer, dms_of, figures, read_cases, retell, table_of
from benchmarks.labelled import DATA, read_columns
from benchmarks.runner import command, run
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.language.calls import NamedPlace, call_signs, tokens_of
from glyphoxa.language.fitted import BITS, Forest, Regressions, place_of
from glyphoxa.language.roles import cast_of
from glyphoxa.language.sentence_form import ask_signs
from glyphoxa.names.people import places_in
from glyphoxa.turns.address import THRESHOLDS, Addressed, Addressing
from glyphoxa.turns.addressee import ASIDES, Situation, act_signs, rows_of

FILES: Final = (
    *sorted((DATA / "address" / "worlds").glob("*.txt")),
    DATA / "address" / "tune.jsonl",
    DATA / "address" / "short.jsonl",
    DATA / "address" / "told.jsonl",
)
FOLDS: Final = 4
"""Parts of the worlds for what the earlier models say."""
LETTERS: Final = 0.4
"""Weight of a sign that is only a part of a word."""
STRENGTH: Final = {"calls": 1.0, "acts": 0.5}
"""Inverse penalties, chosen by cross-validation from 0.1 to 3."""
TREES: Final[dict[str, Any]] = {
    "n_estimators": 300,
    "learning_rate": 0.06,
    "max_leaf_nodes": 15,
    "max_depth": 7,
    "min_samples_leaf": 25,
    "subsample": 0.7,
    "max_features": 0.5,
    "init": "zero",
    "random_state": 1,
}
NEED_NO_HISTORY: Final = frozenset(
    {"name", "role", "two", "about", "quote", "absent", "plan", "narration", "out_of_character", "only_one_here"}
)
"""Kinds of lines that mean the same without what was said before."""
WITHOUT_A_NAME: Final = frozenset({"going_on", "only_one_here", "room", "player"})
CALLED: Final = 3
"""Share of the lines of these kinds that also count with the name of whom they are meant for, as one in so many."""
EVERY: Final = 4
"""Share of the statements about people that counts, as one in so many: of more, too few names are calls."""
TWICE: Final = frozenset({"tune", "short"})
"""Files of ordinary lines: the worlds are made of hard ones."""
_MARKS: Final = re.compile(r"[.,!?;:…]")
Signs = list[list[str]]


@dataclass(frozen=True, slots=True)
class Line:
    """A labelled line as a table reads it.

    Attributes:
        calls: The signs of each named place, by the offset of its first character.
        is_called: The labels; None for an unknown one.
    """

    case: Case
    at: Situation
    calls: dict[int, list[str]]
    is_called: dict[int, bool | None]
    acts: list[str]


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    kept = [case for path in options.files or FILES for case in read_cases(path) if any(n.present for n in case.npcs)]
    checked = [case for path in options.check for case in read_cases(path)]
    lines = [line_of(each) for case in kept for each in as_heard(case)]
    lines += [line for line in lines if line.case.world in TWICE]
    models = fitted(lines)
    if options.out is not None:
        models.write(options.out)
        _write(options.out / "language" / "asks.npz", _asks())
    judged = [(line.case, models.probabilities(line)) for line in map(line_of, checked)]
    by_threshold = {
        str(least): figures([(case, _answer(found, least)) for case, found in judged])
        for least in (0.4, *sorted(THRESHOLDS.values()))
    }
    return {"fitted_lines": len(kept), "checked_lines": len(checked), "by_threshold": by_threshold}


def _answer(found: dict[str, float], least: float) -> Addressed:
    best = max(found, key=found.__getitem__, default=None)
    return Addressed(NpcId(best) if best is not None and found[best] >= least else None, "by the scores alone")


def as_heard(case: Case) -> Iterable[Case]:
    """Yield a case as it is, without its punctuation, and without what was said before, where the label stays right."""
    yield case
    if _MARKS.search(case.text):
        yield case.model_copy(update={"text": bare(case.text)})
    if case.before and case.kind in NEED_NO_HISTORY:
        yield case.model_copy(update={"before": []})
    yield from _with_a_name(case)


def _with_a_name(case: Case) -> Iterable[Case]:
    """Yield some cases without a name once more, after the name of whom they are meant for."""
    people: list[CaseNpc | CasePlayer] = [*case.npcs, *case.players]
    names = [one.name for one in people if one.id in {*case.expected, case.to_player}]
    chosen = crc32(case.text.encode())
    if case.kind in WITHOUT_A_NAME and len(names) == 1 and chosen % CALLED == 0:
        before = case.before if chosen % (2 * CALLED) else []
        for text in (f"{names[0]}, {case.text}", bare(f"{names[0]} {case.text}")):
            yield case.model_copy(update={"text": text, "before": before})


def bare(text: str) -> str:
    """Return a text as a recogniser without punctuation writes it."""
    return " ".join(_MARKS.sub(" ", text).lower().split())


def line_of(case: Case) -> Line:
    campaign, names, forms = table_of(case)
    text = names.correct(case.text).text
    addressing = Addressing(cast_of(campaign), dms=dms_of(campaign))
    retell(case, addressing)
    present = [NpcId(npc.id) for npc in case.npcs if npc.present]
    called = {npc.id: npc.name for npc in campaign.npcs}
    at = addressing.situation(PlayerId(case.speaker), names.understand(text), present, called, NOW_MS)
    places = places_in(text, forms)
    tokens = tokens_of(text, places)
    signs = {
        places[token.place].start: list(call_signs(text, tokens, own, places[token.place]))
        for own, token in enumerate(tokens)
        if token.place is not None
    }
    labels = {place.start: _is_called(case, [str(entry.entity_id) for entry in place.meant]) for place in places}
    return Line(case, at, signs, {start: labels[start] for start in signs}, list(act_signs(at)))


def _is_called(case: Case, meant: Sequence[str]) -> bool | None:
    """Return whether one of these is called; None if the label does not tell."""
    present = {npc.id for npc in case.npcs if npc.present}
    if present.intersection(meant):
        return not set(case.expected).isdisjoint(meant)
    if {player.id for player in case.players}.intersection(meant):
        if case.to_player is not None or case.expected:
            return case.to_player in meant
        return False if case.kind in ("about", "quote", "thinking", "narration") else None
    return None if case.kind == "absent" else False


# -- the models


@dataclass(frozen=True, slots=True)
class Models:
    calls: Regressions
    acts: Regressions
    forest: Forest

    def probabilities(self, line: Line) -> dict[str, float]:
        rows = _rows(line, self.calls, self.acts)
        odds = self.forest.log_odds(rows) if len(rows) else np.zeros(0)
        return {npc: float(1 / (1 + np.exp(-each))) for npc, each in zip(line.at.present, odds, strict=True)}

    def write(self, directory: Path) -> None:
        for package, name, held in (("language", "calls", self.calls), ("turns", "acts", self.acts)):
            _write(directory / package / f"{name}.npz", held)
        forest = self.forest
        np.savez_compressed(
            directory / "turns" / "addressee.npz",
            feature=forest.feature,
            limit=forest.limit,
            low=forest.low,
            high=forest.high,
            value=forest.value,
            depth=forest.depth,
        )


def _write(path: Path, held: Regressions) -> None:
    step = float32(np.abs(held.weights).max() / 127)
    weights = np.round(held.weights / step).astype(int8)
    np.savez_compressed(path, weights=weights, step=step, bias=held.bias)


def fitted(lines: Sequence[Line]) -> Models:
    worlds = sorted({line.case.world for line in lines})
    fold = {world: at % FOLDS for at, world in enumerate(worlds)}
    rows: list[NDArray[float32]] = [np.zeros((0, 0), float32)] * len(lines)
    for number in range(FOLDS):
        others = [line for line in lines if fold[line.case.world] != number]
        calls, acts = _calls(others), _acts(others)
        for at, line in enumerate(lines):
            if fold[line.case.world] == number:
                rows[at] = _rows(line, calls, acts)
    meant = [npc in line.case.expected for line in lines for npc in line.at.present]
    return Models(_calls(lines), _acts(lines), _forest(np.concatenate(rows), meant))


def _calls(lines: Sequence[Line]) -> Regressions:
    known = [
        (line.calls[start], label) for line in lines for start, label in line.is_called.items() if label is not None
    ]
    known += [(signs, False) for signs in _told_of()]
    return _regressions([signs for signs, _ in known], [[label for _, label in known]], STRENGTH["calls"])


_MARKED: Final = re.compile(r"[<>\[\]]")


@cache
def _told_of() -> Signs:
    """Return the signs of the names in labelled statements, which are about people and call nobody."""
    found: Signs = []
    rows = read_columns(DATA / "statements" / "lines.tsv", lambda row: row[-1], valid="a text in the last column")
    for text in (each for marked in rows[::EVERY] for each in (marked, bare(marked))):
        plain, places, start = "", list[NamedPlace](), 0
        for part in re.split(r"([<>\[\]])", text):
            if part == "[":
                start = len(plain)
            elif part == "]":
                places.append(NamedPlace("", start, len(plain)))
            elif not _MARKED.fullmatch(part):
                plain += part
        tokens = tokens_of(plain, places)
        found += [
            list(call_signs(plain, tokens, own, places[token.place]))
            for own, token in enumerate(tokens)
            if token.place is not None
        ]
    return found


def _acts(lines: Sequence[Line]) -> Regressions:
    """Fit whether lines are for an NPC, and of those that are not, of which kind they are."""
    first = _regressions(
        [line.acts for line in lines], [[bool(line.case.expected) for line in lines]], STRENGTH["acts"]
    )
    others = [line for line in lines if not line.case.expected and line.case.kind in ASIDES]
    kinds = [[line.case.kind == kind for line in others] for kind in ASIDES]
    second = _regressions([line.acts for line in others], kinds, STRENGTH["acts"])
    return Regressions(
        np.concatenate([first.weights, second.weights], axis=1), np.concatenate([first.bias, second.bias])
    )


def _asks() -> Regressions:
    """Fit whether texts ask for anything, and whether they do nothing else, with and without punctuation."""
    rows = read_columns(
        DATA / "asks" / "lines.tsv",
        lambda row: (row[0], row[1]) if len(row) == 2 and row[0] in ("question", "asks", "states") else None,
        valid="question, asks or states, and a text",
    )
    both = [(kind, text) for kind, whole in rows for text in (whole, bare(whole))]
    labels = [[kind != "states" for kind, _ in both], [kind == "question" for kind, _ in both]]
    return _regressions([list(ask_signs(text)) for _, text in both], labels, STRENGTH["acts"])


def _regressions(signs: Signs, labels: Sequence[Sequence[bool]], strength: float) -> Regressions:
    import joblib
    from sklearn.linear_model import LogisticRegression  # only fitting needs scikit-learn

    columns = np.array([place_of(sign) for each in signs for sign in each])
    values = np.array([LETTERS if sign.startswith("~") else 1.0 for each in signs for sign in each])
    ends = np.cumsum([0, *map(len, signs)])
    matrix = csr_matrix((values, columns, ends), (len(signs), 1 << BITS))
    matrix.sum_duplicates()
    letters, whole = np.zeros(1 << BITS), np.zeros(1 << BITS)
    np.add.at(letters, columns[values == LETTERS], 1)
    np.add.at(whole, columns[values != LETTERS], 1)
    scale = (LETTERS * letters + whole) / np.maximum(letters + whole, 1)
    parallel = joblib.Parallel(n_jobs=-1)
    models = parallel(
        joblib.delayed(LogisticRegression(C=strength, solver="liblinear", max_iter=300).fit)(matrix, each)
        for each in labels
    )
    weights = np.stack([model.coef_[0] * scale for model in models], axis=1)
    return Regressions(weights.astype(float32), np.array([model.intercept_[0] for model in models], float32))


def _rows(line: Line, calls: Regressions, acts: Regressions) -> NDArray[float32]:
    odds = {start: float(calls.log_odds(signs)[0]) for start, signs in line.calls.items()}
    mentions = tuple(
        replace(mention, called=odds.get(mention.start, mention.called)) for mention in line.at.said.mentions
    )
    at = replace(line.at, said=replace(line.at.said, mentions=mentions))
    return rows_of(at, acts.log_odds(line.acts))


def _forest(rows: NDArray[float32], meant: Sequence[bool]) -> Forest:
    from sklearn.ensemble import GradientBoostingClassifier

    model = GradientBoostingClassifier(**TREES).fit(rows, meant)
    trees = [tree.tree_ for tree in model.estimators_[:, 0]]
    shape = (len(trees), max(tree.node_count for tree in trees))
    feature, low, high = np.zeros(shape, int16), np.zeros(shape, int16), np.zeros(shape, int16)
    limit, value = np.zeros(shape, float32), np.zeros(shape, float32)
    for at, tree in enumerate(trees):
        n, own = tree.node_count, np.arange(tree.node_count)
        is_leaf = tree.children_left < 0
        feature[at, :n] = np.where(is_leaf, 0, tree.feature)
        limit[at, :n] = np.where(is_leaf, 0, tree.threshold)
        low[at, :n] = np.where(is_leaf, own, tree.children_left)
        high[at, :n] = np.where(is_leaf, own, tree.children_right)
        value[at, :n] = np.where(is_leaf, model.learning_rate * tree.value[:, 0, 0], 0)
    return Forest(feature, limit, low, high, value, max(tree.max_depth for tree in trees))


def _options() -> argparse.ArgumentParser:
    parser = command("address_fit", __doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: those that are shipped")
    parser.add_argument("--check", nargs="+", type=Path, metavar="FILE", default=[], help="report the figures on these")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the weights below this package folder")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
