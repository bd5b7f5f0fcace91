"""Vectors of questions, in time or not at all.

A turn waits for its question's vector no longer than it can; what comes later is left out of that turn, with the
reason, and there for the next. Questions that were asked before cost nothing, and those who ask the same at the same
moment (every NPC that heard it) share one call.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.actors.circuit_breaker import CircuitBreaker
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.recall.semantic.embedder import Embedder, WrongDimensions, is_usable
from glyphoxa.transcript.ports import IndexGeneration

MOST_REMEMBERED = 256
"""Half a megabyte at 512 dimensions; an evening has a few hundred questions, and NPCs ask about the last of them."""
LONGEST_MS = 5_000
"""A call that takes longer is given up, whoever may still be waiting for it."""
MOST_CHARACTERS = 1_000
"""About the 256 tokens that a small embedder reads. Of more than that the end counts: there the question stands."""

Reason = Literal["off", "empty", "resting", "late", "down", "unusable"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why there is no vector.

    Attributes:
        reason: "off": nothing here embeds; "empty": nothing was asked; "resting": the model failed again and again and
            is let be for a while; "late": not in time; "down": it is away; "unusable": what it gave is no vector.
        text: A clause for whoever wants to know why an answer is as it is. It does not quote the question.
    """

    reason: Reason
    text: str


OFF = LeftOut("off", "no embeddings model is set")
EMPTY = LeftOut("empty", "nothing was asked")
CLOSED = LeftOut("down", "the session is over")


class _Call:
    """One question on its way to the model.

    Attributes:
        is_late: Somebody could not wait for it.
    """

    def __init__(self, task: asyncio.Task[NDArray[float32] | LeftOut]) -> None:
        self.task = task
        self.is_late = False


class QuestionVectors:
    """
    Args:
        embedder: None: there are no vectors, and that is said.
        now_ms: Any clock that does not go back; left out, that of the running event loop.
        most_remembered: Vectors kept; the longest unused goes first.
        longest_ms: Of one call to the model.
        rest: When the model is let be.
    """

    def __init__(
        self,
        embedder: Embedder | None,
        *,
        now_ms: Callable[[], int] | None = None,
        most_remembered: int = MOST_REMEMBERED,
        longest_ms: int = LONGEST_MS,
        rest: CircuitBreaker | None = None,
    ) -> None:
        self._embedder = embedder
        self._most_remembered = most_remembered
        self._longest_ms = longest_ms
        self._rest = rest or CircuitBreaker(now_ms or _loop_ms)
        self._remembered: OrderedDict[bytes, NDArray[float32]] = OrderedDict()
        self._calls: dict[bytes, _Call] = {}
        self._is_closed = False

    async def embed_in_time(self, question: str, *, deadline_ms: int) -> NDArray[float32] | LeftOut:
        """The vector of a question: float32, shape (dimensions,), of unit length, not to be written to. Else why not.

        Never raises for what the model does. Who stops waiting stops nobody else: the call goes on, and what it gives
        is there when the question is asked again.

        Args:
            deadline_ms: From now.
        """
        asked = _asked(question)
        if self._embedder is None:
            return OFF
        if not asked:
            return EMPTY
        key = _key(asked)
        if (vector := self._remembered.get(key)) is not None:
            self._remembered.move_to_end(key)
            return vector
        call = self._call(asked)
        if call is None:
            return CLOSED if self._is_closed else self._resting()
        done, _ = await asyncio.wait({call.task}, timeout=max(0, deadline_ms) / 1_000)
        if not done:
            self._gave_up(call)
            return LeftOut("late", f"the embedding was late: it took more than {deadline_ms} ms")
        return CLOSED if call.task.cancelled() else call.task.result()

    async def close(self) -> None:
        """Give up what is under way. Everything that is not remembered is left out from now on."""
        self._is_closed = True
        tasks = [call.task for call in self._calls.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _call(self, asked: str) -> _Call | None:
        """The one under way for it, or a new one; None if the model is let be."""
        key = _key(asked)
        call = self._calls.get(key)
        if call is None and self._embedder is not None and not self._is_closed and self._rest.may_try():
            call = self._calls[key] = _Call(asyncio.ensure_future(self._ask(self._embedder, asked)))
            call.task.add_done_callback(lambda _, call=call: self._done(key, call))  # type: ignore[misc]
        return call

    async def _ask(self, embedder: Embedder, asked: str) -> NDArray[float32] | LeftOut:
        try:
            async with asyncio.timeout(self._longest_ms / 1_000):
                vectors = await embedder.embed_questions([asked])
        except TimeoutError:
            return LeftOut("down", f"the model {embedder.name} did not answer within {self._longest_ms} ms")
        except Unavailable as error:
            return LeftOut("down", str(error))
        except WrongDimensions as error:
            return LeftOut("unusable", str(error))
        except InvalidInput:  # its message may quote what was asked, and this is logged
            return LeftOut("unusable", f"the model {embedder.name} does not take what was asked")
        except Exception as error:  # a model of any make, and so is its message
            return LeftOut("down", f"the model {embedder.name} fell ({type(error).__name__})")
        return _checked(vectors, embedder)

    def _done(self, key: bytes, call: _Call) -> None:
        del self._calls[key]
        if call.task.cancelled():
            return
        found = call.task.result()
        if isinstance(found, LeftOut):
            logger.debug("a question is not embedded: {}", found.text)
            self._failed(call, found.text)
            return
        self._remembered[key] = found
        while len(self._remembered) > self._most_remembered:
            self._remembered.popitem(last=False)
        if not call.is_late:
            if self._rest.is_resting:
                logger.info("questions are embedded again")
            self._rest.succeeded()

    def _gave_up(self, call: _Call) -> None:
        self._failed(call, "it is too slow")
        call.is_late = True

    def _failed(self, call: _Call, why: str) -> None:
        """Once for each call, however many wait for it."""
        if call.is_late:
            return
        was_resting = self._rest.is_resting
        self._rest.failed()
        if self._rest.is_resting and not was_resting:
            logger.warning("words alone decide what is recalled until the embeddings model is well again: {}", why)

    def _resting(self) -> LeftOut:
        seconds = -(-self._rest.left_ms // 1_000)
        when = f"it is asked again in {seconds} s" if seconds else "it is being tried again"
        return LeftOut("resting", f"the embeddings model failed again and again; {when}")


def _asked(question: str) -> str:
    """Without what no model takes, and no more than it reads, whole words."""
    asked = " ".join(question.replace("\0", " ").encode("utf-8", "replace").decode().split())
    if len(asked) <= MOST_CHARACTERS:
        return asked
    end = asked[-MOST_CHARACTERS:]
    return end.partition(" ")[2] or end


def _key(asked: str) -> bytes:
    return hashlib.sha256(asked.encode()).digest()


def _checked(vectors: NDArray[float32] | None, embedder: Embedder) -> NDArray[float32] | LeftOut:
    if vectors is None:
        return LeftOut("down", f"the model {embedder.name} cannot embed now")
    if vectors.ndim != 2 or len(vectors) != 1:
        return LeftOut("unusable", f"the model {embedder.name} gave vectors of shape {vectors.shape} for one text")
    if vectors.shape[1] != embedder.dimensions:
        error = WrongDimensions(model=embedder.name, wanted=embedder.dimensions, given=vectors.shape[1])
        return LeftOut("unusable", str(error))
    if not is_usable(vectors):
        return LeftOut("unusable", f"the vector that the model {embedder.name} gave points nowhere")
    vector: NDArray[float32] = vectors[0].copy()
    vector.setflags(write=False)
    return vector


def _loop_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1_000)


# -- generation vectors
#
# Vectors of questions, by whoever embedded the talk that they are compared with.
#
# All talk may be embedded anew while it is asked. Also a model of the same name may be another one by then, so a
# question is embedded once for each index generation.

_OTHER_MODEL: Final = LeftOut("off", "talk was embedded anew by another model")


class GenerationVectors:
    """
    Args:
        embedder: Of the first generation; None: there are no vectors, and that is said.
        latest: The embedder whose vectors the talk has now.

    Attributes:
        first: Of questions to the first generation.
    """

    def __init__(self, embedder: Embedder | None, *, latest: Callable[[], Embedder | None]) -> None:
        self.first = QuestionVectors(embedder)
        self._embedder = embedder
        self._latest = latest
        self._first_generation: IndexGeneration | None = None
        self._later: dict[IndexGeneration, QuestionVectors] = {}

    async def embed(
        self, generation: IndexGeneration | None, question: str, *, deadline_ms: int
    ) -> NDArray[float32] | LeftOut:
        """A vector that may be compared with those of a generation; else why there is none.

        Args:
            generation: None as long as the talk has no vectors.
        """
        vectors = self._of(generation)
        return _OTHER_MODEL if vectors is None else await vectors.embed_in_time(question, deadline_ms=deadline_ms)

    async def close(self) -> None:
        """Give up what is under way."""
        for vectors in (self.first, *self._later.values()):
            await vectors.close()

    def _of(self, generation: IndexGeneration | None) -> QuestionVectors | None:
        ours, latest = self._embedder, self._latest()
        if generation is None or ours is None or generation == self._first_generation:
            return self.first
        if self._first_generation is None and generation.is_of(ours.name, ours.dimensions):
            self._first_generation = generation
            return self.first
        if generation not in self._later:
            if latest is None or not generation.is_of(latest.name, latest.dimensions):
                return None
            self._later[generation] = QuestionVectors(latest)
        return self._later[generation]
