"""How much better names are heard with every session, when the DM confirms after each what was wrong.

    python -m benchmarks.names_loop [--names N.tsv] [--pairs P.tsv] [--clean C.txt] [--draw 8x40 | --in-order 8]
    python -m benchmarks.names_loop --spoken tune|test [--setting tiny] [--in-order 8]

`P.tsv` holds a wrong form and the name that was meant a line, and in a third column, if there is one, the session
in which it was heard; sessions are then played in the file's order. Without that column mentions are drawn:
`--draw 8x40` plays eight sessions of forty. Names are drawn by Zipf's law, and the wrong forms of a name, too:
tables speak of few names much, and a recogniser errs in its favourite way. `--in-order 8` cuts the file as it is
into eight parts. `--spoken` plays what one setting of the local recogniser made of a half of the spoken set, in the
order of the sentences' ids (which is by chance).

After each session the DM confirms every form that was not put right, as `glyphoxa names accept` would take it, and
heeds its warning: forms of ordinary words that stand in the clean text are not confirmed. The last line printed is a
JSON object; lists have one figure a session, in percent of its mentions:

- `recall`: put right with what earlier sessions taught; `recall_without`: the same without learning
- `wrong`: mapped to another name
- `seen_before`: garbled in exactly this way in an earlier session. What is drawn decides it: 30 to 70 at real tables
- `later_recall`, `later_recall_without`: of all mentions from the second session on
- `learned`, `refused`: forms; `false_per_1000_words`, `false_per_1000_words_without`: on the clean text at the end
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path

from benchmarks.names import OWN, Pair, entries_with, measure, read_lines, read_table
from benchmarks.spoken_names.dataset import (
    SPLITS,
    Split,
    heard_path,
    read_heard,
    read_names,
    read_sentences,
    settings_in,
)
from benchmarks.spoken_names.pairs import wrong_forms
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.correction.corrector import Corrector
from glyphoxa.speech.language.words import fold
from glyphoxa.speech.learning.history import AlreadyTaken, Step, changes_something, statuses
from glyphoxa.speech.learning.wrong_forms import Uses, as_heard, objection, warning
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer

_SESSIONS = 8


@dataclass
class Learned:
    """What the DM has confirmed so far, by the rules that hold at a table."""

    entries: Sequence[Entry]
    clean: Sequence[str]
    language: str
    refused: set[str] = field(default_factory=set)
    _steps: dict[str, list[Step]] = field(default_factory=dict)
    _forms: dict[str, str] = field(default_factory=dict)

    def corrector(self) -> Corrector:
        active: dict[EntityId, list[str]] = {}
        for key, steps in self._steps.items():
            for entity, status in statuses(steps).items():
                if status.state == "active":
                    active.setdefault(entity, []).append(self._forms[key])
        taught = [replace(entry, learned=tuple(active.get(entry.entity_id, ()))) for entry in self.entries]
        return Corrector(Gazetteer.build(taught, language=self.language))

    def confirm(self, pair: Pair, names: Gazetteer) -> None:
        entity, key = EntityId(pair.name), fold(as_heard(pair.heard))
        uses = Uses(spoken=_n_holding(pair.heard, self.clean))
        if objection(pair.heard, entity, names, uses=uses) or warning(pair.heard, names.vocabulary, uses):
            self.refused.add(key)
            return
        steps = self._steps.setdefault(key, [])
        step = Step("confirmed", entity, "dm", "", 0, id=len(steps) + 1)
        try:
            if changes_something(steps, step):
                steps.append(step)
                self._forms[key] = as_heard(pair.heard)
        except AlreadyTaken:
            self.refused.add(key)

    @property
    def n_forms(self) -> int:
        return len(self._forms)


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    try:
        if options.spoken is not None:
            entries, sessions, clean = _spoken(options.spoken, options.setting, options.in_order or _SESSIONS)
        else:
            entries = entries_with(read_table(options.names), [], learned_file=None)
            sessions = _sessions(options)
            clean = [line for line in read_lines(options.clean) if line.strip()]
            _check(sessions, entries, options.pairs)
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(play(sessions, entries, clean, language=options.language)))
    return 0


def play(
    sessions: Sequence[Sequence[Pair]], entries: Sequence[Entry], clean: Sequence[str], *, language: str = "en"
) -> dict[str, object]:
    """Play the sessions in order, learning after each; return the figures."""
    learned = Learned(entries, clean, language)
    untaught = learned.corrector()
    seen: set[tuple[str, str]] = set()
    recalls: list[float] = []
    without: list[float] = []
    wrong: list[float] = []
    seen_before: list[float] = []
    for session in sessions:
        corrector = learned.corrector()
        figures, _ = measure(corrector, session, ())
        recalls.append(figures.recall)
        wrong.append(figures.wrong)
        without.append(measure(untaught, session, ())[0].recall)
        keys = [(fold(pair.heard), pair.name) for pair in session]
        seen_before.append(100 * sum(key in seen for key in keys) / len(keys))
        seen.update(keys)
        for pair in session:
            if measure(corrector, [pair], ())[0].recall == 0:
                learned.confirm(pair, corrector.gazetteer)
    n_mentions = [len(session) for session in sessions]
    return {
        "names": len(entries),
        "sessions": len(sessions),
        "mentions": sum(n_mentions),
        "seen_before": [round(value, 1) for value in seen_before],
        "recall_without": [round(value, 1) for value in without],
        "recall": [round(value, 1) for value in recalls],
        "wrong": [round(value, 1) for value in wrong],
        "later_recall_without": _overall(without[1:], n_mentions[1:]),
        "later_recall": _overall(recalls[1:], n_mentions[1:]),
        "learned": learned.n_forms,
        "refused": len(learned.refused),
        "false_per_1000_words_without": round(measure(untaught, (), clean)[0].false_per_1000_words, 2),
        "false_per_1000_words": round(measure(learned.corrector(), (), clean)[0].false_per_1000_words, 2),
    }


def drawn(pairs: Sequence[Pair], *, n_sessions: int, n_mentions: int, seed: int) -> list[list[Pair]]:
    """Sessions drawn from pairs: the n-th name and the n-th wrong form of a name come 1/n as often as the first."""
    chance = random.Random(seed)
    forms: dict[str, list[Pair]] = {}
    for pair in pairs:
        forms.setdefault(pair.name, []).append(pair)
    names = list(forms)
    chance.shuffle(names)
    for listed in forms.values():
        chance.shuffle(listed)

    def zipf(n: int) -> list[float]:
        return [1 / rank for rank in range(1, n + 1)]

    return [
        [
            chance.choices(forms[name], zipf(len(forms[name])))[0]
            for name in chance.choices(names, zipf(len(names)), k=n_mentions)
        ]
        for _ in range(n_sessions)
    ]


def _sessions(options: argparse.Namespace) -> list[list[Pair]]:
    """Raises: InvalidInput: The file cannot be read, or cannot be cut into so many sessions."""
    pairs = [Pair(heard, name, line) for heard, name, line in read_table(options.pairs)]
    lines = read_lines(options.pairs)
    told = {pair.line: lines[pair.line - 1].split("\t")[2:3] for pair in pairs}
    if all(told.values()):
        return [list(session) for _, session in groupby(pairs, key=lambda pair: told[pair.line])]
    if options.in_order is not None:
        return _cut(pairs, options.in_order)
    n_sessions, n_mentions = options.draw
    return drawn(pairs, n_sessions=n_sessions, n_mentions=n_mentions, seed=options.seed)


def _spoken(split: Split, setting: str, n_sessions: int) -> tuple[list[Entry], list[list[Pair]], list[str]]:
    """The names of a half of the spoken set, what was heard for them, and its sentences as they were said.

    Raises:
        NotFound: There are no transcripts of this setting.
    """
    if setting not in settings_in():
        raise NotFound(f"no transcripts {heard_path(setting)}: {did_you_mean(setting, settings_in())}")
    heard = read_heard(heard_path(setting))
    said = sorted((each for each in read_sentences() if each.split == split), key=lambda each: each.id)
    pairs = [Pair(form, name, 0) for each in said for form, name in wrong_forms(each, heard[each.id])]
    entries = [Entry(each.name, EntityId(each.name), each.type) for each in read_names() if each.split == split]
    return entries, _cut(pairs, n_sessions), [each.text for each in said]


def _cut(pairs: Sequence[Pair], n_sessions: int) -> list[list[Pair]]:
    if not 1 <= n_sessions <= len(pairs):
        raise InvalidInput(f"--in-order {n_sessions}: there are {len(pairs)} mentions")
    cuts = [len(pairs) * at // n_sessions for at in range(n_sessions + 1)]
    return [list(pairs[start:end]) for start, end in pairwise(cuts)]


def _check(sessions: Sequence[Sequence[Pair]], entries: Sequence[Entry], file: Path) -> None:
    known = {entry.name for entry in entries}
    for session in sessions:
        for pair in session:
            if pair.name not in known:
                raise NotFound(f"{file}, line {pair.line}: no name {pair.name!r}: {did_you_mean(pair.name, known)}")


def _n_holding(heard: str, clean: Sequence[str]) -> int:
    words = (re.escape(word) for word in as_heard(heard).split())
    pattern = re.compile(r"\b" + r"\W+".join(words) + r"\b", re.IGNORECASE)
    return sum(pattern.search(line) is not None for line in clean)


def _overall(values: Sequence[float], weights: Sequence[int]) -> float:
    total = sum(weights)
    return round(sum(value * n for value, n in zip(values, weights, strict=True)) / total, 1) if total else 0.0


def _draw(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9]\d{0,3})x([1-9]\d{0,5})", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not SESSIONSxMENTIONS, like 8x40")
    return int(match[1]), int(match[2])


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.names_loop", description=__doc__.splitlines()[0])
    parser.add_argument("--names", type=Path, default=OWN / "N.tsv", metavar="N.tsv")
    parser.add_argument("--pairs", type=Path, default=OWN / "P.tsv", metavar="P.tsv")
    parser.add_argument("--clean", type=Path, default=OWN / "C.txt", metavar="C.txt")
    parser.add_argument("--spoken", choices=SPLITS, help="a half of the spoken set instead of files")
    parser.add_argument("--setting", default="tiny", help="of the spoken set (default: tiny)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--draw", type=_draw, default=(_SESSIONS, 40), metavar="8x40", help="sessions x mentions to draw")
    how.add_argument("--in-order", type=int, metavar="N", help="cut the file as it is into so many sessions")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (default: 1)")
    parser.add_argument("--language", default="en", help="of the campaign (default: en)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
