"""The vectors of a campaign's talk, and how near each is to a question.

They are kept in blocks, so that talk may grow while it is searched and nothing is copied: growing one array of 150 MB
would hold up whoever speaks for as long as it takes to move it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from loguru import logger
from numpy import bool_, float32, int32, intp
from numpy.typing import NDArray

from glyphoxa.actors.circuit_breaker import CircuitBreaker
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.transcript.ports import IndexGeneration

# -- arrays
#
# Arrays that grow with the talk.


NOWHERE: Final = -1
"""The place of what is not there."""
_SPARE: Final = 1.5


def grown(array: NDArray[Any], least: int = 64, fill: int = 0) -> NDArray[Any]:
    """A longer copy; what is added is not told from the outside."""
    longer = np.zeros(max(least, int(len(array) * _SPARE)), array.dtype)
    if fill:
        longer[len(array) :] = fill
    longer[: len(array)] = array
    return longer


_BLOCK_BYTES = 1 << 22
"""With much smaller ones a thread asks for the interpreter more often than it works. A block without a vector of the
view is skipped: an NPC was not at most sessions.
"""


@dataclass(frozen=True, slots=True)
class VectorsNow:
    """What is there at one moment. It stays as it is while more comes.

    Attributes:
        owners: Whose each vector is, by its row in the index; shape (n,).
        is_further: Of the pieces of one turn all but the first; shape (n,).
    """

    blocks: Sequence[NDArray[float32]]
    owners: NDArray[int32]
    is_further: NDArray[bool_]

    def cosines(self, question: NDArray[float32], places: NDArray[int32], n_turns: int) -> NDArray[float32]:
        """Of each turn of a view, shape (n_turns,): the nearest of its pieces speaks for it. NaN for those without.

        Args:
            question: Of unit length, as all of them are.
            places: Where the owners stand in the view; -1 for those that are not in it.
        """
        found = np.full(n_turns, np.nan, float32)
        n, size = len(self.owners), len(self.blocks[0]) if self.blocks else 1
        products = np.empty(n, float32)
        is_in_view = places != NOWHERE
        for at, block in zip(range(0, n, size), self.blocks, strict=False):
            if not is_in_view[at : at + size].any():
                continue
            # As fast as a product of matrices, which waits for memory as this does, and takes one core instead of all:
            # threads that spin beside speech made it five times as slow (46 ms for 100,000 turns, p95 188 ms).
            np.vecdot(block[: n - at], question, out=products[at : at + size])
        first = is_in_view & ~self.is_further
        found[places[first]] = products[first]
        more = np.flatnonzero(is_in_view & self.is_further)
        np.fmax.at(found, places[more], products[more])
        return found


class Vectors:
    """
    Args:
        dimensions: Of each.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._block = max(64, _BLOCK_BYTES // (4 * dimensions))
        self._blocks: list[NDArray[float32]] = []
        self._owners = np.zeros(64, int32)
        self._is_further = np.zeros(64, bool_)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def put(self, row: int, pieces: NDArray[float32]) -> None:
        """
        Args:
            pieces: Shape (pieces, dimensions).
        """
        if self._n + len(pieces) > len(self._owners):
            self._owners = grown(self._owners, self._n + len(pieces))
            self._is_further = grown(self._is_further, self._n + len(pieces))
        for at, piece in enumerate(pieces):
            if self._n == self._block * len(self._blocks):
                # Of memory that is not written to the system gives none.
                self._blocks.append(np.zeros((self._block, self.dimensions), float32))
            self._blocks[-1][self._n % self._block] = piece
            self._owners[self._n] = row
            self._is_further[self._n] = at > 0
            self._n += 1

    def now(self) -> VectorsNow:
        return VectorsNow(tuple(self._blocks), self._owners[: self._n], self._is_further[: self._n])

    def first_of(self, rows: NDArray[int32]) -> NDArray[float32]:
        """The first vector of each of those rows, shape (len(rows), dimensions); zeros where there is none."""
        found = np.zeros((len(rows), self.dimensions), float32)
        where = np.full(int(max(rows.max(initial=0), self._owners[: self._n].max(initial=0))) + 1, NOWHERE, intp)
        firsts = np.flatnonzero(~self._is_further[: self._n])
        where[self._owners[firsts]] = firsts
        for at, vector in enumerate(where[rows].tolist()):
            if vector != NOWHERE:
                found[at] = self._blocks[vector // self._block][vector % self._block]
        return found


# -- embedder
#


Embed = Callable[[list[str]], Awaitable[NDArray[float32] | None]]


class WrongDimensions(InvalidInput):
    """A model gives vectors that no index of this database can hold: no text's fault, and no passing trouble."""

    def __init__(self, *, model: str, wanted: int, given: int) -> None:
        super().__init__(
            f"memory.embedding_dimensions is {wanted}, but the model {model} gave a vector of {given}: set it to "
            f"{given} and run `glyphoxa worker reindex`, or name another model as providers.embeddings.model"
        )


async def _nothing_to_close() -> None: ...


@dataclass(frozen=True, slots=True)
class Embedder:
    """A model that turns texts into vectors.

    Attributes:
        name: Of the model and its version. Vectors of different names are never compared.
        dimensions: Of each vector.
        embed: What shall be found, to float32 of shape (len(texts), dimensions), rows of unit length. A row that the
            model could not give is not finite or zero. None: cannot now. Raises Unavailable as long as the model is
            away, and InvalidInput about a text that it does not take.
        embed_otherwise: The same of questions, where the model tells them from what they shall find; None: it does not.
        batch: So many texts are best given at once.
        aclose: Gives back what it holds; nothing can be embedded afterwards.
    """

    name: str
    dimensions: int
    embed: Embed
    embed_otherwise: Embed | None = None
    batch: int = 16
    aclose: Callable[[], Awaitable[None]] = _nothing_to_close

    async def embed_questions(self, texts: list[str]) -> NDArray[float32] | None:
        """As `embed`, for questions."""
        return await (self.embed_otherwise or self.embed)(texts)


def is_usable(vectors: NDArray[float32]) -> bool:
    """Whether every row points somewhere. Shape (n, dimensions); without rows it is."""
    return bool(np.isfinite(vectors).all() and (not len(vectors) or np.abs(vectors).max(axis=1).min() > 0))


# -- question vectors
#
# Vectors of questions, in time or not at all.
#
# A turn waits for its question's vector no longer than it can; what comes later is left out of that turn, with the
# reason, and there for the next. Questions that were asked before cost nothing, and those who ask the same at the same
# moment (every NPC that heard it) share one call.


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
        if call is None and self._embedder is not None and not self._is_closed and self._rest.allows_call():
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
            if self._rest.is_open:
                logger.info("questions are embedded again")
            self._rest.succeeded()

    def _gave_up(self, call: _Call) -> None:
        self._failed(call, "it is too slow")
        call.is_late = True

    def _failed(self, call: _Call, why: str) -> None:
        """Once for each call, however many wait for it."""
        if call.is_late:
            return
        was_open = self._rest.is_open
        self._rest.failed()
        if self._rest.is_open and not was_open:
            logger.warning("words alone decide what is recalled until the embeddings model is well again: {}", why)

    def _resting(self) -> LeftOut:
        seconds = -(-self._rest.retry_in_ms // 1_000)
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
