"""The files of PrecisionMemBench: what is believed, what is asked, and what each case expects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from benchmarks.names import read_lines
from benchmarks.precision_gate import Given, Pinned
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.recall.entities.gate import Named

BELIEFS: Final = "beliefs.seed.json"
CASES: Final = "retrieval.cases.json"
SESSIONS: Final = "session-retrieval.cases.json"

EVERYWHERE: Final = "user:universal"
"""The scope of what is the asker's persona: no retrieval."""
_USER: Final = "test-user"
_MOST_BELIEFS: Final = 20

Record = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Belief:
    """Somebody's belief.

    Attributes:
        item: As the gate holds it: by its names.
        scopes: Where it counts.
        text: What is believed.
        pinned: It is told whether it is asked for or not; None: only if it is.
    """

    item: Named
    user: str
    scopes: frozenset[str]
    text: str
    pinned: Pinned | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A question.

    Attributes:
        name: The id of the case; of a turn, "id#turn".
        limit: Of beliefs to be told.
        parts: What is expected of each part of the answer, by the part's name.
        taught: What is believed from then on.
        renamed: New aliases from then on, by the id of the belief.
    """

    name: str
    question: str
    user: str
    scopes: frozenset[str]
    limit: int
    parts: tuple[tuple[str, Record], ...]
    is_session: bool = False
    taught: tuple[Belief, ...] = ()
    renamed: Mapping[str, tuple[str, ...]] | None = None

    def complaints(self, given: Given) -> list[str]:
        """What is otherwise than expected; nothing when the case passes."""
        pinned = {item.id for item in given.pinned}
        relevant = {each.item.id for each in given.called}
        questions = {item.id for item in given.questions}
        wrong: list[str] = []
        for part, expects in self.parts:
            shown = {"openQuestions": questions, "noiseCheck": pinned | relevant | questions}.get(
                part, pinned | relevant
            )
            for rule in ("mustInclude", "shouldInclude"):
                wrong += [f"{part} {rule}: misses {belief}" for belief in expects.get(rule, ()) if belief not in shown]
            for rule in ("mustExclude", "mustNotSurface"):
                wrong += [f"{part} {rule}: has {belief}" for belief in expects.get(rule, ()) if belief in shown]
            only = expects.get("shouldOnlyInclude")
            if part == "relevantBeliefs" and only is not None and set(only) != relevant:
                wrong.append(f"{part} shouldOnlyInclude: {sorted(only)}, given {sorted(relevant)}")
        return wrong


def read_beliefs(directory: Path) -> list[Belief]:
    """
    Raises:
        InvalidInput: The file cannot be read or is not as the benchmark has it; likewise below.
    """
    path = directory / BELIEFS
    return [_read(_belief, record, f"{path}: belief {record.get('_id')!r}") for record in read_records(path)]


def read_cases(directory: Path) -> list[Case]:
    """The single questions, then the turns of the sessions, in the order in which they are asked."""
    single, sessions = directory / CASES, directory / SESSIONS
    cases = [_read(_case, record, f"{single}: case {record.get('caseId')!r}") for record in read_records(single)]
    for record in read_records(sessions):
        cases += _read(_turns, record, f"{sessions}: case {record.get('caseId')!r}")
    return cases


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
        raise InvalidInput(f"{path}: not a list of JSON objects")
    return records


def _read(reader: Callable[[Record], T], record: Record, place: str) -> T:
    try:
        return reader(record)
    except KeyError as error:
        raise InvalidInput(f"{place}: has no {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"{place}: not as PrecisionMemBench has it: {error}") from error


def _belief(record: Record) -> Belief:
    item = Named(
        id=record["_id"],
        names=(record["canonical_name"], *record["aliases"]),
        kind=record["type"],
        participants=tuple(record.get("participants") or ()),
        has_ended=record["epistemic_status"] == "superseded"
        or record.get("superseded_by") is not None
        or record.get("resolved_at") is not None,
    )
    told_ms = round(datetime.fromisoformat(record["last_reinforced_at"]).timestamp() * 1000)
    pinned = Pinned(record["type"] == "open_question", told_ms) if record.get("pinned") else None
    return Belief(item, record["user_id"], frozenset(record["scope"]), record.get("content", item.names[0]), pinned)


def _case(record: Record) -> Case:
    return Case(
        name=record["caseId"],
        question=record["query"],
        user=record.get("userId", _USER),
        scopes=frozenset(record["scope"]),
        limit=int((record.get("budget") or {}).get("maxBeliefs", _MOST_BELIEFS)),
        parts=tuple(_parts(record["expect"])),
    )


def _turns(session: Record) -> list[Case]:
    return [_turn(session["caseId"], turn) for turn in session["turns"]]


def _turn(session: str, turn: Record) -> Case:
    taught, changed = turn.get("createBeliefAtTurn"), turn.get("updateBeliefAtTurn")
    return Case(
        name=f"{session}#{turn['turnIndex']}",
        question=turn["userMessage"],
        user=turn.get("userId", _USER),
        scopes=frozenset(turn["scope"]),
        limit=_MOST_BELIEFS,
        parts=tuple(_parts(turn["expect"])),
        is_session=True,
        taught=(_belief(taught),) if taught else (),
        renamed={changed["beliefId"]: tuple(changed["addAliases"])} if changed else None,
    )


def _parts(expected: Record) -> Iterator[tuple[str, Record]]:
    """The expectations by part, also those that stand inside another part's."""
    known: Sequence[str] = ("pinnedFacts", "relevantBeliefs", "openQuestions", "noiseCheck")
    for part in known:
        if part in expected:
            yield part, expected[part]
            yield from _parts(expected[part])
