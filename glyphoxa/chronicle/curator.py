"""Curate memory with a language model that reads it before it writes: the second channel of extraction.

The model works in rounds. Each answer calls one tool, and the next question contains the result:

    extraction   memory_query_entities, memory_search_facts, ... , each with findings so far ──▶ done
    compaction   memory_compaction_candidates, memory_compact_nodes ──▶ done

Three rules keep what the model is shown from anybody who does not know it: a tool shows only what all NPCs know that
heard any of the lines; each word of a claim or summary is in the lines that it cites; and a claim that a tool has shown
is not stored again.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

from loguru import logger
from pydantic import Field, SkipValidation

from glyphoxa.actors.deadline import answered_within
from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import Answer, ModelAnswer, ModelQuestion, OneOf, Unparseable, take_each
from glyphoxa.chronicle.effects import MAX_NAME_CHARS, folded
from glyphoxa.chronicle.llm_extractor import KnownBefore, Merging, TalkFindings, TalkQuestion, noted, question_about
from glyphoxa.chronicle.llm_task import VisibleLines, numbered, visible_lines
from glyphoxa.chronicle.ports import Extractor
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.summaries import LineSelection, Note, supported
from glyphoxa.chronicle.talk import Extraction, KnownEntity, SceneTalk
from glyphoxa.chronicle.timeline_writer import EventNode, TimelineWriter
from glyphoxa.domain.campaign import DEFAULT_SCHEMA, Schema
from glyphoxa.domain.errors import InvalidInput, Unavailable, did_you_mean
from glyphoxa.domain.ids import EntityId, NpcId, SessionId
from glyphoxa.language.language_data import texts
from glyphoxa.language.prompt_quotes import in_one_line
from glyphoxa.language.text import Text
from glyphoxa.transcript.sessions import SummarySentence

MAX_ROUNDS: Final = 8
"""Rounds for one stretch, and for one pass of compaction."""
_SHOWN_SHARE: Final = 3
"""Results of tools have this part of the characters that the lines of a prompt have."""
_DONE: Final = "done"
_COMPACTION: Final = ("memory_compact_nodes", "memory_compaction_candidates", _DONE)


@dataclass(frozen=True, slots=True)
class Curating:
    """How to ask the curator's model.

    Attributes:
        deadline_ms: For all rounds of one stretch, or of one pass of compaction.
        max_rounds: Limit for each session in this process.
        is_alone: Nothing else reads the transcript.
    """

    asking: ModelAsker
    deadline_ms: int
    max_rounds: int
    is_alone: bool = False
    _taken: Counter[SessionId] = field(default_factory=Counter)

    async def work(
        self,
        session: SessionId,
        question: Callable[[], ModelQuestion[Answer]],
        act: Callable[[Answer], Awaitable[object]],
    ) -> str:
        """Ask and act until the model is done. Returns why it ended early; "" if it did not.

        Args:
            question: Returns the question of the next round.
            act: Follows an answer. Returns what it called, which must be new; None if all is done.
        """
        calls = list[object]()
        try:
            async with answered_within(self.deadline_ms, "the model was not done"):
                for _ in range(MAX_ROUNDS):
                    if self._taken[session] == self.max_rounds:
                        return f"the {self.max_rounds} rounds for a session are used up"
                    self._taken[session] += 1
                    call = await act(await self.asking.ask(question()))
                    if call is None or call in calls:
                        return "" if call is None else "the model repeats a call"
                    calls.append(call)
        except (Unavailable, Unparseable) as error:
            return str(error)
        return f"the model was not done after {MAX_ROUNDS} rounds"

    async def compact(self, writer: TimelineWriter, session: SessionId) -> int:
        """Let the model sum up event nodes. Returns how many it added; the writer sums up the others."""
        compacting = _Compacting(writer, self.asking.limits.max_chars)
        ended = "" if not await compacting.show() else await self.work(session, compacting.question, compacting.act)
        if ended:
            logger.info("the curator sums up no more event nodes of campaign {}: {}", writer.campaign.id, ended)
        return compacting.n_done


# Extraction.


LookUp = Callable[[NpcId, str, str], Awaitable[Mapping[str, Any]]]
"""Returns what an NPC finds with a tool and a query: `found`, a list, and perhaps a `note`. Never raises."""


class _ToolCall(ModelAnswer):
    """The tool to call next."""

    tool: str
    query: str = Field(json_schema_extra={"maxLength": MAX_NAME_CHARS})


class CuratorStep(TalkFindings, _ToolCall):
    """A round of extraction: the tool to call next, and findings."""


@dataclass(frozen=True, slots=True)
class Curator:
    """An `Extractor` that adds the findings of the curator to those of another.

    Args:
        inner: None: the curator works alone.
        tools: The tools that read memory, each with what it does.
        look_up: Calls one of them.
        nobody: See `RulesExtractor`.
        schema: The campaign's.
    """

    inner: Extractor | None
    curating: Curating
    tools: Mapping[str, str]
    look_up: LookUp
    nobody: Sequence[str] = ()
    schema: Schema = DEFAULT_SCHEMA

    async def extract(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Extraction:
        found = Extraction() if self.inner is None else await self.inner.extract(talk, known)
        limits = self.curating.asking.limits
        asked = question_about(talk, limits, self.schema)
        if asked is None:
            return found
        names = await asyncio.to_thread(names_of, known, talk.language)
        before = KnownBefore(known, names, found, frozenset(map(folded, self.nobody)))
        stretch = _Stretch(self, asked, before, limits.max_chars // _SHOWN_SHARE)
        ended = await self.curating.work(talk.session, stretch.question, stretch.act)
        return noted(stretch.known.found, f"curator: {ended}") if ended else stretch.known.found


@dataclass(slots=True)
class _Stretch:
    """The curator's work on one stretch.

    Attributes:
        known: With what was found so far.
        room: Characters for `shown`.
        shown: The results of earlier rounds, one line each.
        items: Results besides the lines of the stretch.
    """

    curator: Curator
    asked: TalkQuestion
    known: KnownBefore
    room: int
    shown: list[str] = field(default_factory=list)
    items: list[Text] = field(default_factory=list)

    def question(self) -> ModelQuestion[CuratorStep]:
        prompt, worded = self.asked.prompt, texts("tasks", self.asked.talk.language).value("curator")
        tools = [f"{name}: {what}" for name, what in self.curator.tools.items()]
        shown = [worded["shown"], "\n".join(self.shown)[-self.room :]] if self.shown else []
        limits = {**prompt.limits, "tool": {"enum": [*self.curator.tools, _DONE]}}
        system = "\n".join((prompt.system, worded["extraction"], *tools))
        return ModelQuestion(CuratorStep, system, "\n".join((prompt.user, *shown)), limits)

    async def act(self, step: CuratorStep) -> tuple[str, str] | None:
        refused = await asyncio.to_thread(self._note, step)
        if step.tool == _DONE:
            return None
        call = (step.tool, in_one_line(step.query))
        answer = json.dumps(await self._look_up(*call), ensure_ascii=False)
        self.shown += map(in_one_line, (*refused, f"{' '.join(call)}: {answer}"))
        return call

    def _note(self, step: CuratorStep) -> tuple[str, ...]:
        """Add the findings of an answer. Returns the reasons for those that were rejected."""
        before = self.known.found
        found = Merging(self.asked, self.known, is_exact=True).merge(step)
        names = {each.key: each.name for each in found.entities}
        relations = [
            one
            for one in found.relations
            if one in before.relations or not self._is_shown(names[one.source], names[one.target])
        ]
        facts = [one for one in found.facts if one in before.facts or not self._is_shown(names[one.subject], one.value)]
        found = replace(found, relations=tuple(relations), facts=tuple(facts))
        self.known = replace(self.known, found=found)
        return found.refused[len(before.refused) :]

    def _is_shown(self, *words: str) -> bool:
        """Return whether one item of memory has all these words."""
        language = self.asked.talk.language
        telling = Text.of(" ".join(words)).telling(language)
        return any(telling <= item.telling(language) for item in self.items)

    async def _look_up(self, tool: str, query: str) -> Mapping[str, Any]:
        """Return what all NPCs find that heard any line of the stretch."""
        if tool not in self.curator.tools:
            return {"found": [], "note": f"there is no tool {tool[:80]!r}; {did_you_mean(tool, self.curator.tools)}"}
        npcs = frozenset[NpcId]().union(*(each.utterance.witnesses for each in self.asked.lines))
        answers = [await self.curator.look_up(npc, tool, query) for npc in sorted(npcs)]
        if not answers:
            return {"found": []}
        common = [each for each in _items(answers[0]) if all(each in _items(other) for other in answers[1:])]
        lines = [in_one_line(each.utterance.text) for each in self.asked.lines]
        self.items += [Text.of(each) for each in common if not any(line in each for line in lines)]
        notes = {str(each.get("note", "")) for each in answers}
        return {"found": [json.loads(each) for each in common], "note": notes.pop() if len(notes) == 1 else ""}


def _items(answer: Mapping[str, Any]) -> list[str]:
    """Return what a tool found, in the same words for each NPC that knows the same."""
    plain = ({key: value for key, value in each.items() if key != "why"} for each in answer["found"])
    return [json.dumps(each, ensure_ascii=False, sort_keys=True) for each in plain]


# Compaction.


class Ruling(Note):
    """A decision about lines: KEEP quotes each, FOLD says them in one sentence, DROP leaves them out."""

    action: Annotated[str, OneOf(("KEEP", "FOLD", "DROP"))]


class CompactionStep(ModelAnswer):
    """A round of compaction: the tool to call, with its arguments."""

    tool: str = Field(json_schema_extra={"enum": [*_COMPACTION]})
    nodes: list[str]
    sentences: list[SkipValidation[Ruling]]


@dataclass(slots=True)
class _Compacting:
    """The curator's work on the timeline.

    Attributes:
        room: Characters for the lines.
        at: Number of the group of candidates that is shown.
        nodes: Its nodes, and `lines` are theirs.
        note: Why the last call failed.
    """

    writer: TimelineWriter
    room: int
    n_done: int = 0
    at: int = 0
    note: str = ""
    nodes: Sequence[EventNode] = ()
    lines: VisibleLines = field(init=False)

    async def show(self) -> bool:
        """Read the group of candidates. False: there is none, or its lines do not fit into a prompt."""
        groups = await self.writer.candidates()
        self.nodes = groups[self.at] if self.at < len(groups) else ()
        lines = visible_lines(await self.writer.lines(self.nodes))
        self.lines = VisibleLines(lines, self.writer.campaign.language, is_exact=True)
        return 0 < len(numbered(lines)) <= self.room

    def question(self) -> ModelQuestion[CompactionStep]:
        worded = texts("tasks", self.writer.campaign.language).value("curator")
        text = [numbered(self.lines.lines), worded["nodes"]]
        for node in self.nodes:
            numbers = (str(n) for n, line in enumerate(self.lines.lines, start=1) if line.utterance.id in node.lines)
            text.append(f"{node.id}: {', '.join(numbers)}")
        return ModelQuestion(CompactionStep, worded["compaction"], "\n".join((*text, self.note)).strip())

    async def act(self, step: CompactionStep) -> object:
        if step.tool == _DONE:
            return None
        call, self.note = (self.at, step), ""
        try:
            await self._call(step)
        except InvalidInput as wrong:
            self.note = in_one_line(str(wrong))
        return call if await self.show() else None

    async def _call(self, step: CompactionStep) -> None:
        ids, (compact, candidates, _) = [node.id for node in self.nodes], _COMPACTION
        if step.tool == candidates:
            self.at += 1
            return
        if step.tool != compact:
            raise InvalidInput(f"there is no tool {step.tool[:80]!r}; {did_you_mean(step.tool, _COMPACTION)}")
        if unknown := [each for each in step.nodes if each not in ids]:
            raise InvalidInput(f"{unknown[0][:80]!r} is no candidate; {did_you_mean(unknown[0], ids)}")
        sentences = list(self._sentences(step.sentences))
        if not sentences:
            raise InvalidInput("no sentence has only the words of the lines that it cites; nothing was stored")
        shown = [line.utterance for line in self.lines.lines]
        await self.writer.compact([EntityId(each) for each in step.nodes], sentences, shown=shown)
        self.n_done, self.at = self.n_done + 1, 0

    def _sentences(self, rulings: Sequence[Ruling]) -> Iterator[SummarySentence]:
        """Yield what is told, with days instead of words such as "yesterday"."""
        said_by_id = {line.utterance.id: line.utterance for line in self.lines.lines}
        made: list[SummarySentence] = []
        quote = LineSelection(self.writer.campaign.language).quote

        def take(each: Ruling) -> None:
            if each.action == "FOLD":
                made.append(supported(each, self.lines))
            elif each.action == "KEEP":
                said = [line.utterance for line in self.lines.cited(each.lines)]
                made.extend(quote(one) for one in said if one.is_evidence)

        for why in take_each(rulings, Ruling, take, what="the model's sentences", most=len(self.lines.lines)):
            logger.debug("rejected: {}", why)
        for one in made:
            first = said_by_id[one.evidence[0]]
            yield replace(one, text=self.writer.dated(one.text, first.session_id, first.at_ms))
