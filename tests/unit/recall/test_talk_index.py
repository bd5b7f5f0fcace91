"""Talk held in memory: the same answers however it came to be there, and for each only what it witnessed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.ids import NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import DM, Viewer
from glyphoxa.recall import vectors
from glyphoxa.recall.ranking import rank
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.terms import Terms, read_question
from glyphoxa.transcript.ports import Embedding, FeedUtterance
from tests.support.builders import INNKEEPER, SMITH

BOTH = frozenset({SMITH, INNKEEPER})
WORDS = ["sister", "pirate", "sword", "Will", "rain", "Eldrinax", "the", "harbours"]
DIMENSIONS = 3


def said(n: int, text: str, *, session: str = "s1", ordinal: int | None = None, **changes: object) -> FeedUtterance:
    ordinal = n + 1 if ordinal is None else ordinal
    whole = FeedUtterance(
        change_seq=n,
        utterance_id=UtteranceId(f"u{n}"),
        session_id=SessionId(session),
        ordinal=ordinal,
        speaker_id=SpeakerId("tamsin"),
        speaker_name="Tamsin",
        text=text,
        at_ms=1_000 * ordinal + 1_000_000 * int(session[1:]),
        witnesses=BOTH,
    )
    return replace(whole, **changes)  # type: ignore[arg-type] # fields of Said


def an_index(talk: Iterable[FeedUtterance], meanings: Iterable[Embedding] = ()) -> TalkIndex:
    index = TalkIndex(Terms("en"), dimensions=DIMENSIONS)
    index.put(talk)
    index.put_meanings(meanings)
    return index


def towards(*values: float) -> NDArray[float32]:
    vector = np.array(values, float32)
    return vector / np.linalg.norm(vector)


def answers(
    index: TalkIndex, viewer: Viewer, question: str, vector: NDArray[float32] | None = None
) -> list[tuple[str, str, float]]:
    """Everything in the viewer's mind, in its order, with how much it bears on the question."""
    asked = read_question(question, terms=index.terms, speakers=index.speakers(viewer), now_ms=0)
    seen = index.look(viewer, asked.terms, vector)
    scores = rank(asked, seen).scores
    found = [index.said(int(row)) for row in seen.columns.rows]
    return [(one.utterance_id, one.text, float(score)) for one, score in zip(found, scores, strict=True)]


def what_is_seen(index: TalkIndex, viewer: Viewer) -> list[object]:
    """A view, by everything that is counted in it."""
    seen = index.look(viewer, index.terms.of_question("x"))
    columns, names = seen.columns, {number: name for name, number in index.speakers(viewer).items()}
    return [
        set(names.values()),
        seen.mean_length,
        columns.starts.tolist(),
        columns.sessions.tolist(),
        columns.lengths.tolist(),
        columns.traits.tolist(),
        columns.at_ms.tolist(),
        [names[number] for number in columns.speakers.tolist()],
        [index.said(row) for row in columns.rows.tolist()],
    ]


def test_words_are_found_in_their_forms_and_names_only_as_they_are() -> None:
    index = an_index([said(0, "She hunts harbours."), said(1, "I will help."), said(2, "Ask Will, he knows Banks.")])
    asked = index.terms.of_question

    def places(question: str) -> list[list[int]]:
        return [match.places.tolist() for match in index.look(DM, asked(question)).matches]

    assert places("the harbour") == [[0]]
    assert places("has she seen Will?") == [[2]]
    assert places("banks") == [[2]]
    assert places("will he?") == []


def test_a_name_that_talk_has_only_in_small_letters_is_found_all_the_same() -> None:
    index = an_index([said(0, "they were at the nqv guild")])
    assert [m.places.tolist() for m in index.look(DM, index.terms.of_question("which NQV guild")).matches] == [
        [0],
        [0],
    ]


def test_who_speaks_is_found_by_name() -> None:
    index = an_index([said(0, "It rains."), said(1, "It snows.", speaker_name="Joren")])
    [match] = index.look(DM, index.terms.of_question("What was it that Joren")).matches
    assert match.places.tolist() == [1]


def test_better_words_take_the_place_of_the_old_and_their_meaning_goes_with_them() -> None:
    index = an_index(
        [said(0, "I met the linux."), said(1, "It rains.")], [Embedding(UtteranceId("u0"), towards(1, 0, 0)[None])]
    )
    index.put([said(0, "I met Eldrinax.", change_seq=7)])
    seen = index.look(SMITH, index.terms.of_question("and Eldrinax"), towards(1, 0, 0))
    assert [match.places.tolist() for match in seen.matches] == [[0]]
    assert seen.cosines is not None and np.isnan(seen.cosines).all()
    assert index.look(SMITH, index.terms.of_question("linux")).matches == ()
    assert (index.unembedded(limit=5), index.change_seq) == (["u1", "u0"][::-1], 7)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([SMITH, INNKEEPER])), min_size=1, max_size=60),
    st.integers(0, 2**32 - 1),
)
def test_likeness_is_that_of_the_nearest_piece_in_however_many_blocks(
    turns: list[tuple[int, NpcId]], seed: int
) -> None:
    dice = np.random.default_rng(seed)
    pieces = [dice.standard_normal((n, DIMENSIONS)).astype(float32) for n, _ in turns]
    with patch.object(vectors, "_BLOCK_BYTES", 1):  # blocks of 64
        index = an_index(
            (said(n, "Word.", witnesses=frozenset({who})) for n, (_, who) in enumerate(turns)),
            (Embedding(UtteranceId(f"u{n}"), of_turn) for n, of_turn in enumerate(pieces) if n % 5),
        )
    question = towards(1, 2, 3)
    for viewer in (SMITH, DM):
        heard = [n for n, (_, who) in enumerate(turns) if viewer in (DM, who)]
        cosines = index.look(viewer, index.terms.of_question("x"), question).cosines
        expected = [float((pieces[n] @ question).max()) if n % 5 else np.nan for n in heard]
        assert cosines is not None
        np.testing.assert_allclose(cosines, np.array(expected), rtol=1e-4, atol=1e-5)
        columns = index.look(viewer, index.terms.of_question("x")).columns
        first = index.vectors_at(columns, range(len(columns)))
        for n, vector in zip(heard, first, strict=True):
            np.testing.assert_array_equal(vector, pieces[n][0] if n % 5 else np.zeros(DIMENSIONS))


def test_an_empty_viewer_is_nobody_and_no_dm() -> None:
    with pytest.raises(ValueError, match="or for an NPC"):
        an_index([said(0, "x")]).look(NpcId(""), Terms("en").of_question("x"))


TALK = st.lists(
    st.tuples(
        st.integers(0, 11),  # which utterance: what comes twice is a revision
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
        st.sampled_from(["s1", "s2", "s3"]),
        st.sets(st.sampled_from([SMITH, INNKEEPER])),
        st.booleans(),
        st.sampled_from(["Tamsin", "Joren"]),
    ),
    max_size=24,
)
Step = tuple[int, list[str], str, set[NpcId], bool, str]


def history(steps: Sequence[Step]) -> list[FeedUtterance]:
    """Session, ordinal and time of an utterance never change. Sessions overlap, and two may begin at the same time."""
    sessions: dict[int, str] = {}
    told = []
    for change_seq, (n, words, first_session, witnesses, retracted, speaker) in enumerate(steps):
        told.append(
            said(
                n,
                " ".join(words),
                session=sessions.setdefault(n, first_session),
                at_ms=1_000 * (n // 2),
                change_seq=change_seq,
                witnesses=frozenset(witnesses),
                retracted=retracted,
                speaker_name=speaker,
            )
        )
    return told


def final(told: Iterable[FeedUtterance]) -> list[FeedUtterance]:
    return list({one.utterance_id: one for one in told}.values())


@given(TALK, st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
@example([(n, ["rain"], session, {SMITH}, False, "Tamsin") for n, session in enumerate(("s2", "s1"))], ["rain"])
def test_grown_word_by_word_or_read_after_a_restart_it_answers_the_same(steps: list[Step], asked: list[str]) -> None:
    told, question = history(steps), " ".join(asked)
    grown = an_index([])
    for one in told:
        grown.put([one])
        answers(grown, SMITH, question)  # a view is there and has to follow
    rebuilt = an_index(sorted(final(told), key=lambda one: one.change_seq))
    for viewer in (SMITH, INNKEEPER, DM):
        assert answers(grown, viewer, question) == answers(rebuilt, viewer, question)
        assert what_is_seen(grown, viewer) == what_is_seen(rebuilt, viewer)
    assert grown.session_numbers() == rebuilt.session_numbers()
