"""Summaries lose no statement because of a similar one: a negation, a number or a name makes another statement."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.chronicle.utterance_nodes import EarlierAtom, edge_of, said_in_words
from glyphoxa.domain.heard import Utterance
from glyphoxa.transcript.sessions import SummarySentence
from tests.support.builders import an_utterance

PAIRS: Final = tomllib.loads(Path(__file__).with_name("similar_statements.toml").read_text("utf-8"))["pairs"]
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=[f"{each['differs']}: {each['lines'][1]}" for each in PAIRS])
N_ROUNDS: Final = 8


def language_of(pair: dict[str, Any]) -> str:
    return str(pair.get("language", "en"))


def spoken(pair: dict[str, Any]) -> list[Utterance]:
    speakers = pair.get("by", ["Tamsin", "Tamsin"])
    lines = zip(pair["lines"], speakers, strict=True)
    return [an_utterance(text, id=f"u{n}", speaker=speaker) for n, (text, speaker) in enumerate(lines, start=1)]


def sentences(pair: dict[str, Any]) -> list[SummarySentence]:
    said = spoken(pair)
    return [SummarySentence(said_in_words(one.speaker_name, one.text, language_of(pair)), (one.id,)) for one in said]


def remaining(summary: Sequence[SummarySentence]) -> list[str]:
    return [each for one in summary for each in one.evidence if each in ("u1", "u2")]


@each_pair
def test_both_statements_remain_while_there_is_room(pair: dict[str, Any]) -> None:
    assert remaining(LineSelection(language_of(pair)).compress(sentences(pair))) == ["u1", "u2"]


@each_pair
def test_later_statement_remains_if_only_one_fits(pair: dict[str, Any]) -> None:
    both = sentences(pair)
    longest = max(len(each.text) for each in both)
    assert remaining(LineSelection(language_of(pair), tokens=(longest + 4) // 4).compress(both)) == ["u2"]


@each_pair
def test_no_line_is_selected_without_the_one_that_may_change_it(pair: dict[str, Any]) -> None:
    selected = remaining(LineSelection(language_of(pair)).select(spoken(pair)))
    assert "u1" not in selected or "u2" in selected


@each_pair
@pytest.mark.parametrize("gap", [1, 4])
def test_both_survive_several_rounds_of_summarising(pair: dict[str, Any], gap: int) -> None:
    selection, summary = LineSelection(language_of(pair)), sentences(pair)[:1]
    for n in range(1, N_ROUNDS):
        said = [an_utterance(f"The rain of evening {n} was a little cold.", id=f"rain{n}")]
        summary = selection.select([*said, *(spoken(pair)[1:] if n == gap else ())], before=summary)
    assert remaining(summary) == ["u1", "u2"]


@each_pair
def test_similar_statements_are_not_merged_in_the_memory_graph(pair: dict[str, Any]) -> None:
    before, after = (said_in_words(each.speaker_name, each.text, language_of(pair)) for each in spoken(pair))
    edge = edge_of(
        "atom:u2", "thread", after, [EarlierAtom("atom:u1", "thread", before, 0.99, True)], language_of(pair)
    )
    assert edge is not None and edge.label == "continues_thread"
