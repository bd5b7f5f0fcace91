"""Whether the exact gate gives what a question calls for, and nothing beside it: PrecisionMemBench.

    python -m benchmarks.precision DIR [--beside 2000]

`DIR` holds `beliefs.seed.json`, `retrieval.cases.json` and `session-retrieval.cases.json` of PrecisionMemBench
(tenurehq/precisionMemBench, MIT, (c) 2026 Jeffrey Flynt). Each turn of a session is a case; what is learned in a turn
is known from the next one on, in later sessions too. The last line printed is a JSON object: `passed` of `cases`,
`session_passed` of `session_cases`, `p50_ms` and `p95_ms` of one question, `failures` (ids of cases, a turn as
"id#turn").

A case passes when what it names is in its place: `mustInclude` and `shouldInclude` of pinned facts and of relevant
beliefs in the two together, `mustExclude` in neither, `shouldOnlyInclude` is all that is relevant and not pinned;
open questions stand apart. The text of a persona (`personaPrelude`) is no retrieval and is not looked at.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

from benchmarks.memory_words import invented_name
from benchmarks.names import percentile, read_lines
from glyphoxa.domain.campaign import ENTITY_TYPES
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.memory.recall.exact import ExactGate, ExactSet, Named

FILES: Final = ("beliefs.seed.json", "retrieval.cases.json", "session-retrieval.cases.json")
_EVERYWHERE: Final = "user:universal"
_USER: Final = "test-user"
_MOST_BELIEFS: Final = 20
_INVENTED: Final = "invented "
_TIMES: Final = 20
"""Each question is timed so often; one alone is too short for a clock."""

Record = Mapping[str, Any]


@dataclass(slots=True)
class Beliefs:
    """All that is believed, and the gate that holds it."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    gate: ExactGate = field(default_factory=ExactGate)

    def learn(self, record: Record) -> None:
        self.records[record["_id"]] = dict(record)
        self.gate.put(named(record))

    def ask(self, question: str, *, user: str, scopes: Collection[str], limit: int) -> ExactSet:
        wanted = set(scopes) - {_EVERYWHERE}

        def may_see(item: Named) -> bool:
            if item.id.startswith(_INVENTED):
                return True
            record = self.records[item.id]
            return record["user_id"] == user and not wanted.isdisjoint(record["scope"])

        return self.gate.ask(question, may_see=may_see, limit=limit)


@dataclass(frozen=True, slots=True)
class Figures:
    passed: int
    cases: int
    session_passed: int
    session_cases: int
    times_ms: tuple[float, ...]
    failures: tuple[str, ...]


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    try:
        seed, cases, sessions = (read_records(options.directory / name) for name in FILES)
        figures, complaints = measure(seed, cases, sessions, beside=options.beside)
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(
        json.dumps(
            {
                "passed": figures.passed,
                "cases": figures.cases,
                "session_passed": figures.session_passed,
                "session_cases": figures.session_cases,
                "p50_ms": round(percentile(figures.times_ms, 50), 3),
                "p95_ms": round(percentile(figures.times_ms, 95), 3),
                "beside": options.beside,
                "failures": list(figures.failures),
            }
        )
    )
    return 0


def measure(
    seed: Iterable[Record], cases: Iterable[Record], sessions: Iterable[Record], *, beside: int = 0
) -> tuple[Figures, list[str]]:
    """The figures, and a line for each case that failed.

    Args:
        beside: Invented entities that are held beside the beliefs, for the time it takes to ask among many.

    Raises:
        InvalidInput: A record has not the fields that it needs.
    """
    beliefs = Beliefs()
    complaints: list[str] = []
    times_ms: list[float] = []
    failures: list[str] = []
    passed = [0, 0]
    counted = [0, 0]
    place = "beliefs.seed.json"
    try:
        for each in _invented(beside):
            beliefs.gate.put(each)
        for record in seed:
            place = f"belief {record.get('_id')!r}"
            beliefs.learn(record)
        beliefs.gate.ask("")
        for is_session, place, case, expected in _questions(cases, sessions, beliefs):
            given, took_ms = _asked(beliefs, case)
            times_ms.extend(took_ms)
            wrong = complaints_about(given, expected)
            counted[is_session] += 1
            passed[is_session] += not wrong
            if wrong:
                failures.append(place)
                complaints.append(f"{place}: {'; '.join(wrong)}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidInput(f"{place}: not as PrecisionMemBench has it: {reason}") from error
    return Figures(passed[0], counted[0], passed[1], counted[1], tuple(times_ms), tuple(failures)), complaints


def named(belief: Record) -> Named:
    """What the gate holds of a belief: nothing of its text."""
    return Named(
        id=belief["_id"],
        names=(belief["canonical_name"], *belief["aliases"]),
        kind=belief["type"],
        participants=tuple(belief.get("participants") or ()),
        is_pinned=bool(belief.get("pinned")),
        is_question=belief["type"] == "open_question",
        has_ended=belief["epistemic_status"] == "superseded"
        or belief.get("superseded_by") is not None
        or belief.get("resolved_at") is not None,
        told_ms=round(datetime.fromisoformat(belief["last_reinforced_at"]).timestamp() * 1000),
    )


def complaints_about(given: ExactSet, expected: Record) -> list[str]:
    """What is otherwise than a case expects; nothing when it passes."""
    pinned = {item.id for item in given.pinned}
    relevant = {each.item.id for each in given.called}
    questions = {item.id for item in given.questions}
    wrong: list[str] = []
    for part, expects in _parts(expected):
        shown = questions if part == "openQuestions" else pinned | relevant
        for rule in ("mustInclude", "shouldInclude"):
            wrong += [f"{part} {rule}: misses {belief}" for belief in expects.get(rule, ()) if belief not in shown]
        for rule in ("mustExclude", "mustNotSurface"):
            wrong += [f"{part} {rule}: has {belief}" for belief in expects.get(rule, ()) if belief in shown]
        only = expects.get("shouldOnlyInclude")
        if part == "relevantBeliefs" and only is not None and set(only) != relevant:
            wrong.append(f"{part} shouldOnlyInclude: {sorted(only)}, given {sorted(relevant)}")
    return wrong


def _parts(expected: Record) -> Iterable[tuple[str, Record]]:
    """The expectations by part, also those that stand inside another part's."""
    for part, expects in expected.items():
        if part in ("pinnedFacts", "relevantBeliefs", "openQuestions", "noiseCheck"):
            yield part, expects
            yield from _parts(expects)


def _questions(
    cases: Iterable[Record], sessions: Iterable[Record], beliefs: Beliefs
) -> Iterable[tuple[bool, str, Record, Record]]:
    """Whether it is of a session, its name, the question and what is expected; in between, what a turn teaches."""
    for case in cases:
        yield False, case["caseId"], case, case["expect"]
    for session in sessions:
        for turn in session["turns"]:
            question = {"query": turn["userMessage"], "scope": turn["scope"], "userId": turn.get("userId", _USER)}
            yield True, f"{session['caseId']}#{turn['turnIndex']}", question, turn["expect"]
            if learned := turn.get("createBeliefAtTurn"):
                beliefs.learn(learned)
            if changed := turn.get("updateBeliefAtTurn"):
                before = beliefs.records[changed["beliefId"]]
                beliefs.learn({**before, "aliases": [*before["aliases"], *changed.get("addAliases", ())]})


def _asked(beliefs: Beliefs, case: Record) -> tuple[ExactSet, list[float]]:
    limit = (case.get("budget") or {}).get("maxBeliefs", _MOST_BELIEFS)
    user = case.get("userId", _USER)
    took_ms: list[float] = []
    for _ in range(_TIMES):
        started = perf_counter_ns()
        given = beliefs.ask(case["query"], user=user, scopes=case["scope"], limit=limit)
        took_ms.append((perf_counter_ns() - started) / 1e6)
    return given, took_ms


def _invented(n: int) -> Iterable[Named]:
    dice = random.Random("beside the beliefs")
    for number in range(n):
        kind = dice.choice(ENTITY_TYPES)
        names = (invented_name(dice, kind), invented_name(dice, kind))
        yield Named(f"{_INVENTED}{number}", names, kind)


def read_records(path: Path) -> list[Record]:
    """The objects of a JSON file that holds a list of them.

    Raises:
        InvalidInput: It cannot be read, or holds anything else.
    """
    try:
        records = json.loads("\n".join(read_lines(path)))
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{path}, line {error.lineno}: no JSON: {error.msg}") from error
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise InvalidInput(f"{path}: holds {type(records).__name__}, not a list of JSON objects")
    return records


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision", description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR", help=f"holds {', '.join(FILES)}")
    parser.add_argument("--beside", type=int, default=0, metavar="N", help="invented entities beside the beliefs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
