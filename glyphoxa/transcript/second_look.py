"""Asks a language model about words that the ear was not sure of. See `glyphoxa.transcript.reviser`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass, replace
from typing import Any

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.utterance import UNSURE, Utterance
from glyphoxa.llm.structured import StructuredLlm, Unparseable
from glyphoxa.speech.language.spans import Places, applied
from glyphoxa.speech.names.gazetteer import Gazetteer
from glyphoxa.speech.review.doubt import Span
from glyphoxa.speech.review.edits import Edit, declared_in, onto_raw, verified
from glyphoxa.speech.review.likely_names import MOST_NAMES, LikelyNames
from glyphoxa.speech.review.question import TEMPERATURE, Question, question_about


@dataclass(frozen=True, slots=True)
class Asking:
    """How a language model is asked.

    Attributes:
        deadline_ms: For one answer; later is none.
        low_confidence: Words below it are doubtful.
        most_names: Names in a question; each costs a small model time.
        rest_ms: How long the table must have been quiet.
        gives_way: Only a quiet table is disturbed, and a question is dropped when somebody speaks: for a model that
            the NPCs think with.
    """

    llm: StructuredLlm
    deadline_ms: int = 10_000
    low_confidence: float = UNSURE
    most_names: int = MOST_NAMES
    rest_ms: int = 2_000
    gives_way: bool = False


@dataclass(eq=False, slots=True)
class Doubted:
    utterance: Utterance
    doubtful: tuple[Span, ...]
    before: tuple[Utterance, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Better:
    """Words that were verified: only doubtful ones changed, and they to names."""

    utterance: Utterance
    edits: tuple[Edit, ...]


class GaveWay(Exception):
    """Somebody speaks, and needs the model: ask again later."""


class SecondLook:
    """
    Args:
        gazetteer: The campaign's names as they are now.
        nearby: Entities of the scene.
        wait_until_quiet: Until nobody speaks and no NPC is answering.
        in_thread: Runs pure work beside the loop.
    """

    def __init__(
        self,
        asking: Asking,
        gazetteer: Callable[[], Gazetteer],
        *,
        nearby: Callable[[], Container[EntityId]],
        wait_until_quiet: Callable[[], Awaitable[None]] | None,
        in_thread: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        self._asking = asking
        self._gazetteer = gazetteer
        self._nearby = nearby
        self._wait_until_quiet = wait_until_quiet
        self._in_thread = in_thread
        self._likely: LikelyNames | None = None
        self._answering: asyncio.Task[dict[str, Any]] | None = None
        self._disturbed = asyncio.Event()
        self._is_model_away = False

    def disturb(self) -> None:
        """Somebody speaks."""
        self._disturbed.set()
        if self._asking.gives_way and self._answering is not None:
            self._answering.cancel()

    async def at(self, doubted: Doubted, *, is_wanted: Callable[[], bool]) -> Better | None:
        """None: the text stays as it was.

        Args:
            is_wanted: Asked after the wait for a quiet table.

        Raises:
            GaveWay: It was not looked at.
        """
        asking = self._asking
        if asking.gives_way:
            await self._wait_for_rest(asking.rest_ms)
            if not is_wanted():
                raise GaveWay
        gazetteer, nearby = self._gazetteer(), self._nearby()
        question, likely = await self._in_thread(lambda: self._prepared(doubted, gazetteer, nearby, asking.most_names))
        if asking.gives_way and self._disturbed.is_set():
            raise GaveWay
        answering = self._answering = asyncio.ensure_future(
            asking.llm.complete(
                question.system, question.user, question.schema, temperature=TEMPERATURE, deadline_ms=asking.deadline_ms
            )
        )
        try:
            await asyncio.wait({answering})
        finally:
            self._answering = None
            answering.cancel()
        if answering.cancelled():
            raise GaveWay
        answer = self._answer(answering)
        return None if answer is None else await self._checked(doubted, answer, likely)

    def _prepared(
        self, doubted: Doubted, gazetteer: Gazetteer, nearby: Container[EntityId], most_names: int
    ) -> tuple[Question, LikelyNames]:
        """Tens of milliseconds at 10,000 names, and so for a long utterance: for a thread."""
        likely = self._likely
        if likely is None or likely.gazetteer is not gazetteer:
            likely = self._likely = LikelyNames(gazetteer)
        text, doubtful = doubted.utterance.text, doubted.doubtful
        names = likely.pick(text, doubtful, nearby=nearby, limit=most_names)
        before = [f"{each.speaker_name}: {each.text}" for each in doubted.before]
        return question_about(text, doubtful, names, before=before), likely

    async def _wait_for_rest(self, rest_ms: int) -> None:
        while True:
            self._disturbed.clear()
            if self._wait_until_quiet is not None:
                await self._wait_until_quiet()
            try:
                async with asyncio.timeout(rest_ms / 1000):
                    await self._disturbed.wait()
            except TimeoutError:
                return

    def _answer(self, answering: asyncio.Task[dict[str, Any]]) -> dict[str, Any] | None:
        """None when there is none: the text then stays as it was."""
        try:
            answer = answering.result()
        except Unparseable as error:
            logger.info("no second look: {}", error)
            return None
        except GlyphoxaError as error:
            if not self._is_model_away:
                logger.warning("names are not looked at again: {}", error)
            self._is_model_away = True
            return None
        self._is_model_away = False
        return answer

    async def _checked(self, doubted: Doubted, answer: dict[str, Any], likely: LikelyNames) -> Better | None:
        """What is left of an answer; None when that is nothing."""
        was, text, declared = doubted.utterance, answer.get("corrected_text"), declared_in(answer)
        if not isinstance(text, str):
            return None
        edits = await self._in_thread(
            lambda: verified(was.text, text, declared, doubtful=doubted.doubtful, names=likely)
        )
        if not edits:
            return None
        raw = was.raw_text
        if was.npc_id is not None:  # it goes on behind what was heard of it
            raw = raw[: Places(was.corrections).in_raw(0, len(was.text))[1]]
        try:
            corrections = onto_raw(raw, was.corrections, was.text, edits)
        except ValueError as error:
            logger.error("utterance {} keeps the words that were heard: {}", was.id, error)
            return None
        return Better(replace(was, text=applied(was.text, edits), corrections=corrections), edits)
