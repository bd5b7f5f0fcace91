"""Hot context: what an NPC has in mind when it answers.

Identity, what changed of the world, and recall are gathered at the same time, each under its own deadline and in the
name of the NPC that is to answer. A late or failed part is left out and said so; identity then falls back to what it
was last time, which also keeps the beginning of the prompt the same for the prompt cache, or at first to what the
campaign's file lets this NPC know. The scene is known without asking, and so is what is known of who is named.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import replace
from typing import Final, TypeVar

from loguru import logger

from glyphoxa.context.facts import HowRelated, touched, with_chain, without, words_of
from glyphoxa.context.identity import Bible, Identities, KnownSentences
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.context.prompt import Budgets, Gathered, HotContext, characters_in
from glyphoxa.context.repairs import InMind, not_known, told_before
from glyphoxa.context.scene import Past, Scenes
from glyphoxa.context.selection import Candidates, PromptSoFar, select, without_call
from glyphoxa.context.wording import recalled_line, wording
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.domain.knowledge import AUTO_ACCEPT, RecalledFact, RecalledTalk, RecalledUtterance
from glyphoxa.language.asking import asks_how_related
from glyphoxa.language.sentences import shortened
from glyphoxa.recall.terms import Terms, asks_for_a_time
from glyphoxa.transcript.ports import PastTalk, TalkQuery
from glyphoxa.world.graph import IdentitySnapshot, KnowledgeGraph, Known

# The parts of one hot context while they are gathered: each has its own deadline, and all begin together.


T = TypeVar("T")

OF_FILE: Final = "the campaign's file"
OF_MEMORY: Final = "memory"
READ_AHEAD: Final = "memory, read while it was asked"
AS_BEFORE: Final = "as it was read before"
RECALLED_NOW: Final = "recalled now"
RECALLED_AHEAD: Final = "recalled while it was asked"


def monotonic_us() -> int:
    return time.perf_counter_ns() // 1_000


class Gathering:
    """Made where a hot context is needed, and asked for what came of it once all parts have ended.

    Args:
        now_us: A clock that only goes forward, in microseconds.
    """

    def __init__(self, now_us: Callable[[], int] = monotonic_us) -> None:
        self._now_us = now_us
        self._began_s: float | None = None
        self._omitted: dict[str, str] = {}
        self._took_us: dict[str, int] = {}
        self._sources: dict[str, str] = {}

    async def part(self, name: str, part: Awaitable[T], deadline_ms: int, *, source: str) -> T | None:
        """What `part` gives; None where it failed or was late, which is noted. Never raises.

        Args:
            deadline_ms: Since the first part of this gathering was begun, so that a part that is read twice takes no
                longer than one that is read once.
        """
        loop = asyncio.get_running_loop()
        if self._began_s is None:
            self._began_s = loop.time()
        began_us = self._now_us()
        try:
            async with asyncio.timeout_at(self._began_s + deadline_ms / 1000):
                found = await part
        except TimeoutError:
            self._omit(name, f"not there within {deadline_ms} ms")
        except GlyphoxaError as error:
            self._omit(name, str(error))
        except Exception as error:
            # The edge between memory and a turn: a bug in a look-up costs that look-up, never the NPC's answer.
            logger.exception("hot context without {}", name)
            self._omit(name, type(error).__name__)
        else:
            self._omitted.pop(name, None)
            self._sources[name] = source
            return found
        finally:
            self._took(name, began_us)
        return None

    def at_once(self, name: str, part: Callable[[], T], *, source: str) -> T | None:
        """The same for what is in memory and needs no waiting."""
        began_us = self._now_us()
        try:
            found = part()
        except Exception as error:
            logger.exception("hot context without {}", name)  # as above
            self._omit(name, type(error).__name__)
            return None
        else:
            if name not in self._omitted:  # else it is what was read before
                self._sources.setdefault(name, source)
            return found
        finally:
            self._took(name, began_us)

    def came_from(self, name: str, source: str) -> None:
        """Of a part that was there before it was asked for."""
        self._sources[name] = source

    def take(self, name: str, other: Gathering) -> None:
        """A part as another gathering has it: it was read ahead."""
        self._sources[name] = READ_AHEAD
        self._took_us[name] = other._took_us.get(name, 0)

    def has(self, name: str) -> bool:
        """Whether the part was gathered, and not left out."""
        return name in self._sources and name not in self._omitted

    @property
    def omitted(self) -> tuple[str, ...]:
        """Such as "recall: not there within 50 ms"."""
        return tuple(f"{name}: {why}" for name, why in self._omitted.items())

    @property
    def gathered(self) -> dict[str, Gathered]:
        """Of every part that was asked for, where what stands in the prompt is from and how long it took."""
        names = dict.fromkeys((*self._took_us, *self._sources))
        return {name: Gathered(self._sources.get(name, AS_BEFORE), self._took_us.get(name)) for name in names}

    def _omit(self, name: str, why: str) -> None:
        self._omitted[name] = why
        self._sources.pop(name, None)

    def _took(self, name: str, began_us: int) -> None:
        self._took_us[name] = self._took_us.get(name, 0) + self._now_us() - began_us


ENTER_DEADLINE_MS = 2_000
"""Between scenes nobody waits for an answer."""


class HotContextAssembly:
    """Implements `HotContextSource` over memory.

    Args:
        prefetch: Shared with the ears, which feed it partial transcripts.
        known_utterances: What an NPC's prompt already holds.
        holds_words: Whether it holds these words already, whenever they were said.
        heard_before: What was said to an NPC last, before the question.
        talk_of: What was said in the talk that its prompt holds, the question aside.
        story_day: Where the story stands, in words; empty if that is not known.
        past: Summaries of earlier sessions; None without any.
        accept_at: The confidence from which the campaign file's facts are accepted, where the file tells.
        repairs: Whether the prompt says what the NPC does not know, as a small model needs; see `repairs`.
        now_us: A clock that only goes forward, for how long each part takes.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        campaign: Campaign,
        *,
        graph: KnowledgeGraph | None,
        talk: PastTalk | None,
        prefetch: Prefetch,
        known_utterances: Callable[[NpcId], Sequence[UtteranceId]],
        holds_words: Callable[[NpcId, str], bool] = lambda _npc, _words: False,
        heard_before: Callable[[NpcId, str], str] = lambda _npc, _question: "",
        talk_of: Callable[[NpcId, str], Sequence[str]] = lambda _npc, _question: (),
        story_day: Callable[[], str] = str,
        budgets: Budgets | None = None,
        past: Past | None = None,
        accept_at: float = AUTO_ACCEPT,
        repairs: bool = True,
        now_us: Callable[[], int] = monotonic_us,
    ) -> None:
        self._now_us = now_us
        self._known_from = OF_FILE if graph is None else OF_MEMORY
        self._campaign = campaign
        self._graph = graph
        self._talk = talk
        self._prefetch = prefetch
        self._by_name = prefetch.by_name
        self._known_utterances = known_utterances
        self._budgets = budgets or Budgets()
        self._holds_words = holds_words
        self._identities = Identities(campaign, graph, tokens=self._budgets.identity_tokens, accept_at=accept_at)
        self._heard_before = heard_before
        self._talk_of = talk_of
        self._terms = Terms(campaign.language)
        self._own_names = {npc.id: words_of(" ".join((npc.name, *npc.aliases)), self._terms) for npc in campaign.npcs}
        self._loose_words: dict[NpcId, tuple[tuple[str, ...], frozenset[str]]] = {}
        self._how_related = HowRelated(campaign, graph)
        self._keeps = wording(campaign.language).keeps
        self._bible = Bible(
            campaign, KnownSentences(campaign, self._by_name.world_of), tokens=self._budgets.bible_tokens
        )
        self._scenes = Scenes(
            campaign, tokens=self._budgets.scene_tokens, world_of=self._by_name.world_of, story_day=story_day
        )
        self._scene: Scene | None = None
        self._entered: set[Scene] = set()
        self._past = past
        self._needs_repairs = repairs
        self._shown: dict[NpcId, tuple[str, ...]] = {}
        self._as_read: dict[NpcId, IdentitySnapshot | None] = {}
        self._read_ahead: dict[NpcId, tuple[asyncio.Task[None], Gathering]] = {}

    async def enter(self, scene: Scene) -> None:
        """The table is in this scene now. Reads what its NPCs know of themselves, so that a prompt cache can be primed
        with the very words of the first answer.
        """
        self._identities.new_scene()
        npcs = [npc.id for npc in self._campaign.npcs]
        await asyncio.gather(
            *(
                Gathering().part("identity", self._identities.read(npc), ENTER_DEADLINE_MS, source=self._known_from)
                for npc in npcs
            )
        )
        for npc in npcs:
            await self._identities.read_file(npc)
        if self._past is not None:
            await asyncio.gather(
                *(Gathering().part("past", self._past.read(npc), ENTER_DEADLINE_MS, source=OF_MEMORY) for npc in npcs)
            )
        self._scene = scene
        self._entered.add(scene)

    def new_speech(self) -> None:
        """Somebody begins to speak: the facts shown for the last question are not kept for this one, and no NPC keeps
        what it knew of itself then.
        """
        self._shown.clear()
        self._read_ahead.clear()

    def standing(self, npc: NpcId) -> tuple[str, ...]:
        """What stands in every prompt of an NPC, as it was read last: the bible, what it knows of itself,
        what happened before, and where it is.
        """
        return tuple(
            line
            for line in (
                *self._bible.lines(npc),
                *self._identities.last(npc).lines,
                self._past_of(npc),
                self._scene_line(npc),
            )
            if line
        )

    def known(self, npc: NpcId) -> Known | None:
        """What an NPC knows of itself, as it was read last; None: nothing."""
        return self._identities.last(npc).known

    async def gather(self, npc: NpcId, question: str, *, asker: str = "", within_ms: int = 0) -> HotContext:
        """See `HotContextSource.gather`."""
        parts = Gathering(self._now_us)
        _, chain, said = await asyncio.gather(
            self._identity(npc, parts),
            self._named(npc, question, within_ms, parts),
            self._recall(npc, question, within_ms, parts),
        )
        if self._by_name.itself(npc) != self._as_read.get(npc):
            # It has changed since it was read ahead, or while something was looked up.
            await self._read_identity(npc, parts, later_ms=within_ms)
        hot = self._sheet(npc, question, said, parts, chain=chain)
        return self._repaired(hot, npc, question, asker)

    async def _named(self, npc: NpcId, question: str, within_ms: int, parts: Gathering) -> Sequence[RecalledFact]:
        """Has what is known by name up to date. Returns how two hang together, where the question asks for it."""
        deadline_ms = self._budgets.part_deadline_ms
        await parts.part("facts", self._by_name.refresh(), deadline_ms, source=self._known_from)
        if not asks_how_related(question, language=self._campaign.language):
            return ()
        ends = self._how_related.ends(npc, question, self._by_name.named(npc, question, is_read=True))
        if not ends:
            return ()
        looking = self._how_related.chain(npc, ends)
        return await parts.part("relations", looking, deadline_ms + within_ms, source=OF_MEMORY) or ()

    def gather_nowait(self, npc: NpcId, question: str, *, asker: str = "") -> HotContext:
        """See `HotContextSource.gather_nowait`."""
        if question:
            self._begin_identity(npc)
        # While nobody speaks there is no question, and what the last one recalled is no part of the next.
        said = self._prefetch.recalled(npc) if question else ()
        hot = self._sheet(npc, question, said, Gathering(self._now_us))
        is_all = question and self._prefetch.has_asked(npc, without_call(question, self._campaign.npc(npc).name))
        return self._repaired(hot, npc, question, asker) if is_all else hot

    def _sheet(
        self,
        npc: NpcId,
        question: str,
        said: Sequence[RecalledTalk],
        parts: Gathering,
        *,
        chain: Sequence[RecalledFact] | None = None,
    ) -> HotContext:
        """
        Args:
            chain: How two hang together that are asked about. None while somebody still asks: nothing was read for it.
        """
        identity = self._identities.last(npc)
        looked_up = parts.at_once(
            "facts", lambda: self._by_name.facts(npc, question, is_read=chain is not None), source=self._known_from
        )
        selection = select(
            Candidates(npc, question, self._campaign.language, with_chain(chain or (), looked_up or ()), said),
            self._budgets,
            PromptSoFar(identity, self._in_talk(npc), self._shown.get(npc, ())),
        )
        if question:
            self._shown[npc] = selection.lines
        kept = self._kept(npc, question)
        scenes = parts.at_once("scene", lambda: self._lines(npc), source=self._known_from)
        return HotContext(
            facts=tuple(recalled_line(one) for one in selection.facts),
            remembered=tuple(recalled_line(one) for one in selection.talk),
            recalled=(*selection.facts, *selection.talk, *kept),
            omitted=parts.omitted,
            gathered=parts.gathered,
            identity=(*self._bible.lines(npc), *identity.lines),
            scenes=scenes or {},
            kept=tuple(one.text for one in kept),
            keeps=self._keeps,
            past=self._past_of(npc),
            rejected=selection.rejected,
        )

    def _past_of(self, npc: NpcId) -> str:
        return "" if self._past is None else self._past.of(npc)

    def _lines(self, npc: NpcId) -> dict[Scene, str]:
        return {scene: self._line(scene, npc) for scene in self._entered if npc in scene.npcs}

    def _repaired(self, hot: HotContext, npc: NpcId, question: str, asker: str) -> HotContext:
        """Add what a small model needs: what the asker told, and what the NPC does not know.

        Nothing is said to be unknown as long as a part is missing: that may be the one which knows. The names of the
        campaign's players have been heard by every NPC.
        """
        if not self._needs_repairs or not question or hot.kept:
            return hot
        talk = [one for one in hot.recalled if not isinstance(one, RecalledFact)]
        hot = replace(hot, told=told_before(question, talk, asker, language=self._campaign.language))
        if hot.omitted:
            return hot
        asked = self._campaign.npc(npc)
        mind = InMind(
            asked.name,
            facts=[one for one in hot.recalled if isinstance(one, RecalledFact)],
            remembered=talk,
            talk=[line for line in (*self._talk_of(npc, question), self._past_of(npc)) if line],
            beside=self.standing(npc),
            is_known=lambda name: self._has_heard_of(npc, name),
            asker=asker,
        )
        found = not_known(question, mind, language=self._campaign.language)
        return replace(hot, facts=(*hot.facts, *found.facts), not_known=found.facts, shrugs=found.replies)

    def _has_heard_of(self, npc: NpcId, name: str) -> bool:
        """Also of who has the name among others: Ade is Ade Okoro to who knows him."""
        asked = self._campaign.npc(npc)
        spoken = name.casefold().split()
        own = " ".join((asked.name, *asked.aliases, *(player.name for player in self._campaign.players)))
        if not set(spoken).isdisjoint(own.casefold().split()):
            return True
        longer = [each.name for each in self._campaign.entities if spoken[-1] in each.name.casefold().split()]
        return any(self._by_name.named(npc, each, is_read=True) for each in (name, name.removesuffix("s"), *longer))

    def _in_talk(self, npc: NpcId) -> Callable[[RecalledUtterance], bool]:
        """What was recalled a moment ago may have come into the talk since, or was said in it with the same words."""
        in_talk = set(self._known_utterances(npc))
        return lambda one: one.utterance_id in in_talk or self._holds_words(npc, one.text)

    def _kept(self, npc: NpcId, question: str) -> list[RecalledFact]:
        secrets = self._identities.last(npc).secrets
        if not secrets:
            return []
        found = touched(
            without(secrets, self._loose(npc)),
            question,
            just_heard=self._heard_before(npc, question),
            terms=self._terms,
            own_names=self._own_names[npc],
        )
        # What a campaign holds as a secret is as long as its author likes; a prompt that is too long is refused.
        longest = characters_in(self._budgets.identity_tokens)
        return [replace(one, text=shortened(one.text, longest)) for one in found]

    def _loose(self, npc: NpcId) -> Set[str]:
        """The words of what stands in every prompt of it; told apart once, as they seldom change."""
        standing = self.standing(npc)
        if npc not in self._loose_words or self._loose_words[npc][0] != standing:
            self._loose_words[npc] = (standing, words_of(" ".join(standing), self._terms))
        return self._loose_words[npc][1]

    def _scene_line(self, npc: NpcId) -> str:
        """From the campaign in memory: it is never late."""
        if self._scene is None or npc not in self._scene.npcs:
            return ""
        return self._scenes.line(self._scene, npc)

    def _line(self, scene: Scene, npc: NpcId) -> str:
        return self._scenes.line(scene, npc) if scene == self._scene else self._scenes.line_of_left(scene, npc)

    def _begin_identity(self, npc: NpcId) -> None:
        """It is being asked: what it knows of itself is read while they speak, once a speech."""
        if self._graph is not None and npc not in self._read_ahead:
            ahead = Gathering(self._now_us)
            self._read_ahead[npc] = (self._prefetch.start(self._read_identity(npc, ahead)), ahead)

    async def _identity(self, npc: NpcId, parts: Gathering) -> None:
        reading, ahead = self._read_ahead.pop(npc, (None, parts))
        if reading is not None:
            await reading
        if reading is not None and ahead.has("identity"):
            parts.take("identity", ahead)
        else:
            await self._read_identity(npc, parts)

    async def _read_identity(self, npc: NpcId, parts: Gathering, *, later_ms: int = 0) -> None:
        deadline_ms = self._budgets.part_deadline_ms + later_ms
        await parts.part("identity", self._identities.read(npc), deadline_ms, source=self._known_from)
        self._as_read[npc] = self._by_name.itself(npc)

    async def _recall(self, npc: NpcId, question: str, within_ms: int, parts: Gathering) -> Sequence[RecalledTalk]:
        """What memory has answered while it was spoken is not asked again."""
        if self._talk is None:
            return ()
        said = None
        if not self._prefetch.has_asked(npc, without_call(question, self._campaign.npc(npc).name)):
            deadline_ms = self._budgets.recall_deadline_ms
            if asks_for_a_time(question, language=self._campaign.language):
                deadline_ms = max(deadline_ms, within_ms)
            said = await parts.part("recall", self._past_talk(npc, question), deadline_ms, source=RECALLED_NOW)
        if said is None:
            parts.came_from("recall", RECALLED_AHEAD)
            return self._prefetch.recalled(npc)
        return said

    async def _past_talk(self, npc: NpcId, question: str) -> tuple[RecalledTalk, ...]:
        if self._talk is None or not question:
            return ()
        asked = without_call(question, self._campaign.npc(npc).name)
        query = TalkQuery(asked, self._known_utterances(npc), self._budgets.max_recalled)
        return tuple(await self._talk.recall(self._campaign.id, npc, query))
