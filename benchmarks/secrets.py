"""Whether an NPC's own secret is kept from the voice: in its own words, in near ones, and in other words.

    python -m benchmarks.secrets DIR [--embedding]

Each line of `DIR/tune.jsonl` and `DIR/test.jsonl` is a secret with the question that leads to it, answers that tell it
in its words (`near`) or in others (`paraphrase`), and answers that tell nothing (`innocent`). Counted is what the
product's check rejects. `--embedding` asks besides whether the local embedding model would tell them apart: above the
similarity to the secret that is best on the tuning half.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Final, NamedTuple

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.secrets_told import tells_a_secret

KINDS: Final = ("near", "paraphrase", "innocent")
HALVES: Final = ("tune", "test")
Rates = Mapping[tuple[str, str], float]
"""In per cent, by language and kind."""


class Answer(NamedTuple):
    """
    Attributes:
        kind: One of `KINDS`.
        name: Of the NPC that says it.
    """

    kind: str
    language: str
    name: str
    secret: str
    question: str
    text: str


def read_answers(path: Path) -> list[Answer]:
    """
    Raises:
        InvalidInput: A line is no secret with its answers.
    """
    answers: list[Answer] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            language, name, secret, question = (str(row[key]) for key in ("language", "name", "secret", "question"))
            answers += [
                Answer(kind, language, name, secret, question, str(text)) for kind in KINDS for text in row[kind]
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"{path}, line {number}: a secret has language, name, secret, question, {', '.join(KINDS)}: {error!r}"
            ) from None
    return answers


def by_words(answers: Sequence[Answer]) -> list[bool]:
    """Which of them the product rejects."""
    return [
        tells_a_secret(
            one.text, Character(one.name, language=one.language), Asked(question=one.question, kept=(one.secret,))
        )
        is not None
        for one in answers
    ]


def rates(answers: Sequence[Answer], rejected: Sequence[bool]) -> Rates:
    found: dict[tuple[str, str], list[bool]] = {}
    for one, is_rejected in zip(answers, rejected, strict=True):
        found.setdefault((one.language, one.kind), []).append(is_rejected)
    return {key: round(100 * float(np.mean(values)), 1) for key, values in sorted(found.items())}


def similarities(answers: Sequence[Answer], vectors: Mapping[str, NDArray[float32]]) -> NDArray[float32]:
    """Of each answer to the secret as its owner would say it: the cosine."""
    return np.array([vectors[one.text] @ vectors[as_its_owner(one)] for one in answers], dtype=float32)


def as_its_owner(one: Answer) -> str:
    """The secret with "I" for its owner's name; the verb stays as it is."""
    return one.secret.replace(one.name, "Ich" if one.language == "de" else "I", 1)


def best_threshold(answers: Sequence[Answer], alike: NDArray[float32]) -> float:
    """Where most of the paraphrases are found for the innocent answers that are rejected with them (Youden's J)."""
    kinds = np.array([one.kind for one in answers])
    told, innocent = alike[kinds == "paraphrase"], alike[kinds == "innocent"]
    return float(max(alike, key=lambda at: np.mean(told >= at) - np.mean(innocent >= at)))


def _shown(name: str, halves: Mapping[str, Rates]) -> Iterator[str]:
    for half, found in halves.items():
        for (language, kind), rate in found.items():
            yield f"{name:10} {half:5} {language} {kind:11} {rate:5.1f} %"


def _by_embedding(halves: Mapping[str, Sequence[Answer]]) -> dict[str, Rates]:
    from glyphoxa.adapters.local.minilm import MiniLm
    from glyphoxa.adapters.weights.store import WeightStore
    from glyphoxa.config.settings import Settings

    model = MiniLm(WeightStore(Settings().models.dir).path("minilm-l6-v2-int8"))
    texts = sorted({text for answers in halves.values() for one in answers for text in (one.text, as_its_owner(one))})
    vectors = dict(zip(texts, model.embed(texts), strict=True))
    alike = {half: similarities(answers, vectors) for half, answers in halves.items()}
    threshold = best_threshold(halves["tune"], alike["tune"])
    return {half: rates(answers, list(alike[half] >= threshold)) for half, answers in halves.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--embedding", action="store_true", help="also by similarity, with the local embedding model")
    options = parser.parse_args()
    try:
        halves = {half: read_answers(options.directory / f"{half}.jsonl") for half in HALVES}
        began = perf_counter_ns()
        found = {half: rates(answers, by_words(answers)) for half, answers in halves.items()}
        each_us = (perf_counter_ns() - began) / 1_000 / sum(map(len, halves.values()))
        print("\n".join(_shown("words", found)))
        if options.embedding:
            print("\n".join(_shown("embedding", _by_embedding(halves))))
        print(f"{each_us:.0f} µs an answer by words")
    except (GlyphoxaError, OSError) as error:
        print(f"benchmarks.secrets: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
