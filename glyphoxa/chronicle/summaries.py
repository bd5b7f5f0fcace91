"""Summarise what was said: by selecting lines, which invents nothing, or with a language model.

Each sentence of a summary names the utterances that support it. A model's sentence that they do not support is dropped.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final

from loguru import logger
from pydantic import Field, SkipValidation

from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import ModelAnswer, ModelQuestion, Unparseable, take_each
from glyphoxa.chronicle.llm_task import ClaimRejected, LineNumber, VisibleLines, numbered, visible_lines
from glyphoxa.chronicle.rules_extractor import PEOPLE, without_called
from glyphoxa.chronicle.salience import SalienceJudge, names_in
from glyphoxa.chronicle.statements import (
    MarkedSentence,
    commits_speaker,
    facts_in,
    sentences_of,
)
from glyphoxa.chronicle.talk import NumberedUtterance, tellable
from glyphoxa.chronicle.utterance_nodes import said_in_words
from glyphoxa.domain.budgets import SUMMARY_TOKENS
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import AUTO_ACCEPT
from glyphoxa.language.language_data import texts
from glyphoxa.language.new_names import name_finder
from glyphoxa.language.prompt_quotes import in_one_line, quoted
from glyphoxa.language.sentences import RoomLeft, characters_in, shortened
from glyphoxa.language.text import Text
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.transcript.sessions import SummarySentence

# Selection: the most salient lines, verbatim.


MAX_LINE_CHARS: Final = 240
"""Characters. A longer line is cut at the end of a sentence or word."""
_FINDING: Final = 0.5
"""Added to the salience of a line in which the rules find a promise, a decision, a discovery, or a changed owner."""
_SALIENT: Final = 0.4
"""Least salience of a line. Lower than what is learned from, because the budget leaves out what does not fit."""
_ALIKE: Final = 0.6
"""Share of the content words of a line in a later one that may replace it."""
_REMEMBERED: Final = 8
"""Rankings: NPCs that heard the same lines choose from the same ones."""
_FEWEST: Final = 2
"""Lines of a session or a stretch that are told even if none of them is salient: the last evening is never empty."""
_SAYS_SOMETHING: Final = 0.2
"""Least salience of a line of an evening without salient ones. Greetings and jests have less."""
_OWN_SHARE: Final = 1 / 4
"""Share of a summary that others leave for an NPC's own words."""


def _marked(text: str, language: str, names: Gazetteer | None) -> tuple[Iterator[MarkedSentence], set[str]]:
    """Return the sentences of a line with their names marked, and the keys of people among these."""
    spans = names_in(text, language, names)
    people = {place.name for place, type_ in spans.items() if type_ in PEOPLE}
    return sentences_of(text, without_called(text, list(spans))), people


def _findings_in(text: str, language: str, names: Gazetteer | None) -> frozenset[str]:
    return frozenset(fact.about for sentence in _marked(text, language, names)[0] for fact in facts_in(sentence))


@dataclass(frozen=True, slots=True)
class LineSelection:
    """Summarises without a model, in milliseconds.

    Args:
        names: Returns the names known now.
    """

    language: str
    names: Callable[[], Gazetteer | None] = lambda: None
    tokens: int = SUMMARY_TOKENS

    def select(
        self, said: Sequence[Utterance], *, before: Sequence[SummarySentence] = (), own: NpcId | None = None
    ) -> list[SummarySentence]:
        """Return the most salient lines that fit, in their order.

        A line that may change what another one says counts as salient, too.

        Args:
            said: In order. The reader may know all of it.
            before: A summary of earlier lines, which is part of the new one.
            own: The NPC that reads it, which keeps its own word.
        """
        kept = [*self.salient(said, before), *self.own_words(said, own)]
        return self.compress([*before, *in_order(kept, said)])

    def salient(
        self, said: Sequence[Utterance], before: Sequence[SummarySentence] = (), *, fewest: int = 0
    ) -> list[SummarySentence]:
        """Return all lines that `select` chooses from, for whoever heard them. See there.

        Args:
            fewest: Lines to return at least, the best of those with little salience, if they say anything.
        """
        judge = SalienceJudge(self.language, self.names())
        kept = list[SummarySentence]()
        spoken = _Statements(self.language)
        for one in before:
            spoken.add(Text.of(one.text))
        judged = [(each, judge.judge(each.text)) for each in tellable(said)]
        best = sorted((salience.score for _, salience in judged), reverse=True)[:fewest]
        least = min(_SALIENT, max(_SAYS_SOMETHING, min(best, default=_SALIENT)))
        for each, salience in judged:
            if salience.asks_to_forget:
                continue
            one = self.quote(each)
            now = Text.of(one.text)
            if salience.score >= least or spoken.like(now):
                kept.append(one)
                spoken.add(now)
        return kept

    def quote(self, said: Utterance) -> SummarySentence:
        """Return a line with its speaker as a sentence."""
        text = shortened(in_one_line(said.text), MAX_LINE_CHARS)
        return SummarySentence(said_in_words(said.speaker_name, text, self.language), (said.id,))

    def own_words(self, said: Sequence[Utterance], npc: NpcId | None) -> list[SummarySentence]:
        """Return the sentences with which an NPC committed itself, see `commits_speaker`."""
        names = self.names()
        judge = SalienceJudge(self.language, names, threshold=_SALIENT)
        form = str(texts("prompt", self.language).value("you_said"))
        found = []
        for each in said:
            if npc is None or each.npc_id != npc:
                continue
            sentences, people = _marked(each.text, self.language, names)
            commits = partial(commits_speaker, people=people, is_salient=lambda text: judge.judge(text).is_kept)
            text = " ".join(sentence.text for sentence in filter(commits, sentences))
            if text:
                words = quoted(shortened(text, MAX_LINE_CHARS))
                found.append(SummarySentence(form.format(what=words), (each.id,), is_own=True))
        return found

    def findings(self, text: str) -> tuple[frozenset[str], set[str]]:
        """Return the kinds of facts that the rules find in a line ("promise", "took"), and the people new in it."""
        names = self.names()
        taken = [] if names is None else [(each.start, each.end) for each in names.mentions(text)]
        new = name_finder(self.language).names_in(text, taken=taken, nobody=())
        people = {each.text for each in new if each.type == "npc" and each.confidence >= AUTO_ACCEPT}
        return _findings_in(text, self.language, names), people

    def compress(self, sentences: Sequence[SummarySentence]) -> list[SummarySentence]:
        """Return the most salient sentences that fit, in their order."""
        characters = characters_in(self.tokens)
        own, others = [one for one in sentences if one.is_own], [one for one in sentences if not one.is_own]
        least = self._fitting(own, RoomLeft(int(characters * _OWN_SHARE)))
        kept = self._fitting(others, RoomLeft(characters - _length(least)))
        kept += self._fitting(own, RoomLeft(characters - _length(kept))) if len(least) < len(own) else least
        return [one for one in sentences if one in kept]

    def _fitting(self, sentences: Sequence[SummarySentence], room: RoomLeft) -> list[SummarySentence]:
        """Return the most salient ones that fit into the room.

        Of statements that are alike, the later ones are chosen first. An earlier one has what room is left, unless the
        rules find a promise or another fact in it.
        """
        order, later, words = _ranked(tuple(sentences), self.language, self.names())
        chosen: dict[int, tuple[str, ...]] = {}
        for best in order:
            for at in (*reversed(later[best]), best):
                if at in chosen or words[at] in chosen.values():
                    continue
                if not room.takes(len(sentences[at].text) + 1):
                    break
                chosen[at] = words[at]
        return [sentences[at] for at in chosen]


@lru_cache(_REMEMBERED)
def _ranked(
    sentences: tuple[SummarySentence, ...], language: str, names: Gazetteer | None
) -> tuple[Sequence[int], Sequence[Sequence[int]], Sequence[tuple[str, ...]]]:
    """Return the places of sentences, the most salient first; those of later ones like each; and the words of each."""
    judge = SalienceJudge(language, names)
    scores = [judge.judge(one.text).score for one in sentences]
    are_facts = [bool(_findings_in(one.text, language, names)) for one in sentences]
    spoken, before = [Text.of(one.text) for one in sentences], _Statements(language)
    later: list[list[int]] = [[] for _ in sentences]
    for at, each in enumerate(spoken):
        for earlier in before.like(each):
            later[earlier].append(at)
        before.add(each)
    order = sorted(
        range(len(sentences)),
        key=lambda at: (bool(later[at]) and not are_facts[at], -scores[at] - _FINDING * are_facts[at], at),
    )
    return order, later, [each.folded for each in spoken]


class _Statements:
    """Lines said so far, by the stems of their words."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._lengths: list[int] = []
        self._having: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, text: Text) -> None:
        stems = text.telling(self._language)
        for stem in stems:
            self._having[stem].append(len(self._lengths))
        self._lengths.append(len(stems))

    def like(self, text: Text) -> list[int]:
        """Return the places of those that a text may replace, because it has most of their content words."""
        shared = Counter[int]()
        for stem in text.telling(self._language):
            shared.update(self._having.get(stem, ()))
        return [at for at, n in shared.items() if n >= _ALIKE * self._lengths[at]]


def _length(sentences: Iterable[SummarySentence]) -> int:
    return sum(len(one.text) + 1 for one in sentences)


def in_order(sentences: Iterable[SummarySentence], said: Sequence[Utterance]) -> list[SummarySentence]:
    """Return sentences in the order of the lines that they rest on."""
    place = {each.id: at for at, each in enumerate(said)}
    return sorted(sentences, key=lambda one: min(place[each] for each in one.evidence))


# A language model: fewer words for the same, and only what the lines support.


_MAX_SENTENCES: Final = 8
_MAX_SENTENCE_CHARS: Final = 160


class Note(ModelAnswer):
    """A sentence of a summary by a model, with the numbers of its lines."""

    lines: list[LineNumber] = Field(json_schema_extra={"minItems": 1, "maxItems": 4})
    text: str


class Notes(ModelAnswer):
    """A summary by a model. Each sentence is validated when it is read, so that a bad one costs no other."""

    sentences: list[SkipValidation[Note]] = Field(json_schema_extra={"maxItems": _MAX_SENTENCES})


@dataclass(frozen=True, slots=True)
class LlmSummariser:
    """Summarises consecutive lines, all of which the reader may know, with a language model."""

    asking: ModelAsker
    language: str

    async def summarise(self, said: Sequence[Utterance]) -> list[SummarySentence]:
        """Return the sentences in the order of the lines, each with its evidence among them.

        Raises:
            Unavailable: The model cannot be reached in time, or is paused.
            Unparseable: The model returned an invalid answer, or no sentence that the lines support.
        """
        lines = visible_lines([NumberedUtterance(each, number) for number, each in enumerate(tellable(said), start=1)])
        if not lines:
            return []
        system = texts("tasks", self.language).value("summary")["system"]
        notes = await self.asking.ask(ModelQuestion(Notes, system, numbered(lines)))
        shown, found = VisibleLines(lines, self.language), list[SummarySentence]()
        for why in take_each(
            notes.sentences,
            Note,
            lambda note: found.append(supported(note, shown)),
            what="the model's sentences",
            most=_MAX_SENTENCES,
        ):
            logger.debug("rejected: {}", why)
        if notes.sentences and not found:
            raise Unparseable("the model's answer has no sentence that its lines support")
        return in_order(found, said)


def supported(note: Note, lines: VisibleLines) -> SummarySentence:
    """Return a model's sentence that names a speaker and that the cited lines support.

    Raises:
        ClaimRejected: It is another one.
    """
    text = in_one_line(note.text)
    if len(text) > _MAX_SENTENCE_CHARS:
        raise ClaimRejected("it is too long")
    evidence = lines.supporting(text, note.lines)
    speakers = frozenset[str]().union(*(Text.of(each.utterance.speaker_name).folded for each in evidence))
    if speakers.isdisjoint(Text.of(text).folded):
        raise ClaimRejected("it names no speaker of its lines")
    return SummarySentence(text, tuple(each.utterance.id for each in evidence))


# Telling: the summary of each NPC, from what it heard.


Told = Mapping[NpcId, Sequence[SummarySentence]]
_MORE: Final = 4
"""A model sums up this many times the tokens of its summary."""


def heard_by(npc: NpcId, said: Sequence[NumberedUtterance]) -> list[NumberedUtterance]:
    """Return the utterances that a summary for this NPC may use."""
    return [each for each in said if npc in each.utterance.witnesses]


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells each NPC what it heard.

    Args:
        selection: Selects lines, and has the length of what is told.
        dated: Returns a text that was said at a time in a session with days instead of words such as "yesterday".
        summariser: None: lines are selected.
    """

    campaign: Campaign
    selection: LineSelection
    dated: Callable[[str, SessionId, int], str]
    summariser: LlmSummariser | None = None

    async def tell(
        self, said: Sequence[NumberedUtterance], *, but: Callable[[NpcId], bool] = lambda _: False
    ) -> dict[NpcId, list[SummarySentence]]:
        """Return the sentences for each NPC that heard something worth telling.

        Args:
            but: Whether an NPC is told nothing.
        """
        told: dict[NpcId, list[SummarySentence]] = {}
        salient: dict[tuple[UtteranceId, ...], list[SummarySentence]] = {}
        of_lines: dict[tuple[UtteranceId, ...], list[SummarySentence]] = {}
        selection = self.selection
        for npc in (npc.id for npc in self.campaign.npcs if not but(npc.id)):
            heard = [each.utterance for each in heard_by(npc, said)]
            at = {each.id: each for each in heard}
            if tuple(at) not in salient:
                salient[tuple(at)] = await asyncio.to_thread(selection.salient, heard, fewest=_FEWEST)
            own = await asyncio.to_thread(selection.own_words, heard, npc)
            kept = in_order([*salient[tuple(at)], *own], heard)
            found = await asyncio.to_thread(selection.compress, kept)
            if found and self.summariser is not None:
                most = await asyncio.to_thread(replace(selection, tokens=_MORE * selection.tokens).compress, kept)
                lines = {line for one in most for line in one.evidence}
                shown = [each for each in heard if each.id in lines]
                found = await self._condensed(self.summariser, shown, of_lines) or found
            if found:
                firsts = [(one, at[one.evidence[0]]) for one in found]
                told[npc] = [replace(one, text=self.dated(one.text, it.session_id, it.at_ms)) for one, it in firsts]
        return told

    async def _condensed(
        self,
        summariser: LlmSummariser,
        said: Sequence[Utterance],
        of_lines: dict[tuple[UtteranceId, ...], list[SummarySentence]],
    ) -> list[SummarySentence]:
        """Return a model's summary of lines; empty if it fails.

        Args:
            of_lines: Summaries of others that heard the same.
        """
        key = tuple(each.id for each in said)
        if key not in of_lines:
            try:
                of_lines[key] = self.selection.compress(await summariser.summarise(said))
            except GlyphoxaError as error:
                logger.info("a model does not sum up what is past, its lines do: {}", error)
                return []
        return of_lines[key]
