"""Decide which utterances are worth remembering: the gate, and the backstop that decides again later.

The worker creates a `SalienceJudge` for a session, passes it the last `CONTEXT` lines with `judge_all` and ignores the
verdicts, then passes new lines in order. A judge that read those lines decides as one that read the whole session.
Every few turns it passes recent lines to `backstop`, which also sees what was said after each of them, and keeps what
that returns in addition.

Both are logistic regressions over a few features and, where a line has one, over the vector of what it means. Their
weights are data, `salience.json`, written by `python -m benchmarks.salience_fit`; `benchmarks/README.md` describes how.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.chronicle.consent_requests import asks_to_forget
from glyphoxa.chronicle.statements import PEOPLE, facts_in, sentences_of
from glyphoxa.language.calls import NamedPlace
from glyphoxa.language.language_data import lexicon, primary_language
from glyphoxa.language.new_names import name_finder
from glyphoxa.language.table_talk import is_out_of_character
from glyphoxa.language.text import Text, shipped
from glyphoxa.names.gazetteer import Gazetteer

THRESHOLD: Final = 0.5
"""Utterances with at least this score are kept. The weights are scaled so that it is the same for each model: there,
cross-validation finds 85 % of what matters, because a missed line costs more than an unneeded one."""
CONTEXT: Final = 20
"""Number of lines before a line that its score depends on."""
AFTERWARDS: Final = 5
"""Number of lines after a line whose mean vector the backstop looks at."""
VECTORS_OF: Final = "minilm-l6-v2-int8"
"""The embedding model that the weights were fitted with; a vector of another one would mislead."""
_BEFORE: Final = 8
"""Number of lines before a line whose mean vector is looked at."""
_REAL_WORLD: Final = lexicon("chronicle").compile(r"\b{real_world}\b", flags=re.IGNORECASE)
_SOUND: Final = re.compile(r"\(\w[^)]*\)")
_QUOTED: Final = re.compile(r"[\"“„][^\"“”„]*[\"“”]?")


@dataclass(frozen=True, slots=True)
class Line:
    """An utterance to judge.

    Attributes:
        vector: Its embedding by `VECTORS_OF`; None: decide by the other features. Only read in English, which is all
            that this model knows.
    """

    text: str
    vector: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Salience:
    """The salience of an utterance.

    Attributes:
        score: 0 to 1.
        why: The strongest features in favour, or against if it is not kept.
        asks_to_forget: The speaker wants it not to be remembered. It is never kept.
    """

    score: float
    is_kept: bool
    why: tuple[str, ...]
    asks_to_forget: bool = False


@dataclass(frozen=True, slots=True)
class Features:
    """The input of a model for one line.

    Attributes:
        signs: Features by name.
        vectors: Vectors by place: the line's own, and the mean of those before and after it. Empty without vectors.
    """

    signs: Mapping[str, float]
    vectors: Mapping[str, NDArray[float32]]


@dataclass(frozen=True, slots=True)
class SalienceModel:
    """A logistic regression.

    Attributes:
        always: The intercept.
        signs: Weights of features.
        vectors: Weights of vectors, by place.
    """

    always: float
    signs: Mapping[str, float]
    vectors: Mapping[str, NDArray[float32]]

    def weighed(self, features: Features) -> dict[str, float]:
        """Return how much each feature speaks for keeping the line."""
        found = {sign: weight * features.signs[sign] for sign, weight in self.signs.items()}
        meaning = sum(float(weights @ features.vectors[place]) for place, weights in self.vectors.items())
        return {**found, "its meaning": meaning} if self.vectors else found

    def score(self, weighed: Mapping[str, float]) -> float:
        return (1 + math.tanh((self.always + sum(weighed.values())) / 2)) / 2


@cache
def shipped_models() -> Mapping[str, SalienceModel]:
    """Return the models: `gate` and `backstop`, each also `with vectors`."""
    return {
        name: SalienceModel(
            row["always"],
            row["signs"],
            {place: np.array(weights, float32) for place, weights in row.get("vectors", {}).items()},
        )
        for name, row in shipped(__package__, "salience").items()
    }


@dataclass(frozen=True, slots=True)
class _Read:
    """A line that was read, as context of others."""

    telling: frozenset[str]
    is_question: bool
    vector: NDArray[float32] | None


class SalienceJudge:
    """Scores the utterances of one session, in order.

    Args:
        language: BCP 47 tag.
        names: Known names.
        threshold: A lower one keeps more.
    """

    def __init__(self, language: str, names: Gazetteer | None = None, *, threshold: float = THRESHOLD) -> None:
        self._language = language
        self._names = names
        self._threshold = threshold
        self._reads_vectors = primary_language(language) == "en"
        self._lately: deque[_Read] = deque(maxlen=CONTEXT)

    def judge_all(self, lines: Sequence[Line]) -> list[Salience]:
        """Score the next lines of the session, in order."""
        return [self._judged(line, "gate", self.features(line)) for line in lines]

    def judge(self, text: str) -> Salience:
        """Score the next line of the session."""
        return self.judge_all([Line(text)])[0]

    def backstop(self, lines: Sequence[Line], *, first: int = 0) -> list[int]:
        """Return the indices of lines to keep, now that it is known what was said after them.

        Does not change what `judge` remembers.

        Args:
            lines: Consecutive lines of a session, the latest last.
            first: Index of the first line to decide on. The lines before it are its context.
        """
        judged = enumerate(zip(lines, self.looked_back(lines), strict=True))
        to_keep = (index for index, (line, seen) in judged if self._judged(line, "backstop", seen).is_kept)
        return [index for index in to_keep if index >= first]

    def looked_back(self, lines: Sequence[Line]) -> list[Features]:
        """Return the features of lines that are known with what followed each of them."""
        judge = SalienceJudge(self._language, self._names)
        found = [judge.features(line) for line in lines]
        for index, seen in enumerate(found):
            if seen.vectors:
                after = [each.vectors.get("own") for each in found[index + 1 : index + 1 + AFTERWARDS]]
                found[index] = Features(seen.signs, {**seen.vectors, "after": _mean(after, seen.vectors["own"])})
        return found

    def features(self, line: Line) -> Features:
        """Return the features of the next line of the session, and remember it as said."""
        text = Text.of(line.text)
        telling = text.telling(self._language)
        spans = list(names_in(line.text, self._language, self._names))
        sentences = list(sentences_of(line.text, spans))
        said_lately = frozenset[str]().union(*(each.telling for each in self._lately))
        is_aside = is_out_of_character(line.text)
        quoted = sum(len(each.group()) for each in _QUOTED.finditer(line.text))
        signs = {
            "length": math.log1p(len(text.words)),
            "new words": math.log1p(len(telling - said_lately)),
            "only questions": float(bool(sentences) and all(each.is_question for each in sentences)),
            "an answer": float(bool(self._lately) and self._lately[-1].is_question),
            "a name": float(min(len(spans), 3)),
            "a promise, plan or fact": float(any(facts_in(sentence) for sentence in sentences)),
            "people": float(PEOPLE.search(line.text) is not None),
            "quoted speech": quoted / max(len(line.text), 1),
            "a sound": float(_SOUND.search(line.text) is not None),
            "the players' world": float(is_aside or _REAL_WORLD.search(line.text) is not None),
        }
        own = None if line.vector is None or not self._reads_vectors else np.asarray(line.vector, float32)
        vectors = (
            {} if own is None else {"own": own, "before": _mean([each.vector for each in self._lately][-_BEFORE:], own)}
        )
        self._lately.append(_Read(telling, line.text.rstrip().endswith("?"), own))
        return Features(signs, vectors)

    def _judged(self, line: Line, name: str, features: Features) -> Salience:
        model = shipped_models()[f"{name} with vectors" if features.vectors else name]
        weighed = model.weighed(features)
        score = model.score(weighed)
        forget = asks_to_forget(line.text)
        is_kept = score >= self._threshold and not forget
        strongest = sorted(weighed, key=lambda sign: weighed[sign], reverse=is_kept)
        why = tuple(islice((sign for sign in strongest if weighed[sign] and (weighed[sign] > 0) == is_kept), 3))
        return Salience(score, is_kept, why, forget)


def names_in(text: str, language: str, names: Gazetteer | None) -> Mapping[NamedPlace, str]:
    """Return the known and the new names in a text, in order, each with the type of what it names."""
    mentions = () if names is None else names.mentions(text)
    found = {NamedPlace(each.name.entity_id, each.start, each.end): each.name.entity_type for each in mentions}
    new = name_finder(language).names_in(text, taken=[(each.start, each.end) for each in mentions], nobody=())
    # A new name may contain a known one, which counts here.
    free = [each for each in new if all(each.end <= known.start or known.end <= each.start for known in found)]
    found |= {NamedPlace(each.text, each.start, each.end): each.type for each in free}
    return dict(sorted(found.items(), key=lambda one: one[0].start))


def _mean(vectors: Iterable[NDArray[float32] | None], like: NDArray[float32]) -> NDArray[float32]:
    """Return the mean vector; zero if there is none."""
    known = [each for each in vectors if each is not None]
    return np.mean(known, axis=0, dtype=float32) if known else np.zeros_like(like)
