"""The memory graph of what one viewer witnessed, made from the talk that is held in memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from numpy import int64

from glyphoxa.memory.recall.graph.talk_graph import TalkGraph, graph_of_talk
from glyphoxa.memory.recall.talk_index import TalkIndex
from glyphoxa.memory.recall.view import Columns
from glyphoxa.speech.language.words import words

_REMEMBERED_TEXTS: Final = 20_000


def graph_of_view(index: TalkIndex, columns: Columns) -> TalkGraph:
    """A view's turns, in its order, with the names that stand in them. Which words a turn has is not in it: a question
    brings that with it, see `glyphoxa.memory.recall.signals.by_words`. 10,000 turns take .7 s, and .3 s when most of
    them were in a graph before.
    """
    said = [index.said(int(row)) for row in columns.rows]
    vectors = index.vectors_at(columns, range(len(columns)))
    return graph_of_talk(
        [one.utterance_id for one in said],
        [()] * len(said),
        [[one.speaker_name, *_names_in(one.text)] for one in said],
        sessions=columns.sessions.astype(int64),
        vectors=vectors if vectors.any() else None,
    )


@lru_cache(_REMEMBERED_TEXTS)
def _names_in(text: str) -> tuple[str, ...]:
    """What is written like a name inside a sentence."""
    return tuple(word.text for word in words(text) if word.is_capital and not word.opens and len(word.folded) > 1)
