"""Split utterances for the embedder, hold the vectors of a campaign's utterances, and compare them with a question.

An utterance is one chunk: windows of several utterances lose more than they gain. Only an utterance that is too long
for an embedder is split, at sentence ends. Each piece starts with the end of the previous one.

Vectors are stored in blocks, so that they grow during a search without copying: moving one array of 150 MB would block
audio.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from loguru import logger
from numpy import bool_, float32, int32, intp
from numpy.typing import NDArray

from glyphoxa.actors.clock import loop_ms
from glyphoxa.actors.deadline import answered_within, end_tasks
from glyphoxa.actors.limits import CircuitBreaker
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.language.sentences import sentence_spans
from glyphoxa.language.words import words

# -- arrays
#
# Arrays that grow with the transcript.


NOWHERE: Final = -1
"""The place of a missing turn."""
_SPARE: Final = 1.5


def grown(array: NDArray[Any], least: int = 64, fill: int = 0) -> NDArray[Any]:
    """Return a longer copy; callers cannot rely on the added part."""
    longer = np.zeros(max(least, int(len(array) * _SPARE)), array.dtype)
    if fill:
        longer[len(array) :] = fill
    longer[: len(array)] = array
    return longer


_BLOCK_BYTES = 1 << 22
"""With much smaller blocks, a thread requests the interpreter more often than it works. A block without a vector of
the view is skipped, because an NPC missed most sessions."""
_MOST_CHOSEN = 0.4
"""Share of a block from which comparing all of it is faster than copying the vectors of the view."""


@dataclass(frozen=True, slots=True)
class VectorsNow:
    """The vectors at one moment; unchanged while more are added.

    Attributes:
        owners: Row in the index of each vector's turn; shape (n,).
        is_further: True for all but the first piece of a turn; shape (n,).
    """

    blocks: Sequence[NDArray[float32]]
    owners: NDArray[int32]
    is_further: NDArray[bool_]

    def cosines(self, question: NDArray[float32], places: NDArray[int32], n_turns: int) -> NDArray[float32]:
        """Return the similarity of each turn of a view, shape (n_turns,): that of its nearest piece, NaN without one.

        Args:
            question: The question's embedding, of unit length as all vectors are.
            places: Places of the owners in the view; -1 for those outside it.
        """
        found = np.full(n_turns, np.nan, float32)
        size, dimensions = self.blocks[0].shape if self.blocks else (1, 0)
        in_view = np.flatnonzero(places != NOWHERE)
        products, rows = np.empty(len(in_view), float32), np.empty((size, dimensions), float32)
        begins = np.searchsorted(in_view, np.arange(0, (len(self.blocks) + 1) * size, size)).tolist()
        for at, (begin, end), block in zip(itertools.count(0, size), itertools.pairwise(begins), self.blocks):
            chosen = in_view[begin:end] - at
            # As fast as a product of matrices, which is bound by memory too, and uses one core instead of all. With
            # all, threads that spin next to audio made it five times as slow (46 ms for 100,000 turns, p95 188 ms).
            if len(chosen) > _MOST_CHOSEN * size:
                products[begin:end] = np.vecdot(block, question)[chosen]
            elif len(chosen):
                np.take(block, chosen, axis=0, out=rows[: len(chosen)], mode="clip")
                np.vecdot(rows[: len(chosen)], question, out=products[begin:end])
        is_further, at_places = self.is_further[in_view], places[in_view]
        found[at_places[~is_further]] = products[~is_further]
        np.fmax.at(found, at_places[is_further], products[is_further])
        return found


class Vectors:
    """
    Args:
        dimensions: Length of each vector.
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
                # The system allocates only what is written.
                self._blocks.append(np.zeros((self._block, self.dimensions), float32))
            self._blocks[-1][self._n % self._block] = piece
            self._owners[self._n] = row
            self._is_further[self._n] = at > 0
            self._n += 1

    def now(self) -> VectorsNow:
        return VectorsNow(tuple(self._blocks), self._owners[: self._n], self._is_further[: self._n])

    def first_of(self, rows: NDArray[int32]) -> NDArray[float32]:
        """Return the first vector of each of those rows, shape (len(rows), dimensions); zeros where there is none."""
        found = np.zeros((len(rows), self.dimensions), float32)
        where = np.full(int(max(rows.max(initial=0), self._owners[: self._n].max(initial=0))) + 1, NOWHERE, intp)
        firsts = np.flatnonzero(~self._is_further[: self._n])
        where[self._owners[firsts]] = firsts
        for at, vector in enumerate(where[rows].tolist()):
            if vector != NOWHERE:
                found[at] = self._blocks[vector // self._block][vector % self._block]
        return found


# -- pieces
#
# What is embedded of an utterance.

_VERSION = "3"  # increase it when what is embedded changes, or how: all utterances are then embedded again
MOST_WORDS = 160
"""A small embedder reads 256 tokens. A word of prose has about 1.3, an invented name three."""
OVERLAP_WORDS = 30


@dataclass(frozen=True, slots=True)
class Piece:
    """
    Attributes:
        content: The text to embed: the speaker and the words.
        content_hash: Changes with the content and with the way of splitting.
    """

    content: str
    content_hash: str


def pieces_of(text: str, *, speaker: str, most_words: int = MOST_WORDS) -> list[Piece]:
    """Return the pieces of an utterance, in order; none if it is empty.

    They do not contain the day: `glyphoxa.recall.time_reader` handles times better. With the day in front, meaning
    alone finds more for a question as it is asked. For a question as its speaker would have said it, next to the other
    signals of recall, it costs 0.75 points of R@10 on five conversations of LoCoMo (95 % interval 0.09 to 1.48).
    """
    return [
        Piece(said, hash_of(said)) for said in (f"{speaker}: {window}" for window in _windows(text.strip(), most_words))
    ]


def chunk_id(utterance_id: str, nth: int) -> str:
    """Return the id of the nth piece of an utterance, from 0: the first has the utterance's own id."""
    return utterance_id if nth == 0 else f"{utterance_id}#{nth + 1}"


def hash_of(content: str) -> str:
    """Return a hash of the content and of the way of splitting."""
    return hashlib.sha256(f"{_VERSION}\n{content}".encode("utf-8", "replace")).hexdigest()


def _windows(text: str, most_words: int) -> list[str]:
    """Return parts that end with a sentence and begin with the last sentences of the one before, as far as they fit.

    A sentence that is too long by itself is split between words.
    """
    spoken = words(text)
    starts = [word.start for word in spoken]
    begins = {n: start for start, _ in sentence_spans(text) if (n := bisect_left(starts, start)) < len(spoken)}
    windows: list[str] = []
    at = 0
    while len(spoken) - at > most_words:
        ends = [n for n in begins if at < n <= at + most_words]
        end = ends[-1] if ends else at + most_words
        windows.append(text[begins.get(at, starts[at]) : begins.get(end, starts[end])].strip())
        following = min((n for n in begins if n > end), default=len(spoken))
        least = max(at + 1, end - OVERLAP_WORDS, following - most_words)
        at = next((n for n in begins if least <= n <= end), end if ends else max(at + 1, end - OVERLAP_WORDS))
    return [*windows, text[begins.get(at, starts[at]) if at else 0 :]] if text else []


# -- embedder
#


Embed = Callable[[list[str]], Awaitable[NDArray[float32]]]


class WrongDimensions(InvalidInput):
    """A model returns vectors that no index of this database can hold. Neither a text nor an outage causes this."""

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
        name: Name and version of the model. Vectors of different names are never compared.
        dimensions: Length of each vector.
        embed: Embeds utterances to float32 of shape (len(texts), dimensions), rows of unit length. A row that the model
            could not compute is not finite or is zero. Raises Unavailable while the model is away, and InvalidInput for
            a text that it rejects.
        embed_otherwise: The same for questions, if the model treats them differently; None if not.
        batch: The preferred number of texts in a call.
        aclose: Releases resources; nothing can be embedded afterwards.
    """

    name: str
    dimensions: int
    embed: Embed
    embed_otherwise: Embed | None = None
    batch: int = 16
    aclose: Callable[[], Awaitable[None]] = _nothing_to_close

    async def embed_questions(self, texts: list[str]) -> NDArray[float32]:
        """Embed questions; see `embed`."""
        return await (self.embed_otherwise or self.embed)(texts)


def is_usable(vectors: NDArray[float32]) -> bool:
    """Return whether every row is finite and not zero. Shape (n, dimensions); true without rows."""
    return bool(np.isfinite(vectors).all() and (not len(vectors) or np.abs(vectors).max(axis=1).min() > 0))


# -- question vectors
#
# Vectors of questions, within a deadline or not at all.
#
# A turn does not wait longer than its deadline. A late vector is omitted from that turn, with the reason, and cached
# for the next one. Repeated questions are free, and callers that ask the same at the same time (every NPC that heard
# it) share one call.


MOST_REMEMBERED = 256
"""Half a megabyte at 512 dimensions. An evening has a few hundred questions, and NPCs ask about the latest."""
LONGEST_MS = 5_000
"""A longer call is cancelled, even if somebody waits for it."""
MOST_CHARACTERS = 1_000
"""About the 256 tokens that a small embedder reads. Of a longer text the end counts, because it contains the
question."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why there is no vector.

    Attributes:
        text: A clause that explains an answer. It does not quote the question.
    """

    text: str


OFF = LeftOut("no embeddings model is set")
EMPTY = LeftOut("nothing was asked")
CLOSED = LeftOut("the session is over")


class QuestionVectors:
    """
    Args:
        embedder: None: there are no vectors, and results say so.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._rest = CircuitBreaker(loop_ms)
        self._remembered: OrderedDict[bytes, NDArray[float32]] = OrderedDict()
        self._calls: dict[bytes, asyncio.Task[NDArray[float32] | LeftOut]] = {}
        self._late: set[bytes] = set()
        """Calls in progress for which some caller could not wait."""
        self._is_closed = False

    async def embed_in_time(self, question: str, *, deadline_ms: int) -> NDArray[float32] | LeftOut:
        """Return the vector of a question, or why there is none: float32, shape (dimensions,), unit length, read-only.

        Never raises for an error of the model. A caller that stops waiting cancels nothing: the call continues, and its
        result is cached for the next time.

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
        call = self._call(key, asked, self._embedder)
        if call is None:
            return CLOSED if self._is_closed else self._resting()
        done, _ = await asyncio.wait({call}, timeout=max(0, deadline_ms) / 1_000)
        if not done:
            self._failed(key, "it is too slow")
            self._late.add(key)
            return LeftOut(f"the embedding was late: it took more than {deadline_ms} ms")
        return CLOSED if call.cancelled() else call.result()

    def remembered(self, question: str) -> NDArray[float32] | None:
        """Return the cached vector of a question, at once."""
        return self._remembered.get(_key(_asked(question)))

    async def close(self) -> None:
        """Cancel calls in progress. From then on, only cached vectors are returned."""
        self._is_closed = True
        await end_tasks(*self._calls.values())

    def _call(self, key: bytes, asked: str, embedder: Embedder) -> asyncio.Task[NDArray[float32] | LeftOut] | None:
        """Return the call in progress, or a new one; None if the model is paused."""
        call = self._calls.get(key)
        if call is None and not self._is_closed and self._rest.allows_call():
            call = self._calls[key] = asyncio.ensure_future(self._ask(embedder, asked))
            call.add_done_callback(partial(self._done, key))
        return call

    async def _ask(self, embedder: Embedder, asked: str) -> NDArray[float32] | LeftOut:
        try:
            async with answered_within(LONGEST_MS, f"the model {embedder.name} did not answer"):
                vectors = await embedder.embed_questions([asked])
        except (Unavailable, WrongDimensions) as error:
            return LeftOut(str(error))
        except InvalidInput:  # its message may quote the question, and this is logged
            return LeftOut(f"the model {embedder.name} rejects the question")
        except Exception as error:  # any kind of model, and any message
            return LeftOut(f"the model {embedder.name} failed ({type(error).__name__})")
        return _checked(vectors, embedder)

    def _done(self, key: bytes, call: asyncio.Task[NDArray[float32] | LeftOut]) -> None:
        del self._calls[key]
        if call.cancelled():
            return
        found = call.result()
        if isinstance(found, LeftOut):
            logger.debug("the question is not embedded: {}", found.text)
            self._failed(key, found.text)
            self._late.discard(key)
            return
        self._remembered[key] = found
        while len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)
        if key not in self._late:
            if self._rest.is_open:
                logger.info("questions are embedded again")
            self._rest.succeeded()
        self._late.discard(key)

    def _failed(self, key: bytes, why: str) -> None:
        """Counts once for each call, however many wait for it."""
        if key in self._late:
            return
        was_open = self._rest.is_open
        self._rest.failed()
        if self._rest.is_open and not was_open:
            logger.warning("recall uses words only until the embeddings model recovers: {}", why)

    def _resting(self) -> LeftOut:
        seconds = -(-self._rest.retry_in_ms // 1_000)
        when = f"it is retried in {seconds} s" if seconds else "it is being retried"
        return LeftOut(f"the embeddings model failed repeatedly; {when}")


def _asked(question: str) -> str:
    """Drop what no model accepts, and cut to what it reads, at whole words."""
    asked = " ".join(question.replace("\0", " ").encode("utf-8", "replace").decode().split())
    if len(asked) <= MOST_CHARACTERS:
        return asked
    end = asked[-MOST_CHARACTERS:]
    return end.partition(" ")[2] or end


def _key(asked: str) -> bytes:
    return hashlib.sha256(asked.encode()).digest()


def _checked(vectors: NDArray[float32], embedder: Embedder) -> NDArray[float32] | LeftOut:
    if vectors.ndim != 2 or len(vectors) != 1:
        return LeftOut(f"the model {embedder.name} returned vectors of shape {vectors.shape} for one text")
    if vectors.shape[1] != embedder.dimensions:
        error = WrongDimensions(model=embedder.name, wanted=embedder.dimensions, given=vectors.shape[1])
        return LeftOut(str(error))
    if not is_usable(vectors):
        return LeftOut(f"the vector that the model {embedder.name} gave points nowhere")
    vector: NDArray[float32] = vectors[0].copy()
    vector.setflags(write=False)
    return vector


# -- text vectors
#
# Vectors of what a campaign's author wrote: descriptions, attributes, bible, personas. They are embedded in the
# background when a campaign is loaded, so that a question is compared with all of them at once. Who may read which of
# the texts is decided by their owners, who look up their own texts in the answer.

ABOUT_IT: Final = 0.3
"""From this nearness on, a text is about a question. On the campaigns by which grounding was tuned, in English and in
German, the best text of most questions with an answer is as near, and of few others."""
AT_HAND: Final = 0.1
"""Added for texts about the NPC that is asked, its place, and the world: "you" and "here" are short words."""
NOTHING_NEAR: Final[Mapping[str, float]] = MappingProxyType({})
_MOST_NEAR: Final = 64
_MOST_ALIKE: Final = 0.6
"""Average cosine of a campaign with few texts, or with all about one thing."""
MOST_TEXTS: Final = 8_000
"""Half a minute of one core, and 12 MB. Further texts are found by names and words only."""


class TextVectors:
    """
    Args:
        embedder: None: no text is near to anything.
        questions: Vectors of questions, of the same model.
    """

    def __init__(self, embedder: Embedder | None, questions: QuestionVectors) -> None:
        self._embedder = embedder
        self._questions = questions
        self._texts: list[str] = []
        self._vectors = Vectors(1 if embedder is None else embedder.dimensions)
        self._wanted: dict[str, None] = {}
        self._taken: set[str] = set()
        self._learning: asyncio.Task[None] | None = None
        self._last: tuple[bytes, int, Mapping[str, float]] | None = None

    def learn(self, texts: Iterable[str]) -> None:
        """Embed texts in the background; known ones cost nothing."""
        if self._embedder is None:
            return
        self._wanted.update((text, None) for text in texts if text not in self._taken)
        if self._wanted and (self._learning is None or self._learning.done()):
            self._learning = asyncio.get_running_loop().create_task(self._learn(self._embedder))

    async def wait_until_learned(self) -> None:
        """Wait for the texts so far. A failed model is asked again with the next texts."""
        if self._learning is not None:
            await asyncio.wait({self._learning})

    async def ask(self, question: str, *, deadline_ms: int) -> None:
        """Embed a question, so that `nearest` knows it. Never raises for an error of the model."""
        await self._questions.embed_in_time(question, deadline_ms=deadline_ms)

    def nearest(self, question: str) -> Mapping[str, float]:
        """Return the nearest texts with their nearness, best first, at once.

        It is the cosine, from 0 for the average text to 1. With a model that does not know their language, all texts
        are alike. Empty while the question has no vector; see `ask`.
        """
        vector = self._questions.remembered(question) if self._texts else None
        if vector is None:
            return NOTHING_NEAR
        key = (_key(_asked(question)), len(self._texts))
        if self._last is None or self._last[:2] != key:
            n = len(self._texts)
            cosines = self._vectors.now().cosines(vector, np.arange(n, dtype=int32), n)
            usual = min(max(0.0, float(cosines.mean())), _MOST_ALIKE)
            nearness = (cosines - usual) / (1 - usual)
            near = np.flatnonzero(nearness >= ABOUT_IT - AT_HAND)
            best = near[np.argsort(-nearness[near], kind="stable")][:_MOST_NEAR].tolist()
            self._last = (*key, {self._texts[at]: float(nearness[at]) for at in best})
        return self._last[2]

    async def close(self) -> None:
        """Stop embedding."""
        if self._learning is not None:
            await end_tasks(self._learning)

    async def _learn(self, embedder: Embedder) -> None:
        while self._wanted and len(self._texts) < MOST_TEXTS:
            texts = list(itertools.islice(self._wanted, embedder.batch))
            try:
                vectors = await embedder.embed(texts)
            except Exception as error:  # any kind of model
                logger.warning("facts are found by names and words only: {}", type(error).__name__)
                return
            if vectors.shape != (len(texts), embedder.dimensions) or not is_usable(vectors):
                logger.warning("facts are found by names and words only: the model {} embeds none", embedder.name)
                return
            for text, vector in zip(texts, vectors, strict=True):
                self._vectors.put(len(self._texts), vector[None])
                self._texts.append(text)
                self._taken.add(text)
                del self._wanted[text]
