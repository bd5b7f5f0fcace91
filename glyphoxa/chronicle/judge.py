"""Judges utterances in the background, after the answer: by rules, or by a language model and rules.

The rules decide alone if the model is late, fails, or is not asked. A model never lowers what the rules found:

- Flags are united; the mode and the risk are the stricter ones.
- What the rules withhold (redirected, about consent, out of character) is not shown to the model, and never learned.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from numpy import float32
from numpy.typing import NDArray
from pydantic import ConfigDict

from glyphoxa.actors.deadline import answered_within
from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import ModelAnswer, ModelQuestion, Unparseable
from glyphoxa.chronicle.consent_requests import ConsentRequest, consent_request
from glyphoxa.chronicle.llm_task import numbered, visible_lines
from glyphoxa.chronicle.ports import Checked, JudgedUtterance
from glyphoxa.chronicle.salience import Line, Salience, SalienceJudge
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance, SceneTalk
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.judgement.safety import Judged, Mode, Risk, TurnJudgement, mode_and_risk
from glyphoxa.language.language_data import texts
from glyphoxa.names.gazetteer import Gazetteer

EMBED_MS: Final = 2_000
"""Time limit for the vectors of a stretch. Without them, the other features decide."""
EmbedLines: TypeAlias = Callable[[list[str]], Awaitable[NDArray[float32]]]
_MISSED: Final = "kept when it was judged again, with what was said afterwards"
_STRICT: Final = (Mode.IN_WORLD_ANSWER, Mode.MEMORY_CONSENT, Mode.SAFE_REDIRECT)
_RISKS: Final = (Risk.LOW, Risk.MEDIUM, Risk.HIGH)


@dataclass(frozen=True, slots=True)
class RulesJudge:
    """A `TurnJudge` without a model: safety topics, requests about memory, and the salience model.

    Args:
        language: BCP 47 tag of the campaign.
        names: Returns an index of the known names.
        flags: Returns the labels of the safety topics in a text, such as "line:spiders".
        embed: Embeds lines with the model `glyphoxa.chronicle.salience.VECTORS_OF`; None: without vectors.
    """

    language: str
    names: Callable[[Sequence[KnownEntity]], Gazetteer]
    flags: Callable[[str], tuple[str, ...]] = lambda _text: ()
    embed: EmbedLines | None = None

    async def judge(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Sequence[JudgedUtterance]:
        lines = await self._lines((*talk.before, *talk.said))
        # It takes about a millisecond a line, and a table may be playing on the same loop.
        return await asyncio.to_thread(self._judged, talk, known, lines)

    def _judged(self, talk: SceneTalk, known: Sequence[KnownEntity], lines: Sequence[Line]) -> list[JudgedUtterance]:
        scores = self._salience(known).judge_all(lines)[len(talk.before) :]
        return [
            JudgedUtterance(said, Judged(self._judgement(said, score)))
            for said, score in zip(talk.said, scores, strict=True)
        ]

    async def judge_again(
        self, checked: Checked, talk: SceneTalk, known: Sequence[KnownEntity]
    ) -> Sequence[JudgedUtterance]:
        lines = await self._lines((*talk.before, *talk.said, *checked.after))
        return await asyncio.to_thread(self._missed, checked, talk, known, lines)

    def _missed(
        self, checked: Checked, talk: SceneTalk, known: Sequence[KnownEntity], lines: Sequence[Line]
    ) -> list[JudgedUtterance]:
        first = {each.said.ordinal: each.judged.judgement for each in checked.said}
        lines_of_scene = (*talk.before, *talk.said, *checked.after)
        missed = []
        for said in (lines_of_scene[index] for index in self._salience(known).backstop(lines, first=len(talk.before))):
            judgement = first.get(said.ordinal)
            is_open = judgement is not None and judgement.mode is Mode.IN_WORLD_ANSWER and visible_lines([said])
            if said in talk.said and judgement is not None and is_open and not judgement.extract_memory:
                now = replace(judgement, extract_memory=True, note=_MISSED)
                missed.append(JudgedUtterance(said, Judged(now, by="backstop")))
        return missed

    async def _lines(self, said: Sequence[NumberedUtterance]) -> list[Line]:
        texts = [each.utterance.text for each in said]
        vectors: NDArray[float32] | None = None
        if self.embed is not None:
            with contextlib.suppress(TimeoutError, Unavailable, InvalidInput):
                async with asyncio.timeout(EMBED_MS / 1000):
                    vectors = await self.embed(texts)
        return [Line(text, None if vectors is None else vectors[index]) for index, text in enumerate(texts)]

    def _salience(self, known: Sequence[KnownEntity]) -> SalienceJudge:
        return SalienceJudge(self.language, self.names(known))

    def _judgement(self, said: NumberedUtterance, score: Salience) -> TurnJudgement:
        text = said.utterance.text
        flags = self.flags(text)
        mode, risk = mode_and_risk(flags)
        touched = f"touches {', '.join(flags)}; " if flags else ""
        if mode is Mode.SAFE_REDIRECT:
            return TurnJudgement(mode, risk, flags, f"{touched}lead away from it")
        request = None if said.utterance.npc_id is not None else consent_request(text)
        if request is not None:
            what = "allows it to be remembered" if request is ConsentRequest.GIVE else "asks not to be remembered"
            return TurnJudgement(Mode.MEMORY_CONSENT, risk, flags, f"{touched}{what}")
        is_kept = score.is_kept and bool(visible_lines([said]))
        why = ", ".join(score.why) if is_kept == score.is_kept else "out of character"
        note = f"{touched}{'worth keeping' if is_kept else 'not worth keeping'}{why and ': '}{why}"
        return TurnJudgement(mode, risk, flags, note, is_kept)


# The language model.

MAX_NOTE_CHARS: Final = 300
STRETCH_MS: Final = 180_000
"""Deadline of a stretch: twenty lines of players, with a local model. The rules decide what is not judged by then."""
_BEFORE: Final = 4
"""Lines that a model is shown before the one to judge."""


class JudgementAnswer(ModelAnswer):
    """The five fields of `TurnJudgement`, and no others."""

    model_config = ConfigDict(extra="forbid")

    mode: Literal["in_world_answer", "memory_consent", "safe_redirect"]
    risk: Literal["low", "medium", "high"]
    flags: list[str]
    note: str
    extract_memory: bool

    def judgement(self, topics: Sequence[str]) -> TurnJudgement:
        """
        Raises:
            Unparseable: It has a flag that is no topic. The message shows nothing of the answer.
        """
        if not set(self.flags).issubset(topics):
            raise Unparseable("the model's answer has flags that were not offered")
        flags, text = tuple(dict.fromkeys(self.flags)), " ".join(self.note.split())[:MAX_NOTE_CHARS]
        return TurnJudgement(Mode(self.mode), Risk(self.risk), flags, text, self.extract_memory)


def judgement_question(system: str, text: str, topics: Sequence[str]) -> ModelQuestion[JudgementAnswer]:
    """Return the question about the last line of a text, which may be flagged with these topics."""
    flags = {"flags": {"maxItems": min(len(topics), 4)}} | ({"flags.*": {"enum": [*topics]}} if topics else {})
    return ModelQuestion(JudgementAnswer, system, text, flags)


class LlmJudge:
    """A `TurnJudge` that asks a model about each player's line, with the rules as its floor.

    Args:
        topics: Labels of the topics that a line may be flagged with.
    """

    def __init__(self, rules: RulesJudge, asking: ModelAsker, topics: Sequence[str] = ()) -> None:
        self._rules = rules
        self.judge_again = rules.judge_again
        self._asking = asking
        self._topics = tuple(topics)
        self._system = texts("tasks", rules.language).value("judge")["system"]

    async def judge(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Sequence[JudgedUtterance]:
        judged = await self._rules.judge(talk, known)
        slots = asyncio.Semaphore(self._asking.at_once)
        lines = [*talk.before, *talk.said]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._one(each, lines[:place], slots))
                for place, each in enumerate(judged, start=len(talk.before))
            ]
        return [task.result() for task in tasks]

    async def _one(
        self, one: JudgedUtterance, before: Sequence[NumberedUtterance], slots: asyncio.Semaphore
    ) -> JudgedUtterance:
        is_private = one.judged.judgement.mode is not Mode.IN_WORLD_ANSWER or not visible_lines([one.said])
        if one.said.utterance.npc_id is not None or is_private:
            return one
        safe = [each for each in visible_lines(before[-_BEFORE:]) if not self._rules.flags(each.utterance.text)]
        try:
            async with answered_within(STRETCH_MS, "the model did not answer"), slots:
                question = judgement_question(self._system, numbered([*safe, one.said]), self._topics)
                answer = await self._asking.ask(question, check=lambda answer: answer.judgement(self._topics))
            by_model = answer.judgement(self._topics)
        except (Unavailable, Unparseable) as error:
            return replace(one, judged=replace(one.judged, reason=str(error)))
        return JudgedUtterance(one.said, Judged(stricter(one.judged.judgement, by_model), by="llm"))


def stricter(one: TurnJudgement, other: TurnJudgement) -> TurnJudgement:
    """Unite two judgements of a line: all flags, the stricter mode and risk. `other` decides what is worth keeping."""
    flags = tuple(dict.fromkeys((*one.flags, *other.flags)))
    follows = mode_and_risk(flags)
    mode = max(one.mode, other.mode, follows[0], key=_STRICT.index)
    risk = max(one.risk, other.risk, follows[1], key=_RISKS.index)
    keep = other.extract_memory and mode is Mode.IN_WORLD_ANSWER
    return TurnJudgement(mode, risk, flags, other.note or one.note, keep)
