"""What may be learned as a wrong form of a name, and what must never be: a learned form is replaced wherever it stands.

A form is refused when it is nothing but common little words, is a name of the campaign itself (in whatever case,
spacing or inflection), holds another name, is too short, or is made of ordinary words that the campaign's own text
uses as themselves. Forms of ordinary words that are left need more proof, and a look by the DM at what they would
rewrite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glyphoxa.domain.ids import EntityId, UtteranceId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.speech.language.vocabulary import Vocabulary
from glyphoxa.speech.language.words import Word, fold, words
from glyphoxa.speech.learning.history import Witness
from glyphoxa.speech.names.gazetteer import Gazetteer, Name

_FEWEST_LETTERS = 3
_MOST_WORDS = 8
_MOST_LETTERS = 100
_LEAST_PHONETIC_SCORE = 0.85


@dataclass(frozen=True, slots=True)
class Proof:
    """A sign that `heard` was meant for a name."""

    heard: str
    entity_id: EntityId
    by: Witness
    why: str
    utterance: UtteranceId


@dataclass(frozen=True, slots=True)
class Uses:
    """Where the words of a form stand as themselves, as far as anybody knows.

    Attributes:
        written: Places in the campaign's own text.
        spoken: Utterances in which they were left as they are: misheard names, or not.
    """

    written: int = 0
    spoken: int = 0


def as_heard(text: str) -> str:
    """A form as it is kept: its words, with single spaces, without punctuation and possessive ending.

    >>> as_heard(" elder  nacks's, ")
    'elder nacks'
    """
    spoken = words(text)
    return " ".join([*(word.text + word.tail for word in spoken[:-1]), *(word.text for word in spoken[-1:])])


def is_ordinary(heard: str, vocabulary: Vocabulary) -> bool:
    """Whether it is made of dictionary words only ("don bringer"). Without a word list every form may be."""
    if not vocabulary.is_known:
        return True
    return all(
        vocabulary.is_ordinary(word.folded) or vocabulary.is_proper(word.folded) or len(word.folded) < 2
        for word in words(heard)
    )


def objection(heard: str, entity: EntityId, names: Gazetteer, *, uses: Uses | None = None) -> str | None:
    """Why a form must not be learned for a name of `names`, in words that follow the form; None if it may."""
    if (length := too_short_or_long(heard)) is not None:
        return length
    spoken = words(heard)
    if all(word.folded in names.vocabulary.stop for word in spoken):
        return "is made of nothing but little words that stand everywhere"
    if (taken := _spelled(spoken, names)) is not None:
        same = "this name, but for case, spaces or an ending" if taken.entity_id == entity else "a name itself"
        return f"is {same} ({taken.text})"
    # What is learned is replaced by the entity's own name, and nothing of it is left.
    own = next((fold(name.canonical) for name in names.names if name.entity_id == entity), "")
    for mention in names.mentions_in(spoken):
        held = mention.name
        # "Bill of Saltmere" for "Bell of Saltmere": the town's name belongs in it.
        belongs = held.joined in own and held.joined != own
        if held.kind in ("name", "alias") and not held.is_ordinary and not belongs:
            return f"holds the name {held.text}"
    if uses is not None and uses.written and is_ordinary(heard, names.vocabulary):
        return f"stands in the campaign's own text as itself ({uses.written} times)"
    return None


def too_short_or_long(heard: str) -> str | None:
    """Why this cannot be a wrong form of any name, in words that follow it; None if it can."""
    if sum(char.isalpha() for char in fold(heard)) < _FEWEST_LETTERS:
        return f"has fewer than {_FEWEST_LETTERS} letters"
    if len(words(heard)) > _MOST_WORDS:
        return f"has more than {_MOST_WORDS} words"
    if len(as_heard(heard)) > _MOST_LETTERS:
        return f"has more than {_MOST_LETTERS} letters"
    return None


def warning(heard: str, vocabulary: Vocabulary, uses: Uses) -> str | None:
    """What the DM should know before a form of ordinary words is confirmed."""
    if not uses.spoken or not is_ordinary(heard, vocabulary):
        return None
    times = "1 earlier utterance" if uses.spoken == 1 else f"{uses.spoken} earlier utterances"
    return f"{heard!r} is made of ordinary words, which stand in {times}: all like them would be rewritten"


def proofs_of(said: Utterance, names: Gazetteer) -> list[Proof]:
    """What the corrections of an utterance prove: those of the LLM stage, and sure ones of the phonetic stage."""
    found: list[Proof] = []
    for correction in said.corrections:
        is_sure = correction.stage == "phonetic" and correction.score >= _LEAST_PHONETIC_SCORE
        if correction.stage != "llm" and not is_sure:
            continue
        name = _spelled(words(correction.after), names)
        heard = as_heard(correction.before)
        if name is not None and objection(heard, name.entity_id, names) is None:
            found.append(
                Proof(
                    heard,
                    name.entity_id,
                    "llm" if correction.stage == "llm" else "phonetic",
                    correction.reason,
                    said.id,
                )
            )
    return found


def _spelled(spoken: Sequence[Word], names: Gazetteer) -> Name | None:
    """The name that all these words spell together."""
    if not spoken:
        return None
    ways = names.spelled_from(spoken, 0)
    return next((name for last, name in ways if last == len(spoken) - 1 and name.kind != "learned"), None)
