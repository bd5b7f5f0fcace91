"""Which lines the gate and the backstop keep, with the shipped weights."""

from __future__ import annotations

import numpy as np
import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.chronicle.judge import RulesJudge
from glyphoxa.chronicle.rules_extractor import RulesExtractor, names_of
from glyphoxa.chronicle.salience import CONTEXT, Line, Salience, SalienceJudge, names_in, shipped_models
from glyphoxa.chronicle.talk import KnownEntity
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import EntityId
from tests.support.talk import a_stretch

EVENING = [
    Line(text)
    for text in (
        "Hello again, everyone.",
        'The ferrywoman looks up. "My brother Aldous hid the silver bell in the mill, and then he vanished."',
        "Who is Aldous?",
        "The miller's son.",
        "Roll for perception.",
        "That is a nineteen.",
        "I promise you, we will find Aldous and bring him home before the winter.",
        "(laughs)",
        "Okay.",
        "We could ask Aldous himself, if he is in the mill.",
    )
]
GERMAN = [
    ('"Mein Bruder hat die silberne Glocke in der Mühle versteckt, und dann ist er verschwunden."', True),
    ("Ich verspreche Euch, wir bringen Alrik vor dem Winter nach Hause zurück.", True),
    ("Okay.", False),
    ("Würfle bitte.", False),
    ("Und was jetzt?", False),
]


def judged(lines: list[Line], language: str = "en") -> list[Salience]:
    return SalienceJudge(language).judge_all(lines)


def test_shipped_weights_fit_the_features() -> None:
    models = shipped_models()
    assert set(models) == {"gate", "gate with vectors", "backstop", "backstop with vectors"}
    lines = [Line(each.text, vector=np.ones(384)) for each in EVENING]
    for name, model in models.items():
        judge = SalienceJudge("en")
        seen = judge.looked_back(lines) if name.startswith("backstop") else [judge.features(each) for each in lines]
        assert set(model.signs) == set(seen[0].signs), name
        assert set(model.vectors) == (set(seen[0].vectors) if "vectors" in name else set()), name
        assert {weights.shape for weights in model.vectors.values()} <= {(384,)}, name


def test_no_shipped_weight_is_out_of_proportion() -> None:
    for name, model in shipped_models().items():
        assert all(abs(weight) < 5 for weight in model.signs.values()), name
        assert all(np.abs(weights).max() < 5 for weights in model.vectors.values()), name


@pytest.mark.parametrize("offset", [-1e-6, 1e-6])
def test_noise_in_vectors_changes_no_decision(offset: float) -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(600, 384))
    vectors[:, 319] = 0  # as some numbers of the embedding model are, up to its rounding
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    noisy = vectors + random.normal(0, 1e-6, vectors.shape) + offset

    def kept(seen: NDArray[np.float64]) -> tuple[list[bool], list[int]]:
        lines = [Line(EVENING[n % len(EVENING)].text, vector=vector) for n, vector in enumerate(seen)]
        return [each.is_kept for each in judged(lines)], SalienceJudge("en").backstop(lines)

    plain, moved = kept(vectors), kept(noisy)
    assert plain == moved
    assert 0 < sum(plain[0]) < len(vectors)


def test_what_matters_later_is_kept_and_chatter_is_not() -> None:
    kept = [index for index, each in enumerate(judged(EVENING)) if each.is_kept]
    assert {1, 6} <= set(kept)
    assert not {0, 2, 4, 5, 7, 8} & set(kept)


@pytest.mark.parametrize(("text", "is_kept"), GERMAN)
def test_german_lines_are_judged_without_vectors(text: str, is_kept: bool) -> None:
    assert judged([Line(text)], "de")[0].is_kept == is_kept
    assert judged([Line(text, vector=np.ones(384))], "de") == judged([Line(text)], "de")


def test_batches_do_not_matter() -> None:
    judge = SalienceJudge("en")
    assert [*judge.judge_all(EVENING[:4]), *judge.judge_all(EVENING[4:])] == judged(EVENING)
    assert SalienceJudge("en").judge(EVENING[1].text) == judged(EVENING[1:2])[0]


def test_judge_that_read_the_context_decides_as_one_that_read_everything() -> None:
    session = [Line(f"{each.text} {n}") for n in range(6) for each in EVENING]
    again = SalienceJudge("en")
    again.judge_all(session[-CONTEXT - 1 : -1])
    assert again.judge_all(session[-1:]) == judged(session)[-1:]


def test_vector_moves_the_score() -> None:
    weights = shipped_models()["gate with vectors"].vectors["own"]
    towards = weights / np.linalg.norm(weights)
    text = EVENING[3].text
    for_it, against_it = judged([Line(text, vector=towards)])[0], judged([Line(text, vector=-towards)])[0]
    assert for_it.score > 0.5 > against_it.score
    assert "its meaning" in for_it.why


def test_backstop_sees_what_is_said_afterwards() -> None:
    lines = [Line(each.text, vector=np.eye(384)[n]) for n, each in enumerate(EVENING)]
    alone, followed = (SalienceJudge("en").looked_back(each)[1].vectors["after"] for each in (lines[:2], lines))
    assert not alone.any()
    assert set(np.flatnonzero(followed)) == {2, 3, 4, 5, 6}


def test_backstop_keeps_nothing_that_is_to_be_forgotten() -> None:
    secret = Line("Off the record, I promise you that my brother hid the silver bell in the mill.")
    assert 0 not in SalienceJudge("en", threshold=0.0).backstop([secret, *EVENING])


TALK = a_stretch(*(line.text for line in EVENING))


async def test_judge_reads_vectors_and_does_without_a_model_that_is_away() -> None:
    weights = shipped_models()["gate with vectors"].vectors["own"]

    async def strong(texts: list[str]) -> NDArray[float32]:
        return np.array([weights / np.linalg.norm(weights)] * len(texts), float32)

    async def away(texts: list[str]) -> NDArray[float32]:
        raise Unavailable(f"no vectors for {len(texts)} lines")

    index = RulesExtractor("en").index
    plain, without, with_vectors = [
        await RulesJudge("en", index, embed=embed).judge(TALK, ()) for embed in (None, away, strong)
    ]
    assert without == plain
    assert "its meaning" in with_vectors[1].judged.judgement.note


def test_known_name_in_a_new_one_is_the_only_one_found() -> None:
    names = names_of([KnownEntity(EntityId("mere"), "location", "Thornmere")], "en")
    spans = names_in("We ride to the Thornmere Manor.", "en", names)
    assert [(span.name, span.start, span.end) for span in spans] == [("mere", 15, 24)]
