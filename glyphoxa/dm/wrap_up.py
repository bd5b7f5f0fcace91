"""The wrap-up of a session: the lines most worth keeping, each with a fact to accept, reword or drop.

A line with findings that need review proposes these; another one proposes itself, quoted, as a note about the person or
place that it concerns. To decide on such a line, it is first stated as a finding of that line: so it goes with the
line, nothing that rests on a dropped one is proposed again, and an undone decision leaves it to review.

A proposal is named by the number of its line, which stays the same whatever else is decided.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.chronicle.rules_extractor import without_called
from glyphoxa.chronicle.salience import SalienceJudge, names_in
from glyphoxa.chronicle.statements import FIRST_PERSON
from glyphoxa.chronicle.summaries import MAX_LINE_CHARS, LineSelection
from glyphoxa.chronicle.talk import NumberedUtterance, tellable
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, FactId, UtteranceId
from glyphoxa.domain.judgement import Judged
from glyphoxa.domain.knowledge import NEVER, Claim, EndedFact, Fact, Provenance, Visibility, witnessed_by
from glyphoxa.language.new_names import NameFinder
from glyphoxa.language.sentences import sentence_spans
from glyphoxa.language.text import Text
from glyphoxa.language.words import fold
from glyphoxa.world.events import Cause
from glyphoxa.world.fact_events import FactStated

MOST_LINES: Final = 40
"""Lines of a session that are proposed, with those already accepted: more are not read in five minutes."""
NOTE: Final = "note"
_NUMBERS: Final = re.compile(r"(\d{1,9})(?:([a-z])|-(\d{1,9}))?")
_NAMED: Final = 0.5
"""Worth of a line that names an entity, on the scale of salience."""
_FEWEST_WORDS: Final = 3
"""Different words of a line that says something."""
_ENDS: Final = (".", "!", "?", "…", "”", '"', ")", "'")
_ALIKE: Final = 0.5
"""Share of the words of two lines of which only the better one is proposed."""


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

    def stated(self) -> tuple[FactStated, Cause]:
        """Return the claim as a finding of the line."""
        said, number = self.line.utterance, self.line.ordinal
        provenance = Provenance(
            session_id=said.session_id,
            utterance_id=said.id,
            ordinal=number,
            at_ms=said.at_ms,
            reason=f"{said.speaker_name} said so",
            accept_at=NEVER,
        )
        cause = Cause("talk", said.at_ms, said.session_id, number, said.id)
        return FactStated(self.claim, provenance, self.heard_by), cause


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
            facts: All current facts of the campaign, and `ended` those that ended.
        """
        resting = defaultdict[UtteranceId, list[Fact]](list)
        for fact in sorted([*facts, *(each.fact for each in ended)], key=lambda each: each.seq):
            if fact.provenance.utterance_id is not None and fact.claim.subject in self.entities:
                resting[fact.provenance.utterance_id].append(fact)
        current = {fact.id for fact in facts if fact.status == "pending"}
        known = [Text.of(str(fact.claim.content or "")) for fact in facts if fact.status == "accepted"]
        worth, kept = self._worth(said, judged), list[NumberedUtterance]()
        for line in sorted(said, key=lambda each: -worth[each.utterance.id]):
            text, on_it = Text.of(line.utterance.text), resting[line.utterance.id]
            is_open = any(fact.id in current or fact.provenance.dm_confirmed for fact in on_it)
            if not on_it and worth[line.utterance.id] > 0:
                is_open = not any(self._telling(text) <= self._telling(each) for each in known)
            others = (Text.of(each.utterance.text) for each in kept)
            if is_open and all(text.shared(each, self.selection.language) < _ALIKE for each in others):
                kept.append(line)
        found: dict[EntityId, list[FactProposal]] = {}
        for line in kept[:MOST_LINES]:
            for each in self._of_line(line, resting[line.utterance.id], current):
                found.setdefault(each.claim.subject, []).append(each)
        return [each for group in found.values() for each in group]

    def _worth(self, said: Sequence[NumberedUtterance], judged: Mapping[int, Judged]) -> dict[UtteranceId, float]:
        """Return how much each line is worth keeping; 0 if it is not, or was broken off.

        That is its salience, and how rare its words are in the session: what is said in every round of a fight is not
        worth much. A line that names somebody or something of the campaign is worth more.
        """
        names, language = self.selection.names(), self.selection.language
        judge, finder = SalienceJudge(language, names), NameFinder(language)
        told = {line.id for line in tellable(each.utterance for each in said)}
        telling = {each.utterance.id: self._telling(Text.of(each.utterance.text)) for each in said}
        n_lines = Counter(stem for stems in telling.values() for stem in stems)
        worth = dict[UtteranceId, float]()
        for each in said:
            line, verdict = each.utterance, judged.get(each.ordinal)
            salience, stems = judge.judge(line.text), telling[line.id]
            is_kept = salience.is_kept if verdict is None else verdict.judgement.may_extract
            is_whole = line.text.rstrip().endswith(_ENDS) and len(stems) >= _FEWEST_WORDS
            worth[line.id] = 0.0
            if line.id in told and is_kept and is_whole and not salience.asks_to_forget:
                rarity = sum(1 - math.log(n_lines[stem]) / math.log(len(said) + 1) for stem in stems) / len(stems)
                spans = without_called(line.text, [*names_in(line.text, finder, names)])
                worth[line.id] = salience.score + rarity + _NAMED * any(span.key in self.entities for span in spans)
        return worth

    def _telling(self, text: Text) -> frozenset[str]:
        return text.telling(self.selection.language)

    def _of_line(
        self, line: NumberedUtterance, resting: Sequence[Fact], current: set[FactId]
    ) -> Iterator[FactProposal]:
        said, number = line.utterance, str(line.ordinal)
        for letter, fact in zip(["", *"bcdefghijklmnopqrstuvwxyz"], resting, strict=False):
            if fact.id in current and fact.status == "pending":
                yield FactProposal(f"{number}{letter}", line, fact.claim, fact.visibility, fact)
        about, at = (None, 0) if resting else self._subject(said)
        if about is not None:
            heard = witnessed_by(sorted(said.witnesses), at_ms=said.at_ms, utterance=said.id)
            # Of a long line, the part that begins with the sentence about the subject.
            begin = max((start for start, _ in sentence_spans(said.text) if start <= at), default=0)
            is_long = len(said.text) > MAX_LINE_CHARS
            quote = self.selection.quote(replace(said, text=said.text[begin:] if is_long else said.text)).text
            yield FactProposal(number, line, Claim.attribute(about, NOTE, quote), heard)

    def _subject(self, said: Utterance) -> tuple[EntityId | None, int]:
        """Return whom a line concerns, and where it names them; 0 if it does not.

        That is its speaker if it says "I", else the one whom it names, else its speaker; for a speaker outside the
        story, the first whom it names, else the place.
        """
        names = {fold(name): id_ for id_, each in self.entities.items() for name in each.names}
        speaker = names.get(fold(said.speaker_name))
        spans = [*names_in(said.text, NameFinder(self.selection.language), self.selection.names())]
        named = [(each.start, EntityId(each.key)) for each in without_called(said.text, spans)]
        named = [(start, id_) for start, id_ in named if id_ in self.entities]
        if speaker is not None and (len({id_ for _, id_ in named}) != 1 or FIRST_PERSON.search(said.text)):
            return speaker, 0
        start, first = min(named, default=(0, self.place_of(said)))
        return first, start
