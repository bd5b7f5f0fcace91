"""Rules for learning wrong forms of names. A learned form is replaced wherever it occurs.

A form is refused if it consists of stop words, is a name of the campaign itself (in any case, spacing or inflection),
contains another name, is too short, or is made of ordinary words that the campaign's own text uses. Other forms of
ordinary words need more proof, and the DM's review of what they would rewrite.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from glyphoxa.domain.errors import InvalidInput, counted
from glyphoxa.domain.heard import UNSURE, Utterance
from glyphoxa.domain.ids import EntityId, SpeakerId, UtteranceId
from glyphoxa.language.facts import Names
from glyphoxa.language.language_data import Vocabulary, lexicon
from glyphoxa.language.words import Word, fold, words
from glyphoxa.names.evidence import confidences_of
from glyphoxa.names.gazetteer import MIN_LENGTH_RATIO, Gazetteer, likeness
from glyphoxa.names.naming import Name, looks_like_a_name

# When a wrong form ("Blue Crabin") is replaced by a name ("Vukradin") without review.
#
# Each step in the history of a wrong form is an event of the world (`FormHeard`). The status of each pair of form and
# name is derived from the steps that are not undone or taken back with their utterance:
#
#     suggested --enough proofs--> active          and back, on evidence against it
#     any state --the DM confirms--> active
#     any state --the DM rejects--> rejected       permanently: it is not suggested again
#     undone: only steps against it are left
#
# 1. The DM's last decision overrides all proofs.
# 2. Otherwise a pair becomes active by proofs of enough weight from different utterances, if there is no
#    evidence against it and the form was never proved for another name.
# 3. The phonetic stage repeats itself: its proofs count, but never make a pair active alone.
# 4. What only one player has typed is stored for the DM to see: it neither activates nor blocks a pair.
# 5. One form stands for one name at a time. Confirming it for another name is an error.
# 6. A history stays short: repeated proofs that change nothing are only counted.


State = Literal["suggested", "active", "rejected", "undone"]
StepKind = Literal["proved", "disproved", "confirmed", "rejected", "undone"]
Witness = Literal["dm", "llm", "phonetic", "spelled", "said", "typed", "talk"]
"""Source of a step: the DM; a stage of the correction; a player who spelled the name out or repeated it; a single
player's typed line; other utterances in which the words have their ordinary meaning."""

Effect = Literal["added", "counted"]
"""Whether a new step becomes part of the history, or only counts as another utterance."""

DECISIONS: tuple[StepKind, ...] = ("confirmed", "rejected")
_WEIGHTS: Mapping[Witness, int] = {"spelled": 2, "said": 1, "llm": 1, "phonetic": 1}
_ENOUGH = 2
ENOUGH_OF_ORDINARY_WORDS = 3
MAX_UTTERANCES = 20
_MAX_PROOFS = 20
"""Maximum proofs of one pair by one witness. More would not change its status."""


@dataclass(frozen=True, slots=True)
class FormHeard:
    """A step in the history of a wrong form: an event of the world that changes no entity and no fact.

    The entity need not exist: a name that leaves a campaign and comes back is still known by its wrong forms.

    Attributes:
        heard: The form, folded: letters and digits only.
        as_heard: The form as it was heard.
        entity: The name that the form was linked to.
        why: A short explanation for the DM.
        utterance: Where the form was heard, or the evidence against it.
        is_ordinary: All words of the form are in a dictionary.
    """

    heard: str
    as_heard: str
    entity: EntityId
    kind: StepKind
    by: Witness
    why: str = ""
    utterance: UtteranceId | None = None
    is_ordinary: bool = False

    def failed_precondition(self, state: object) -> str | None:
        return None

    def effect(self, change: object) -> None:
        pass

    def in_words(self, names: Names) -> str:
        return f"{self.kind}: {self.as_heard!r} means {names.called(self.entity)}"


@dataclass(frozen=True, slots=True)
class PairStatus:
    """Status of a pair of form and name.

    Attributes:
        count: How often the form was heard for this name, as far as detected.
        utterances: Where, latest last; the last twenty.
    """

    state: State
    count: int
    utterances: tuple[UtteranceId, ...]

    def heard_again(self, n: int, utterances: Sequence[UtteranceId]) -> PairStatus:
        """Add `n` utterances without a step, of which the last are given."""
        latest = tuple(dict.fromkeys((*self.utterances, *utterances)))[-MAX_UTTERANCES:]
        return replace(self, count=self.count + n, utterances=latest)


@dataclass(frozen=True, slots=True)
class LearnedName:
    """A wrong form and a name that it was linked to.

    Attributes:
        heard: The form as it was last heard.
        name: The correct spelling; None if the entity is not (or no longer) in the graph.
        why: The reasons for and against the form's links to names, with their source; latest first.
    """

    heard: str
    entity_id: EntityId
    name: str | None
    status: PairStatus
    why: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """The correct spelling; the entity's id if there is none."""
        return self.name or self.entity_id


@dataclass(frozen=True, slots=True)
class Happened:
    """A step of a form's history, or the undoing of one.

    Attributes:
        seq: Number of the event.
        at_ms: Milliseconds since the Unix epoch.
        name: See `LearnedName`.
    """

    seq: int
    at_ms: int
    name: str | None
    step: FormHeard

    @property
    def called(self) -> str:
        """See `LearnedName.called`."""
        return self.name or self.step.entity


def statuses(steps: Sequence[FormHeard]) -> dict[EntityId, PairStatus]:
    """Status of a form for each name that it is linked to. `steps` is its history, in order, without undone steps."""
    enough = ENOUGH_OF_ORDINARY_WORDS if any(step.is_ordinary for step in steps) else _ENOUGH
    verdicts = _verdicts(steps)
    supported = {
        step.entity
        for step in steps
        if verdicts.get(step.entity) != "rejected"
        and (step.kind == "confirmed" or (step.kind == "proved" and step.by != "typed"))
    }
    found: dict[EntityId, PairStatus] = {}
    for entity in dict.fromkeys(step.entity for step in steps):
        of_pair = [step for step in steps if step.entity == entity]
        state: State = "rejected" if verdicts.get(entity) == "rejected" else "active"
        if entity not in verdicts:
            state = _state(of_pair, enough=enough, is_contested=len(supported) > 1)
        shown = (step.utterance for step in of_pair if step.kind in ("proved", "confirmed"))
        utterances = tuple(dict.fromkeys(utterance for utterance in shown if utterance is not None))
        confirmed_unheard = any(step.kind == "confirmed" for step in of_pair) and not utterances
        found[entity] = PairStatus(state, len(utterances) + confirmed_unheard, utterances[-MAX_UTTERANCES:])
    return found


def active(steps: Sequence[FormHeard]) -> frozenset[EntityId]:
    """The entity whose name replaces the form, if any. Argument as for `statuses`."""
    return frozenset(entity for entity, status in statuses(steps).items() if status.state == "active")


def effect_of(history: Sequence[FormHeard], step: FormHeard) -> Effect | None:
    """Effect of a step; None for a repetition, and for proofs of what the DM has rejected.

    Proofs beyond the maximum, and the phonetic stage's proofs for a pair that is active or decided, are only counted,
    if they show the form in a new utterance, as far as the history tells.

    Raises:
        InvalidInput: It confirms a form that the DM has confirmed for another name.
    """
    verdicts = _verdicts(history)
    verdict = verdicts.pop(step.entity, None)
    if step.kind in ("proved", "disproved"):
        if verdict == "rejected":
            return None
        same_name = [old for old in history if old.entity == step.entity]
        alike = [old for old in same_name if (old.kind, old.by) == (step.kind, step.by)]
        is_repeated = len(alike) >= _MAX_PROOFS or any(old.utterance == step.utterance for old in alike)
        if not is_repeated and (step.by != "phonetic" or (verdict is None and step.entity not in active(history))):
            return "added"
        is_new = step.utterance is not None and all(old.utterance != step.utterance for old in same_name)
        return "counted" if step.kind == "proved" and is_new else None
    if step.kind == "confirmed":
        for other, decided in verdicts.items():
            if decided == "confirmed":
                raise AlreadyTaken(other)
    return "added" if verdict != step.kind else None


class AlreadyTaken(InvalidInput):
    """A form was already confirmed for another name.

    Attributes:
        entity_id: The entity of that name.
    """

    def __init__(self, entity_id: EntityId) -> None:
        super().__init__(f"this is already confirmed for {entity_id!r}: reject or undo that first")
        self.entity_id = entity_id


def _verdicts(steps: Iterable[FormHeard]) -> dict[EntityId, StepKind]:
    """The DM's last decision on each name."""
    return {step.entity: step.kind for step in steps if step.kind in DECISIONS}


def _state(of_pair: Sequence[FormHeard], *, enough: int, is_contested: bool) -> State:
    """The state of a pair that the DM has not decided on."""
    proofs = [step for step in of_pair if step.kind == "proved"]
    if not proofs:
        return "undone"
    if is_contested or len(proofs) < len(of_pair):
        return "suggested"
    # An utterance counts once, with its strongest witness.
    weights: dict[UtteranceId | None, int] = {}
    for proof in proofs:
        weights[proof.utterance] = max(weights.get(proof.utterance, 0), _WEIGHTS.get(proof.by, 0))
    is_circular = all(proof.by == "phonetic" for proof in proofs)
    return "active" if sum(weights.values()) >= enough and not is_circular else "suggested"


_FEWEST_LETTERS = 3
_MAX_WORDS = 8
_MAX_LETTERS = 100
_MIN_PHONETIC_SCORE = 0.85


@dataclass(frozen=True, slots=True)
class Uses:
    """Known ordinary uses of a form's words.

    Attributes:
        written: Places in the campaign's own text.
        spoken: Utterances in which they were left unchanged, misheard or not, without those in `meant`.
        meant: Utterances that meant a name by them.
    """

    written: int = 0
    spoken: int = 0
    meant: int = 0


def as_heard(text: str) -> str:
    """Normalise a form: its words with single spaces, without punctuation and possessive ending.

    >>> as_heard(" elder  nacks's, ")
    'elder nacks'
    """
    spoken = words(text)
    return " ".join([*(word.text + word.tail for word in spoken[:-1]), *(word.text for word in spoken[-1:])])


def form_of(text: str) -> tuple[str, str]:
    """Return a form folded, and as it was heard: the first two fields of `FormHeard`."""
    heard = as_heard(text)
    return fold(heard), heard


def is_ordinary(heard: str, vocabulary: Vocabulary) -> bool:
    """Whether all its words are in a dictionary ("don bringer"). True without a word list."""
    if not vocabulary.is_known:
        return True
    return all(
        vocabulary.is_ordinary(word.folded) or vocabulary.is_proper(word.folded) or len(word.folded) < 2
        for word in words(heard)
    )


def objection(heard: str, entity: EntityId, names: Gazetteer, *, uses: Uses | None = None) -> str | None:
    """Why a form must not be learned for a name of `names`, as a predicate about the form; None if it may."""
    if (length := too_short_or_long(heard)) is not None:
        return length
    spoken = words(heard)
    if all(word.folded in names.vocabulary.stop for word in spoken):
        return "consists only of very common words"
    if (taken := names.spelled(heard)) is not None:
        same = "this name, but for case, spaces or an ending" if taken.entity_id == entity else "a name itself"
        return f"is {same} ({taken.text})"
    # The form is replaced by the entity's own name, so other names in it would be lost.
    own = "" if (entry := names.entry(entity)) is None else fold(entry.name)
    for mention in names.mentions_in(spoken):
        held = mention.name
        # "Bill of Saltmere" for "Bell of Saltmere": the town's name is part of both.
        belongs = held.joined in own and held.joined != own
        if held.kind in ("name", "alias") and not held.is_ordinary and not belongs:
            return f"contains the name {held.text}"
    if uses is not None and uses.written and is_ordinary(heard, names.vocabulary):
        return f"occurs in the campaign's own text ({uses.written} times)"
    return None


def too_short_or_long(heard: str) -> str | None:
    """Why this cannot be a wrong form of any name, as a predicate; None if it can."""
    if sum(char.isalpha() for char in fold(heard)) < _FEWEST_LETTERS:
        return f"has fewer than {_FEWEST_LETTERS} letters"
    if len(words(heard)) > _MAX_WORDS:
        return f"has more than {_MAX_WORDS} words"
    if len(as_heard(heard)) > _MAX_LETTERS:
        return f"has more than {_MAX_LETTERS} letters"
    return None


def warning(heard: str, vocabulary: Vocabulary, uses: Uses) -> str | None:
    """Return a warning for the DM if the form consists of ordinary words."""
    if not uses.spoken or not is_ordinary(heard, vocabulary):
        return None
    times = counted(uses.spoken, "earlier utterance")
    return f"{heard!r} is made of ordinary words, which occur in {times}: all such uses would be rewritten"


def proofs_of(said: Utterance, names: Gazetteer) -> list[FormHeard]:
    """The proofs in an utterance's corrections: those of the LLM stage, and certain ones of the phonetic stage."""
    found: list[FormHeard] = []
    for correction in said.corrections:
        is_sure = correction.stage == "phonetic" and correction.score >= _MIN_PHONETIC_SCORE
        if correction.stage != "llm" and not is_sure:
            continue
        name = names.spelled(correction.after)
        key, heard = form_of(correction.before)
        if name is not None and objection(heard, name.entity_id, names) is None:
            by: Witness = "llm" if correction.stage == "llm" else "phonetic"
            found.append(FormHeard(key, heard, name.entity_id, "proved", by, correction.reason, said.id))
    return found


# Weighing proofs of players.
#
# A typed line can be invented, and a learned form is replaced in the whole campaign. So what only one player has typed
# is stored for the DM to see, without weight. It gets the weight of a spoken proof as soon as another player has
# said or typed the same about the same form.


@dataclass(slots=True)
class TypedClaims:
    """Collects the proofs of one table.

    Args:
        most: Maximum number of remembered pairs, and of pending proofs of each; the oldest are dropped.
    """

    most: int = 200
    _of: OrderedDict[tuple[str, EntityId], dict[SpeakerId, list[FormHeard]]] = field(default_factory=OrderedDict)
    """Pending proofs of each pair, by speaker."""

    def weighed(self, said: Utterance, proofs: Iterable[FormHeard]) -> list[FormHeard]:
        """The proofs of an utterance with their weighted witness, and typed proofs that it corroborates."""
        return [weighed for proof in proofs for weighed in self._weighed(said, proof)]

    def _weighed(self, said: Utterance, proof: FormHeard) -> list[FormHeard]:
        pair = proof.heard, proof.entity
        claims = self._of.setdefault(pair, {})
        self._of.move_to_end(pair)
        while len(self._of) > self.most:
            self._of.popitem(last=False)
        claimed = claims.setdefault(said.speaker_id, [])
        if said.typed and len(claims) == 1:
            claimed[:] = [*claimed, proof][-self.most :]
            return [replace(proof, by="typed")]
        borne_out = [pending for each in claims.values() for pending in each]
        claims.update((speaker, []) for speaker in claims)
        return [*borne_out, proof]


# Detects that a speaker repeats a misheard name, and finds the wrong form.
#
# These count as a repetition:
#
# - spelling: "E L D R I N A X", "E-L-D-R ..." (if it is the prefix of a single name), "Eldrinax, with an X";
# - contrast with the wrong form: "Eldrinax, not elder nacks";
# - correction: "No, Eldrinax.", "I mean Eldrinax", "you mean Eldrinax?".
#
# The name must be correct in the raw transcript: one that a correction inserted proves nothing. The wrong form is
# searched in the last few utterances: adjacent words that are not a name, were not corrected, sound like the name, and
# are odd (in no dictionary, a capital, or the recogniser was unsure). Ordinary words ("elder nacks") must sound nearly
# the same. The latest utterance with candidates decides, and in it the most similar words. No candidate, no proof.

_FEWEST_SPELLED = 3
_SEARCHED = 3
"""Previous utterances that may hold a wrong form; they are at most `_WITHIN_MS` old."""
_WITHIN_MS = 60_000
_MIN_LIKENESS = {"odd": 0.58, "ordinary": 0.80}

_LEXICON: Final = lexicon("names")
_BEFORE_A_NAME: Final = _LEXICON.compile(
    r"(?:^|[.!?,;:…-]\s*)(?:{no}(?:[\s,.!-]+{it_is})*|{means})[\s,.:!-]*$", flags=re.IGNORECASE
)
_WITH_A_LETTER: Final = _LEXICON.compile(r"^[\s,.-]*{with_a_letter}", flags=re.IGNORECASE)
_NOT: Final = _LEXICON.compile(r"[\s,.;-]*{not}\s+", flags=re.IGNORECASE)
_LETTER_GAP = re.compile(r"[\s.,\-–·]{1,4}")


@dataclass(frozen=True, slots=True)
class _Again:
    """A repeated name. `instead` is the position of the contrasted words, if any."""

    name: Name
    by: Witness
    why: str
    start: int
    end: int
    instead: tuple[int, int] | None = None


@dataclass
class SpelledOut:
    """Processes all utterances of one table."""

    _lately: deque[Utterance] = field(default_factory=lambda: deque(maxlen=_SEARCHED))

    def heard(self, said: Utterance, names: Gazetteer) -> list[FormHeard]:
        """Process a player's utterance, in order; return what it proves about earlier ones."""
        if said.npc_id is not None:
            return []  # typed words are not misheard
        while self._lately and said.at_ms - self._lately[0].at_ms > _WITHIN_MS:
            self._lately.popleft()
        proofs = [proof for again in _said_again(said.raw_text, names) if (proof := self._proof(again, said, names))]
        self._lately.append(said)
        return proofs

    def _proof(self, again: _Again, said: Utterance, names: Gazetteer) -> FormHeard | None:
        places = [(said, again.instead)] if again.instead is not None else [(said, (0, again.start))]
        if again.instead is None:
            places += [(earlier, (0, len(earlier.raw_text))) for earlier in reversed(self._lately)]
        for where, (start, end) in places:
            best = max(_alike(where, start, end, again, names), default=None)
            if best is not None:
                return FormHeard(*form_of(best[1]), again.name.entity_id, "proved", again.by, again.why, where.id)
        return None


def _said_again(raw: str, names: Gazetteer) -> Iterator[_Again]:
    spoken = words(raw)
    yield from _spelled_by_letters(raw, spoken, names)
    for mention in names.mentions_in(spoken):
        name, start, end = mention.name, mention.start, mention.end
        if name.is_ordinary and len(name.words) == 1:
            continue  # "No, hope is all we have."
        if denied := _NOT.match(raw, end):
            clause = re.search(r"[.!?,;]|$", raw[denied.end() :])
            stop = denied.end() + (clause.start() if clause else 0)
            yield _Again(name, "spelled", "contrasted with it", start, end, (denied.end(), stop))
        elif _WITH_A_LETTER.search(raw[end:]):
            yield _Again(name, "spelled", "spelled out", start, end)
        elif _BEFORE_A_NAME.search(raw[:start]) and re.match(r"\s*(?:[.!?,;…-]|$)", raw[end:]):
            yield _Again(name, "said", "said again", start, end)


def _spelled_by_letters(raw: str, spoken: Sequence[Word], names: Gazetteer) -> Iterator[_Again]:
    at = 0
    while at < len(spoken):
        last, letters = at, ""
        while last < len(spoken) and _is_letter(spoken[last], raw, spoken[last - 1] if last > at else None):
            letters += spoken[last].folded
            last += 1
        if len(letters) >= _FEWEST_SPELLED and (name := _begun_by(letters, names)) is not None:
            yield _Again(name, "spelled", "spelled out", spoken[at].start, spoken[last - 1].end)
        at = max(last, at + 1)


def _is_letter(word: Word, raw: str, before: Word | None) -> bool:
    if len(word.folded) != 1 or not word.folded.isalpha() or word.tail:
        return False
    return before is None or _LETTER_GAP.fullmatch(raw[before.end : word.start]) is not None


def _begun_by(letters: str, names: Gazetteer) -> Name | None:
    """The name that these letters spell, or the only one that begins with them."""
    whole = names.by_joined.get(letters)
    if whole is not None and whole.kind != "learned":
        return whole
    begun = [name for name in names.names if name.kind != "learned" and name.joined.startswith(letters)]
    entities = {name.entity_id for name in begun}
    return begun[0] if len(entities) == 1 else None


def _alike(where: Utterance, start: int, end: int, again: _Again, names: Gazetteer) -> Iterator[tuple[float, str]]:
    """Runs of words in this part of the raw text that may be the misheard name, with their likeness, 0 to 1."""
    raw, wanted = where.raw_text, again.name
    inside = [word for word in words(raw) if word.start >= start and word.end <= end]
    confidences = dict(zip(inside, confidences_of(inside, where.words), strict=True))
    explained = [(c.start, c.end) for c in where.corrections if c.after]
    explained += [(mention.start, mention.end) for mention in names.mentions(raw)]
    for first in range(len(inside)):
        joined = ""
        for last in range(first, min(first + names.widest, len(inside))):
            word = inside[last]
            if last > first and not word.joins:
                break
            joined += word.folded
            if any(word.start < stop and begin < word.end for begin, stop in explained):
                break
            window = inside[first : last + 1]
            if not _fits(window, joined, wanted, names):
                continue
            alike = likeness(joined, names.sounder(joined), wanted)
            is_odd = any(_is_odd(word, confidences[word], names.vocabulary) for word in window)
            if alike < _MIN_LIKENESS["odd" if is_odd else "ordinary"]:
                continue
            heard = as_heard(raw[window[0].start : window[-1].end])
            if objection(heard, wanted.entity_id, names) is None:
                yield alike, heard


def _fits(window: Sequence[Word], joined: str, wanted: Name, names: Gazetteer) -> bool:
    if min(len(joined), len(wanted.joined)) < MIN_LENGTH_RATIO * max(len(joined), len(wanted.joined)):
        return False
    stop = names.vocabulary.stop
    edges = ((window[0].folded, wanted.words[0]), (window[-1].folded, wanted.words[-1]))
    return all(word not in stop or word == edge for word, edge in edges)


def _is_odd(word: Word, confidence: float | None, vocabulary: Vocabulary) -> bool:
    is_doubted = confidence is not None and confidence < UNSURE
    return word.folded not in vocabulary.stop and (is_doubted or looks_like_a_name(word, vocabulary))
