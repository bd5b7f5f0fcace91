"""What may be learned as a wrong form of a name, and what must never be: a learned form is replaced wherever it stands.

A form is refused when it is nothing but common little words, is a name of the campaign itself (in whatever case,
spacing or inflection), holds another name, is too short, or is made of ordinary words that the campaign's own text
uses as themselves. Forms of ordinary words that are left need more proof, and a look by the DM at what they would
rewrite.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, SpeakerId, UtteranceId
from glyphoxa.language.vocabulary import Vocabulary
from glyphoxa.language.words import Word, fold, words
from glyphoxa.names.gazetteer import Gazetteer, Name

# When a wrong form ("Blue Crabin") is taken for a name ("Vukradin") without asking again.
#
# A wrong form has a history of steps, which are only ever added. Where each pair of form and name stands is read
# from that history, so undoing a step is leaving it out:
#
#     suggested --enough proofs--> active          and back, when something speaks against it
#     any state --the DM confirms--> active
#     any state --the DM rejects--> rejected       for good: it is not suggested again
#     undone: no step is left that speaks for it or against it
#
# 1. What the DM decided last counts, whatever was proved.
# 2. Without the DM a pair becomes active by proofs of enough weight from different utterances, if nothing was
#    said against it and the form was never proved for another name.
# 3. The phonetic stage repeats itself: its proofs are counted, but never make a pair active on their own.
# 4. What one player alone has typed is kept for the DM to see: it makes no pair active, and holds none up.
# 5. One form stands for one name at a time. A second DM who confirms it for another name is told so.
# 6. A history stays short: what is proved again and again, and changes nothing any more, is only counted.


State = Literal["suggested", "active", "rejected", "undone"]
StepKind = Literal["proved", "disproved", "confirmed", "rejected", "undone"]
Witness = Literal["dm", "llm", "phonetic", "spelled", "said", "typed", "talk"]
"""Who says so: the DM; a stage of the correction; somebody who spelled the name out; somebody who said it again; one
player alone, who typed it; other talk, in which the words stand as themselves."""

DECISIONS: tuple[StepKind, ...] = ("confirmed", "rejected")
_WEIGHTS: Mapping[Witness, int] = {"spelled": 2, "said": 1, "llm": 1, "phonetic": 1}
_ENOUGH = 2
ENOUGH_OF_ORDINARY_WORDS = 3
MOST_UTTERANCES = 20
_MOST_PROOFS = 20
"""Of one pair by one witness. More would not change where it stands."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened to a wrong form.

    Attributes:
        id: Later steps have higher ones; 0 for one that is not kept yet.
        entity_id: The name that the form was said to stand for.
        why: Short words for the DM.
        at_ms: Milliseconds since the Unix epoch.
        utterance: Where the form was heard, or what speaks against it.
        is_ordinary: The form is made of dictionary words only.
        undoes: The step that this one takes back.
    """

    kind: StepKind
    entity_id: EntityId
    by: Witness
    why: str
    at_ms: int
    id: int = 0
    utterance: UtteranceId | None = None
    is_ordinary: bool = False
    undoes: int | None = None


@dataclass(frozen=True, slots=True)
class PairStatus:
    """Where a pair of form and name stands.

    Attributes:
        count: How often the form was heard for this name, as far as that was noticed.
        utterances: Where, latest last; the last twenty.
    """

    state: State
    count: int
    utterances: tuple[UtteranceId, ...]


@dataclass(frozen=True, slots=True)
class LearnedName:
    """A wrong form and a name that it was linked to.

    Attributes:
        heard: The form as it was last heard.
        name: As it is written; None when the entity is not (or no longer) in the graph.
    """

    heard: str
    entity_id: EntityId
    name: str | None
    status: PairStatus


@dataclass(frozen=True, slots=True)
class Happened:
    """A step of some form's history. `name` as in `LearnedName`."""

    heard: str
    name: str | None
    step: Step


def statuses(steps: Sequence[Step]) -> dict[EntityId, PairStatus]:
    """Where one form stands with each name that it was ever linked to. `steps` is its whole history, in order."""
    left = effective(steps)
    enough = ENOUGH_OF_ORDINARY_WORDS if any(step.is_ordinary for step in left) else _ENOUGH
    supported = {
        step.entity_id for step in left if step.kind == "confirmed" or (step.kind == "proved" and step.by != "typed")
    }
    rejected = {entity for entity in supported if (last := _decision(left, entity)) and last.kind == "rejected"}
    return {
        entity: _status(
            [step for step in left if step.entity_id == entity],
            enough=enough,
            is_contested=len(supported - rejected) > 1,
        )
        for entity in dict.fromkeys(step.entity_id for step in steps)
    }


def effective(steps: Sequence[Step]) -> list[Step]:
    """The steps that were not taken back."""
    gone = {step.undoes for step in steps}
    return [step for step in steps if step.id not in gone and step.kind != "undone"]


def changes_something(history: Sequence[Step], step: Step) -> bool:
    """Whether a step is worth adding: saying the same again is not, nor are proofs of what the DM has rejected, more
    proofs than ever count, and what the phonetic stage says of a pair that is active or decided.

    Raises:
        InvalidInput: It confirms a form that the DM has confirmed for another name.
    """
    left = effective(history)
    last = _decision(left, step.entity_id)
    if step.kind in ("proved", "disproved"):
        if last is not None and last.kind == "rejected":
            return False
        alike = [old for old in left if (old.kind, old.entity_id, old.by) == (step.kind, step.entity_id, step.by)]
        if len(alike) >= _MOST_PROOFS or any(old.utterance == step.utterance for old in alike):
            return False
        return step.by != "phonetic" or not (last is not None or _is_active(history, step.entity_id))
    if step.kind == "confirmed":
        for other in dict.fromkeys(old.entity_id for old in left):
            status = _decision(left, other)
            if other != step.entity_id and status is not None and status.kind == "confirmed":
                raise AlreadyTaken(other)
    return last is None or last.kind != step.kind


def is_only_counted(history: Sequence[Step], step: Step) -> bool:
    """Whether a step that is not worth adding shows the form in an utterance where it was not yet heard for its name,
    as far as the history tells.
    """
    left = effective(history)
    last = _decision(left, step.entity_id)
    if step.kind != "proved" or step.utterance is None or (last is not None and last.kind == "rejected"):
        return False
    return not any(old.entity_id == step.entity_id and old.utterance == step.utterance for old in left)


class AlreadyTaken(InvalidInput):
    """A form was confirmed for another name before.

    Attributes:
        entity_id: Of that name.
    """

    def __init__(self, entity_id: EntityId) -> None:
        super().__init__(f"this was confirmed for {entity_id!r} before: reject or undo that first")
        self.entity_id = entity_id


def latest_decision(steps: Iterable[Step]) -> Step | None:
    """The DM's last decision that was not taken back: what undo takes back."""
    return next((step for step in reversed(effective(list(steps))) if step.kind in DECISIONS), None)


def _status(left: Sequence[Step], *, enough: int, is_contested: bool) -> PairStatus:
    utterances = tuple(
        dict.fromkeys(
            step.utterance for step in left if step.utterance is not None and step.kind in ("proved", "confirmed")
        )
    )
    confirmed_unheard = any(step.kind == "confirmed" for step in left) and not utterances
    return PairStatus(
        _state(left, enough=enough, is_contested=is_contested),
        len(utterances) + confirmed_unheard,
        utterances[-MOST_UTTERANCES:],
    )


def _is_active(history: Sequence[Step], entity: EntityId) -> bool:
    status = statuses(history).get(entity)
    return status is not None and status.state == "active"


def _state(left: Sequence[Step], *, enough: int, is_contested: bool) -> State:
    decision = next((step for step in reversed(left) if step.kind in DECISIONS), None)
    if decision is not None:
        return "active" if decision.kind == "confirmed" else "rejected"
    proofs = [step for step in left if step.kind == "proved"]
    if not proofs:
        return "undone"
    if is_contested or len(proofs) < len(left):
        return "suggested"
    # An utterance counts once, by its strongest witness.
    weights: dict[UtteranceId | None, int] = {}
    for proof in proofs:
        weights[proof.utterance] = max(weights.get(proof.utterance, 0), _WEIGHTS.get(proof.by, 0))
    is_circular = all(proof.by == "phonetic" for proof in proofs)
    return "active" if sum(weights.values()) >= enough and not is_circular else "suggested"


def _decision(left: Sequence[Step], entity: EntityId) -> Step | None:
    return next((step for step in reversed(left) if step.entity_id == entity and step.kind in DECISIONS), None)


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


# Whose word is taken for a wrong form of a name.
#
# A typed line can be made up, and a learned form is replaced for the whole campaign. So what one player alone has typed
# is kept for the DM to see, and weighs nothing. It weighs what it would have when spoken as soon as another player has
# said or typed the same of the same form.


_Pair = tuple[str, EntityId]


@dataclass(slots=True)
class _Claimed:
    speakers: set[SpeakerId] = field(default_factory=set)
    waiting: list[Proof] = field(default_factory=list)


@dataclass(slots=True)
class TypedClaims:
    """Listens to the proofs of one table.

    Args:
        most: Pairs of form and name that are remembered, and proofs of each that wait; the oldest go first.
    """

    most: int = 200
    _of: OrderedDict[_Pair, _Claimed] = field(default_factory=OrderedDict)

    def weighed(self, said: Utterance, proofs: Iterable[Proof]) -> list[Proof]:
        """What an utterance proves, each proof by the witness that it counts for; with it what others had typed and it
        bears out.
        """
        return [weighed for proof in proofs for weighed in self._weighed(said, proof)]

    def _weighed(self, said: Utterance, proof: Proof) -> list[Proof]:
        pair = ("".join(word.folded for word in words(proof.heard)), proof.entity_id)
        claimed = self._of.setdefault(pair, _Claimed())
        self._of.move_to_end(pair)
        while len(self._of) > self.most:
            self._of.popitem(last=False)
        claimed.speakers.add(said.speaker_id)
        if said.typed and len(claimed.speakers) == 1:
            claimed.waiting = [*claimed.waiting, proof][-self.most :]
            return [replace(proof, by="typed")]
        borne_out, claimed.waiting = claimed.waiting, []
        return [*borne_out, proof]
