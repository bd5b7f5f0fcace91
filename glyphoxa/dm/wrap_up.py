"""The wrap-up of a session: the lines most worth keeping, each with a fact to accept, reword or drop.

A line with findings that need review proposes these; another one proposes its best sentence, quoted, as a note about
the person or place that it concerns. A logistic regression tells what a sentence is worth. Its weights are data,
`wrap_up.json`, written by `python -m benchmarks.sayings`. To decide on such a line, it is first stated as a finding of
that line: so it goes with the line, nothing that rests on a dropped one is proposed again, and an undone decision
leaves it to review.

A proposal is named by the number of its line, which stays the same whatever else is decided.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, NamedTuple

from glyphoxa.chronicle.rules_extractor import without_called
from glyphoxa.chronicle.salience import Line, SalienceJudge, names_in
from glyphoxa.chronicle.statements import FIRST_PERSON, sentences_of
from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.chronicle.talk import NumberedUtterance, tellable
from glyphoxa.chronicle.utterance_nodes import said_in_words
from glyphoxa.dm.entities import NameResolver, storable
from glyphoxa.dm.handouts import PlayersView
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, FactId, UtteranceId
from glyphoxa.domain.knowledge import NEVER, Claim, EndedFact, Fact, Provenance, Visibility, witnessed_by
from glyphoxa.judgement.safety import Judged
from glyphoxa.language.sentences import shortened
from glyphoxa.language.text import Text, log_odds, shipped, stem_of_content
from glyphoxa.language.words import fold
from glyphoxa.transcript.sessions import SummarySentence
from glyphoxa.world.event_kinds import FactConfirmed, FactRejected, FactReplaced, FactStated
from glyphoxa.world.event_log import Cause

MOST_LINES: Final = 40
"""Lines of a session that are proposed, with those already accepted: more are not read in five minutes."""
NOTE: Final = "note"
_NUMBERS: Final = re.compile(r"(\d{1,9})(?:([a-z])|-(\d{1,9}))?")
_FEWEST_WORDS: Final = 3
"""Different words of a sentence that says something."""
_ENDS: Final = (".", "!", "”", '"', ")", "'")
_ALIKE: Final = 0.6
"""Share of the words of a sentence that a better one or a fact has, too: it is told."""
_LATELY: Final = 12
"""Lines for which somebody outside the story may speak as whom that one named."""
_AROUND: Final = 10
"""Lines before and after a sentence."""
_SHARE_AROUND: Final = 0.4
_MOST_CHARS: Final = 400
_QUOTE: Final = '"'
_OF_LINES: Final = ("an answer", "quoted speech", "a sound", "the players' world")
"""Features of salience that are signs of worth, too."""


@dataclass(frozen=True, slots=True)
class FactProposal:
    """A fact to decide on.

    Attributes:
        name: Number of its line, with a letter for a second finding of the line: "12", "12b".
        heard_by: Who may know it once it is accepted.
        finding: The finding that needs review; None: the line itself is proposed.
    """

    name: str
    line: NumberedUtterance
    claim: Claim
    heard_by: Visibility
    finding: Fact | None = None

    def stated(self) -> tuple[list[FactStated], Cause]:
        """Return the claim as a finding of the line."""
        said, number = self.line.utterance, self.line.ordinal
        provenance = Provenance(
            session_id=said.session_id,
            utterance_id=said.id,
            ordinal=number,
            at_ms=said.at_ms,
            reason=f"{said.speaker_name} said so",
            accept_at=NEVER,
            origin="dm",
        )
        cause = Cause("talk", said.at_ms, said.session_id, number, said.id)
        return [FactStated(self.claim, provenance, self.heard_by)], cause


@dataclass(frozen=True, slots=True)
class LineDecision:
    """A decision about proposals of a session.

    Attributes:
        what: "confirm", "reject"; of one proposal: "edit" with the new `words`, "to" with a name.
        numbers: See `chosen`.
    """

    what: str
    numbers: str
    words: str = ""

    def event(self, fact: FactId, claim: Claim, resolver: NameResolver) -> FactConfirmed | FactRejected | FactReplaced:
        """Return the decision about one fact.

        Raises:
            NotFound: There is nobody of that name.
            InvalidInput: There is no such decision, or it has no words.
        """
        words = " ".join(self.words.split())
        match self.what:
            case "confirm":
                return FactConfirmed(fact)
            case "reject":
                return FactRejected(fact)
            case "to":
                return FactReplaced(fact, replace(claim, subject=resolver.entity(words).id))
            case "edit" if words:
                predicate = claim.predicate if claim.object is None else NOTE
                return FactReplaced(fact, storable(Claim.attribute(claim.subject, predicate, words)))
            case "edit":
                raise InvalidInput("the fact is empty: write what is true")
        raise InvalidInput(f"unknown decision {self.what!r}; valid: confirm, reject, edit, to")


def chosen(numbers: str, proposals: Sequence[FactProposal]) -> list[FactProposal]:
    """Return the proposals that a DM names: "12,14b,20-25" or "all".

    Raises:
        InvalidInput: One of the numbers is none of theirs; the message lists these.
    """
    if fold(numbers) == "all":
        return [*proposals]
    found: dict[str, FactProposal] = {}
    for part in numbers.replace(" ", "").split(","):
        match = _NUMBERS.fullmatch(part)
        one = [] if match is None else [each for each in proposals if _is_meant(each, match)]
        if not one:
            names = ", ".join(each.name for each in proposals) or "none"
            raise InvalidInput(f"{part!r} is not proposed, or decided already; open: {names}")
        found |= {each.name: each for each in one}
    return [*found.values()]


def _is_meant(proposal: FactProposal, match: re.Match[str]) -> bool:
    first, _, last = match.groups()
    return int(first) <= proposal.line.ordinal <= int(last) if last else proposal.name == match.group()


class Remark(NamedTuple):
    """A sentence that was said.

    Attributes:
        text: Without stage directions, and after the sentence before it if that tells whom it is about.
        about: Whom it concerns; None: nobody known.
        signs: The input of the model of its worth, see `benchmarks.sayings`.
    """

    line: NumberedUtterance
    text: str
    about: EntityId | None
    signs: frozenset[str]


@dataclass(frozen=True, slots=True)
class WrapUp:
    """Makes the proposals of one session.

    Args:
        entities: Those that a fact may be about, by id.
        place_of: Returns where a line was said, for a speaker outside the story.
    """

    selection: LineSelection
    entities: Mapping[EntityId, Entity]
    place_of: Callable[[Utterance], EntityId | None]

    def proposals(
        self,
        said: Sequence[NumberedUtterance],
        judged: Mapping[int, Judged],
        facts: Sequence[Fact],
        ended: Iterable[EndedFact] = (),
    ) -> list[FactProposal]:
        """Return what is open, by subject, the most worth keeping first.

        Args:
            said: The session without retracted lines, in order.
            judged: The judgements by ordinal. Without one, the salience of a line decides.
            facts: All current facts of the campaign, and `ended` those that ended. What a current one says, or one
                that the DM reworded or rejected, is not proposed again.
        """
        resting = defaultdict[UtteranceId, list[Fact]](list)
        past = list(ended)
        for fact in sorted([*facts, *(each.fact for each in past)], key=lambda each: each.seq):
            if fact.provenance.utterance_id is not None and fact.claim.subject in self.entities:
                resting[fact.provenance.utterance_id].append(fact)
        current = {fact.id for fact in facts if fact.status == "pending"}
        decided = [*facts, *(each.fact for each in past if each.ended_as in ("rejected", "edited"))]
        told = [self._telling(str(fact.claim.content or "")) for fact in decided]
        worth, best = dict[UtteranceId, float](), dict[UtteranceId, Remark]()
        for odds, remark in sorted(self._worthy(said, judged), key=lambda each: -each[0]):
            line, telling = remark.line.utterance.id, self._telling(remark.text)
            is_told = any(len(telling & each) >= _ALIKE * len(telling) for each in told)
            if line not in best and line not in resting and not is_told:
                best[line] = remark
                told.append(telling)
            if line in best or line in resting:
                worth.setdefault(line, odds)
        for line, on_it in resting.items():
            if any(fact.id in current or fact.provenance.dm_confirmed for fact in on_it):
                worth.setdefault(line, -math.inf)
        found: dict[EntityId, list[FactProposal]] = {}
        open_ = [each for each in said if each.utterance.id in worth]
        for each in sorted(open_, key=lambda each: -worth[each.utterance.id])[:MOST_LINES]:
            line = each.utterance.id
            for proposal in self._of_line(each, resting.get(line, ()), current, best.get(line)):
                found.setdefault(proposal.claim.subject, []).append(proposal)
        return [each for group in found.values() for each in group]

    def _worthy(
        self, said: Sequence[NumberedUtterance], judged: Mapping[int, Judged]
    ) -> Iterator[tuple[float, Remark]]:
        """Yield the whole sentences that may be learned, about somebody or something known, with what they are worth.

        That is the log odds of the sentence and a share of those around it, as story and idle talk come in runs.
        """
        told = {line.id for line in tellable(each.utterance for each in said)}
        judge, learned = SalienceJudge(self.selection.language, self.selection.names()), set[int]()
        for each in said:
            salience, verdict = judge.judge(each.utterance.text), judged.get(each.ordinal)
            is_kept = salience.is_kept if verdict is None else verdict.judgement.may_extract
            if each.utterance.id in told and is_kept and not salience.asks_to_forget:
                learned.add(each.ordinal)
        weights = shipped(__package__, "wrap_up")
        rated = [(log_odds(remark.signs, weights), remark) for remark in self.remarks(said)]
        lines = [remark.line.ordinal for _, remark in rated]
        for odds, remark in rated:
            text, line = remark.text, remark.line.ordinal
            around = rated[bisect(lines, line - _AROUND) : bisect(lines, line + _AROUND)]
            is_whole = text[:1].isalnum() and text.endswith(_ENDS) and "--" not in text
            says_something = is_whole and len(self._telling(text)) >= _FEWEST_WORDS
            if line in learned and says_something and remark.about is not None:
                yield odds + _SHARE_AROUND * fmean(each for each, _ in around), remark

    def aloud(
        self,
        said: Sequence[NumberedUtterance],
        facts: Sequence[Fact],
        ended: Iterable[EndedFact],
        players: PlayersView,
        guarded: Collection[FactId],
    ) -> list[str]:
        """Return what players may read of lines of which the DM accepted a fact, or the DM's words for it.

        A line with a `guarded` fact is not quoted.
        """
        edited = {each.superseded_by for each in ended if each.ended_as == "edited"}
        unquoted = {fact.provenance.utterance_id for fact in facts if fact.id in guarded}
        words = defaultdict[UtteranceId | None, dict[str, None]](dict)
        for fact in facts:
            line = fact.provenance.utterance_id
            own = str(fact.claim.content or "") if fact.claim.predicate == NOTE or fact.id in edited else ""
            is_accepted = fact.status == "accepted" and fact.provenance.dm_confirmed and fact.id not in guarded
            if is_accepted and (own or line not in unquoted):
                words[line][own] = None
        told = [
            SummarySentence(text, (each.utterance.id,))
            for each in players.shown(each for each in said if each.utterance.id in words)
            for own in words[each.utterance.id]
            if (text := players.readable("", own or self.selection.quote(each.utterance).text, ""))
        ]
        return [each.text for each in self.selection.compress(told)]

    def remarks(self, said: Sequence[NumberedUtterance]) -> Iterator[Remark]:
        """Yield the sentences of a session, each with whom it concerns.

        That is its speaker if it says "I", else the one whom it names, else its speaker. For a speaker outside the
        story, "I" is who was named last there, and somebody comes before a place; what names nobody concerns what the
        same line or the one before named last, else the place where it is said.
        """
        language, known = self.selection.language, self.selection.names()
        ids = {fold(name): id_ for id_, of in self.entities.items() for name in of.names}
        judge, last, narrated, narrated_at = SalienceJudge(language, known), None, None, 0
        for each in said:
            spoken, speaker = each.utterance, ids.get(fold(each.utterance.speaker_name))
            person = narrated if speaker is None and each.ordinal - narrated_at < _LATELY else None
            of_line = judge.features(Line(spoken.text)).signs
            spans, before, near, last = names_in(spoken.text, language, known), "", last, None
            for sentence in sentences_of(spoken.text, without_called(spoken.text, [*spans])):
                text = " ".join(sentence.text.split())
                text = text.strip(_QUOTE) if text.count(_QUOTE) % 2 else text
                named = [EntityId(key) for key in sentence.keys if EntityId(key) in self.entities]
                is_own = FIRST_PERSON.search(sentence.marked) is not None
                is_he = not named and sentence.after("").keys != sentence.keys
                is_meant = person is not None and (is_he or (is_own and speaker is None))
                whom = [person] if is_meant else sorted(named, key=lambda id_: self.entities[id_].type == "location")
                if speaker is not None and (is_own or len({*whom}) != 1):
                    whom = [speaker]
                signs = {
                    _sized("words", len(text.split()), (4, 7, 10, 14, 19, 26, 36)),
                    _sized("known", len({*named}), (1, 2)),
                    _sized("new", len({*sentence.keys} - {*named}), (1, 2)),
                    *(f"says {stem_of_content(word)}" for word in Text.of(sentence.marked).spoken),
                    f"names its speaker: {speaker in named}",
                    *(f"line with {sign}" for sign in _OF_LINES if of_line[sign]),
                }
                whole = f"{before} {text}".strip() if is_he or not whom else text
                told = [EntityId(span.name) for span in spans if spoken.text[span.start : span.end] in sentence.text]
                others = [id_ for id_ in told if id_ in self.entities and self.entities[id_].type != "player"]
                if others:
                    near = last = others[-1]
                yield Remark(each, whole, whom[0] if whom else near or self.place_of(spoken), frozenset(signs))
                people = [id_ for id_ in named if self.entities[id_].type == "npc"]
                before = text if others else ""
                person = people[0] if people else person
                if people and speaker is None:
                    narrated, narrated_at = people[0], each.ordinal

    def _telling(self, text: str) -> frozenset[str]:
        return Text.of(text).telling(self.selection.language)

    def _of_line(
        self, line: NumberedUtterance, resting: Sequence[Fact], current: set[FactId], best: Remark | None
    ) -> Iterator[FactProposal]:
        said, number = line.utterance, str(line.ordinal)
        for letter, fact in zip(["", *"bcdefghijklmnopqrstuvwxyz"], resting, strict=False):
            if fact.id in current and fact.status == "pending":
                yield FactProposal(f"{number}{letter}", line, fact.claim, fact.visibility, fact)
        if best is not None and best.about is not None:
            heard = witnessed_by(sorted(said.witnesses), at_ms=said.at_ms, utterance=said.id)
            quote = said_in_words(said.speaker_name, shortened(best.text, _MOST_CHARS), self.selection.language)
            yield FactProposal(number, line, Claim.attribute(best.about, NOTE, quote), heard)


def _sized(name: str, size: float, steps: Sequence[float]) -> str:
    return f"{name} {bisect(steps, size)}"
