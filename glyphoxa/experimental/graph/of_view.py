"""The memory graph of what one viewer witnessed, made from the talk that is held in memory."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TypeAlias

from numpy import int64

from glyphoxa.experimental.graph.talk_graph import TalkGraph, graph_of_talk
from glyphoxa.recall.index.talk_index import TalkIndex
from glyphoxa.recall.index.view import ViewColumns
from glyphoxa.speech.language.words import words

Read: TypeAlias = tuple[str, tuple[str, ...]]
"""Of a row: the utterance's id, and the names that stand in it."""


def graph_of_view(index: TalkIndex, columns: ViewColumns, *, read: MutableMapping[int, Read]) -> TalkGraph:
    """A view's turns, in its order, with the names that stand in them. Which words a turn has is not in it: a question
    brings that with it, see `glyphoxa.recall.ranking.signals.by_words`.

    Args:
        read: What was read of the index's rows before; what is read now is added. A row never changes.
    """
    turns: list[Read] = []
    for row in columns.rows.tolist():
        turn = read.get(row)
        if turn is None:
            said = index.said(row)
            turn = read[row] = (said.utterance_id, (said.speaker_name, *_names_in(said.text)))
        turns.append(turn)
    vectors = index.vectors_at(columns, range(len(columns)))
    return graph_of_talk(
        [utterance for utterance, _ in turns],
        [()] * len(turns),
        [names for _, names in turns],
        sessions=columns.sessions.astype(int64),
        vectors=vectors if vectors.any() else None,
    )


def _names_in(text: str) -> list[str]:
    """What is written like a name inside a sentence."""
    return [word.text for word in words(text) if word.is_capital and not word.opens and len(word.folded) > 1]
