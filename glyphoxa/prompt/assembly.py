"""Assemble the hot context: what an NPC has in mind when it answers.

Changes of the world and recall are gathered in parallel, each under its own deadline and in the name of the NPC that
answers. A late or failed part is left out and reported. Identity, scene and the facts about named entities are in
memory; before the world was read, the identity is what the campaign's file lets this NPC know. It changes with the
world only, which keeps the start of the prompt for the prompt cache.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

from loguru import logger

from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import RecalledFact, RecalledTalk, RecalledUtterance
from glyphoxa.domain.session_state import SummarySentence
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.asking import question_of
from glyphoxa.language.sentences import shortened
from glyphoxa.language.text import Text, language_of
from glyphoxa.prompt.facts import MOST_WRITTEN, HowRelated, touched, with_chain, without, written
from glyphoxa.prompt.identity import Bible, Identities, KnownSentences
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.prompt import Budgets, Gathered, HotContext, characters_in
from glyphoxa.prompt.repairs import InMind, PromptRepair
from glyphoxa.prompt.scene import Past, Scenes
from glyphoxa.prompt.selection import IN_EVERY_PROMPT, Candidates, select
from glyphoxa.prompt.when import SaidWhen
from glyphoxa.prompt.wording import recalled_line, wording
from glyphoxa.recall.table_calendar import Days
from glyphoxa.recall.time_reader import read_time
from glyphoxa.recall.vectors import ABOUT_IT, AT_HAND
from glyphoxa.transcript.ports import PastTalk
from glyphoxa.world.graph import KnowledgeGraph, Known

# The parts of one hot context while they are gathered: each has its own deadline, and all start together.


T = TypeVar("T")

OF_FILE: Final = "the campaign's file"
OF_MEMORY: Final = "memory"
AS_BEFORE: Final = "as it was read before"
RECALLED_NOW: Final = "recalled now"
RECALLED_AHEAD: Final = "recalled while it was asked"


def monotonic_us() -> int:
    return time.perf_counter_ns() // 1_000


class Gathering:
    """Gathers parts for one hot context, and reports on them once all have ended.

    Args:
        now_us: A monotonic clock in microseconds.
    """

    def __init__(self, now_us: Callable[[], int] = monotonic_us) -> None:
        self._now_us = now_us
        self._began_s: float | None = None
        self._omitted: dict[str, str] = {}
        self._took_us: dict[str, int] = {}
        self._sources: dict[str, str] = {}

    async def part(self, name: str, part: Awaitable[T], deadline_ms: int, *, source: str) -> T | None:
        """Return the result of `part`; None if it failed or was late, which is recorded. Never raises.

        Args:
            deadline_ms: From the start of this gathering's first part.
        """
        loop = asyncio.get_running_loop()
        if self._began_s is None:
            self._began_s = loop.time()
        found: T | None = None
        with self._recorded(name, deadline_ms):
            async with asyncio.timeout_at(self._began_s + deadline_ms / 1000):
                found = await part
            self._omitted.pop(name, None)
            self._sources[name] = source
        return found

    def at_once(self, name: str, part: Callable[[], T], *, source: str) -> T | None:
        """Return the result of a part that is in memory and needs no waiting."""
        found: T | None = None
        with self._recorded(name):
            found = part()
            if name not in self._omitted:  # otherwise it is from an earlier read
                self._sources.setdefault(name, source)
        return found

    def came_from(self, name: str, source: str) -> None:
        """Record the source of a part that was present before."""
        self._sources[name] = source

    def has(self, name: str) -> bool:
        """Return whether the part was gathered and not left out."""
        return name in self._sources and name not in self._omitted

    @property
    def omitted(self) -> tuple[str, ...]:
        """Return parts left out, such as "recall: not there within 50 ms"."""
        return tuple(f"{name}: {why}" for name, why in self._omitted.items())

    @property
    def gathered(self) -> dict[str, Gathered]:
        """Return, for each requested part, the source of what is in the prompt and how long it took."""
        names = dict.fromkeys((*self._took_us, *self._sources))
        return {name: Gathered(self._sources.get(name, AS_BEFORE), self._took_us.get(name)) for name in names}

    @contextmanager
    def _recorded(self, name: str, deadline_ms: int = 0) -> Iterator[None]:
        """Record how long a part took, and why it is missing if it raises."""
        began_us = self._now_us()
        try:
            yield
        except TimeoutError:
            self._omit(name, f"not there within {deadline_ms} ms")
        except GlyphoxaError as error:
            self._omit(name, str(error))
        except Exception as error:
            # The boundary between memory and a turn: a bug in a look-up costs that look-up, never the NPC's answer.
            logger.exception("hot context without {}", name)
            self._omit(name, type(error).__name__)
        finally:
            self._took_us[name] = self._took_us.get(name, 0) + self._now_us() - began_us

    def _omit(self, name: str, why: str) -> None:
        self._omitted[name] = why
        self._sources.pop(name, None)


_LINES: Final = ("facts", "not_known", "shrugs", "told", "remembered", "identity", "glossary", "kept")
"""The lines of a hot context."""
ENTER_DEADLINE_MS = 2_000
"""Between scenes nobody waits for an answer."""
_ANY_DAYS: Final = Days(1_700_000_000_000)
"""Whether a question contains a time does not depend on the day."""


class HotContextAssembly:
    """Implements `HotContextSource` over memory.

    Args:
        prefetch: Shared with the ears, which send it partial transcripts. Its conversations are in the prompts.
        when: Adds when things were said, and knows the story day; None adds nothing.
        past: Summaries of earlier sessions; None without any.
        repairs: Whether the prompt states what the NPC does not know, as a small model needs; see `repairs`.
        now_us: A monotonic clock, for the time of each part.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        campaign: Campaign,
        *,
        graph: KnowledgeGraph | None,
        talk: PastTalk | None,
        prefetch: Prefetch,
        when: SaidWhen | None = None,
        budgets: Budgets | None = None,
        past: Past | None = None,
        repairs: bool = True,
        now_us: Callable[[], int] = monotonic_us,
    ) -> None:
        self._safety = topics_of(campaign)
        self._now_us = now_us
        self._known_from = OF_FILE if graph is None else OF_MEMORY
        self._campaign = campaign
        self._graph = graph
        self._talk = talk
        self.prefetch = prefetch
        self._by_name = prefetch.by_name
        self._budgets = budgets or Budgets()
        self._identities = Identities(
            campaign,
            self._by_name,
            tokens=self._budgets.identity_tokens,
        )
        self._how_related = HowRelated(campaign, graph)
        self._keeps, self._veil = wording(campaign.language).keeps, wording(campaign.language).veil
        sentences = KnownSentences(campaign, self._by_name.known)
        self._bible = Bible(
            campaign,
            sentences,
            budgets=self._budgets,
            terms=self._by_name.terms,
        )
        self._scenes = Scenes(
            campaign,
            sentences,
            tokens=self._budgets.scene_tokens,
            story_day=str if when is None else when.today,
        )
        self._scene: Scene | None = None
        self._entered: dict[Scene, None] = {}
        self._past = past
        self._dated: Callable[[Any], Any] = (lambda one: one) if when is None else when.dated
        self._needs_repairs = repairs
        self._shown: dict[NpcId, tuple[str, ...]] = {}

    def _learn(self) -> None:
        """Embed the author's texts in the background."""
        self._by_name.learn(text for npc in self._campaign.npcs for *_, text in self._bible.texts(npc.id))

    async def enter(self, scene: Scene) -> None:
        """Enter a scene: read what its NPCs know of themselves, so that a prompt cache can be prepared with the first
        answer's exact words.
        """
        await Gathering().part("facts", self._by_name.refresh(), ENTER_DEADLINE_MS, source=self._known_from)
        npcs = [npc.id for npc in self._campaign.npcs]
        for npc in npcs:
            self._identities.read(npc)
        if self._past is not None:
            reading = [self._past.read(npc, self._identities.last(npc).holdings) for npc in npcs]
            await asyncio.gather(
                *(Gathering().part("past", one, ENTER_DEADLINE_MS, source=OF_MEMORY) for one in reading)
            )
        self._scene = scene
        self._by_name.place = scene.location
        self._entered[scene] = None
        self._learn()

    def new_speech(self) -> None:
        """Start a new speech: drop the facts of the last question."""
        self._shown.clear()

    def standing(self, npc: NpcId) -> tuple[str, ...]:
        """Return what is in all prompts of an NPC, as read last: bible, identity, past sessions and scene."""
        lines = [
            *self._bible.lines(npc),
            *self._identities.last(npc).lines,
            *self._glossary(npc),
            self._past_of(npc),
            self._scene_line(npc),
        ]
        return tuple(self._safety.allowed_in(lines))

    def known(self, npc: NpcId) -> Known | None:
        """Return what an NPC knows of itself, as read last; None: nothing."""
        return self._identities.last(npc).known

    async def gather(self, npc: NpcId, question: str, *, asker: str = "", within_ms: int = 0) -> HotContext:
        """See `HotContextSource.gather`."""
        parts = Gathering(self._now_us)
        chain, said = await asyncio.gather(
            self._named(npc, question, within_ms, parts),
            self._recall(npc, question, within_ms, parts),
        )
        hot = self._sheet(npc, question, said, parts, chain=chain)
        return self._allowed(self._repaired(hot, npc, question, asker))

    async def _named(self, npc: NpcId, question: str, within_ms: int, parts: Gathering) -> Sequence[RecalledFact]:
        """Update what is known by name. Return the relations between two entities, if the question asks for them."""
        deadline_ms = self._budgets.part_deadline_ms
        _, _ = await asyncio.gather(
            parts.part("facts", self._by_name.refresh(), deadline_ms, source=self._known_from),
            self._by_name.understand(npc, question, deadline_ms=deadline_ms),
        )
        ends = self._how_related.ends(npc, question, lambda: self._by_name.named(npc, question, is_read=True))
        if not ends:
            return ()
        looking = self._how_related.chain(npc, ends)
        return await parts.part("relations", looking, deadline_ms + within_ms, source=OF_MEMORY) or ()

    def gather_nowait(self, npc: NpcId, question: str, *, asker: str = "") -> HotContext:
        """See `HotContextSource.gather_nowait`."""
        # While nobody speaks there is no question, and results of the last one do not belong to the next.
        said = self.prefetch.recalled(npc) if question else ()
        hot = self._sheet(npc, question, said, Gathering(self._now_us))
        is_all = question and self.prefetch.has_asked(npc, self._by_name.asked(npc, question))
        return self._allowed(self._repaired(hot, npc, question, asker) if is_all else hot)

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
            chain: The relations between the entities in the question. None while the player still speaks: nothing was
                read.
        """
        # After the look-ups, during which it may have changed.
        source = self._known_from if self._graph is None or parts.has("facts") else AS_BEFORE
        parts.at_once("identity", lambda: self._identities.read(npc), source=source)
        identity = self._identities.last(npc)
        looked_up = parts.at_once(
            "facts", lambda: self._by_name.facts(npc, question, is_read=chain is not None), source=self._known_from
        )
        found = (*map(self._dated, looked_up or ()), *self._written(npc, question))
        said = [self._dated(one) for one in said]
        selection = select(
            Candidates(
                question,
                self._campaign.language,
                with_chain(chain or (), found),
                said,
                self._safety.forbids,
                identity.tells,
                self._in_talk(npc),
                self._shown.get(npc, ()),
            ),
            self._budgets,
        )
        if question:
            self._shown[npc] = selection.lines
        touched_now = self._kept(npc, question)
        # To a plain remark there is nothing to deny. A model that reads the secret denies it unasked, or reveals it.
        spoken = language_of(question) or self._campaign.language
        kept = [] if question_of(question, spoken).is_remark else touched_now
        kept = [one for one in kept if not self._safety.forbids(one.text)]
        scenes = parts.at_once("scene", lambda: self._lines(npc), source=self._known_from)
        glossary = self._glossary(npc)
        facts = [recalled_line(one) for one in selection.facts]
        return HotContext(
            facts=(*facts, *self._mentioned(npc, question, (*glossary, *facts))),
            remembered=tuple(recalled_line(one) for one in selection.talk),
            recalled=(*selection.facts, *selection.talk, *kept),
            omitted=parts.omitted,
            gathered=parts.gathered,
            identity=(*self._bible.lines(npc), *identity.lines),
            glossary=glossary,
            scenes=scenes or {},
            kept=tuple(one.text for one in kept),
            keeps=self._keeps,
            guarded=() if kept else tuple(one.text for one in touched_now),
            past=self._past_of(npc),
            rejected=selection.rejected,
        )

    def _written(self, npc: NpcId, question: str) -> list[RecalledFact]:
        """Return the sentences of the NPC's persona and of the bible that are near to a question in meaning."""
        nearest = self._by_name.nearest(npc, question)
        if not nearest:
            return []
        texts = ((nearest.get(text, 0.0) + AT_HAND, said, source) for source, said, text in self._bible.texts(npc))
        near = sorted((one for one in texts if one[0] >= ABOUT_IT), reverse=True)
        entity = self._campaign.npc(npc).entity_id
        return [written(said, source, entity, similarity) for similarity, said, source in near[:MOST_WRITTEN]]

    def _allowed(self, hot: HotContext) -> HotContext:
        """Return it without what must not come up, and with a direction if what it recalls is veiled."""
        lines: dict[str, Any] = {name: tuple(self._safety.allowed_in([*getattr(hot, name)])) for name in _LINES}
        recalled = (*lines["facts"], *lines["remembered"], *lines["kept"])
        return replace(
            hot,
            **lines,
            scenes={scene: self._safety.allowed(line) for scene, line in hot.scenes.items()},
            past=self._safety.allowed(hot.past),
            direction=self._veil if any(map(self._safety.flags, recalled)) else "",
        )

    def _glossary(self, npc: NpcId) -> tuple[str, ...]:
        beside = (*self._bible.lines(npc), *self._identities.last(npc).lines, self._past_of(npc))
        return self._bible.glossary(npc, (self._campaign.npc(npc).persona, *beside, *self._lines(npc).values()))

    def _mentioned(self, npc: NpcId, question: str, shown: Sequence[str]) -> list[str]:
        """Return the terms of the question and of the talk, the latest first, that are not `shown`."""
        heard = self.prefetch.conversations.get(npc)
        talk = [] if heard is None else [*heard.said_beside(question)[::-1], *(one.text for one in heard.summary)]
        return self._bible.mentioned(npc, (question, *talk), shown) if question else []

    def _past_of(self, npc: NpcId) -> str:
        return "" if self._past is None else self._safety.allowed(self._past.of(npc))

    def _lines(self, npc: NpcId) -> dict[Scene, str]:
        return {scene: self._line(scene, npc) for scene in self._entered if npc in scene.npcs}

    def _repaired(self, hot: HotContext, npc: NpcId, question: str, asker: str) -> HotContext:
        """Add what a small model needs: what the asker told, and what the NPC does not know.

        While a part is missing, nothing is declared unknown, because that part may contain it. Every NPC has heard the
        names of the campaign's players.
        """
        if not self._needs_repairs or not question or hot.kept:
            return hot
        heard = self.prefetch.conversations.get(npc)
        mind = InMind(
            self._campaign.npc(npc).name,
            facts=_looked_up(hot),
            remembered=[one for one in hot.recalled if not isinstance(one, RecalledFact)],
            talk=[] if heard is None else heard.said_beside(question),
            told=self._told(npc),
            beside=(*self.standing(npc), *set(hot.facts).difference(map(recalled_line, hot.recalled))),
            is_known=lambda name: self._has_heard_of(npc, name),
            asker=asker,
        )
        repair = PromptRepair(self._by_name.asked(npc, question), mind, language=self._campaign.language)
        if then := repair.said_then():
            return replace(hot, told=then, shrugs=then)
        hot = replace(hot, told=repair.told())
        if hot.omitted:
            return hot
        found = repair.not_known()
        return replace(hot, facts=(*hot.facts, *found.facts), not_known=found.facts, shrugs=found.replies)

    def _has_heard_of(self, npc: NpcId, name: str) -> bool:
        """Return whether an NPC has heard a name, also as a part of a longer one: Ade is Ade Okoro to anyone who knows
        him.
        """
        asked = self._campaign.npc(npc)
        spoken = name.casefold().split()
        own = " ".join((asked.name, *asked.aliases, *(player.name for player in self._campaign.known_players)))
        if not set(spoken).isdisjoint(own.casefold().split()):
            return True
        world = self._by_name.world
        is_part = world is not None and world.has_word(npc, spoken[-1])
        return is_part or any(self._by_name.named(npc, each, is_read=True) for each in (name, name.removesuffix("s")))

    def _in_talk(self, npc: NpcId) -> Callable[[RecalledUtterance], bool]:
        """A recalled utterance may have entered the prompt since, or been said again in the same words, or a summary
        may contain all that it says.
        """
        if (heard := self.prefetch.conversations.get(npc)) is None:
            return lambda _: False
        in_talk, past = set(heard.utterance_ids), self._past_of(npc)
        return lambda one: (
            one.utterance_id in in_talk
            or heard.holds(one.text)
            or " ".join(one.text.split()) in past
            or self._summarises(heard.summary, one)
        )

    def _summarises(self, summary: Sequence[SummarySentence], one: RecalledUtterance) -> bool:
        language = self._campaign.language
        return any(
            one.utterance_id in sentence.evidence
            and Text.of(one.text).telling(language) <= Text.of(sentence.text).telling(language)
            for sentence in summary
        )

    def _told(self, npc: NpcId) -> list[str]:
        """Return the summaries in an NPC's prompt: of this session, and of earlier ones."""
        heard = self.prefetch.conversations.get(npc)
        told = [] if heard is None else [sentence.text for sentence in heard.summary]
        return [*told, *filter(None, [self._past_of(npc)])]

    def _kept(self, npc: NpcId, question: str) -> list[RecalledFact]:
        secrets = self._identities.last(npc).secrets
        if not secrets:
            return []
        heard = self.prefetch.conversations.get(npc)
        found = touched(
            without(secrets, self._loose(npc)),
            self._by_name.asked(npc, question),
            just_heard=heard.heard_before(question) if heard is not None else "",
            language=self._campaign.language,
        )
        # A secret of a campaign has any length, and a prompt that is too long is rejected.
        longest = characters_in(self._budgets.identity_tokens)
        return [replace(one, text=shortened(one.text, longest)) for one in found]

    def _loose(self, npc: NpcId) -> Set[str]:
        """Return the words of the NPC's names, and those that are in all its prompts."""
        who = self._campaign.npc(npc)
        return Text.of(" ".join((who.name, *who.aliases, *self.standing(npc)))).telling(self._campaign.language)

    def _scene_line(self, npc: NpcId) -> str:
        """Return the scene from the campaign in memory, which is never late."""
        if self._scene is None or npc not in self._scene.npcs:
            return ""
        return self._scenes.line(self._scene, npc)

    def _line(self, scene: Scene, npc: NpcId) -> str:
        return self._scenes.line(scene, npc) if scene == self._scene else self._scenes.line_of_left(scene, npc)

    async def _recall(self, npc: NpcId, question: str, within_ms: int, parts: Gathering) -> Sequence[RecalledTalk]:
        """Recall, unless memory answered this question during the speech."""
        if self._talk is None:
            return ()
        said = None
        if not self.prefetch.has_asked(npc, self._by_name.asked(npc, question)):
            deadline_ms = self._budgets.recall_deadline_ms
            if not read_time(question, language=self._campaign.language, days=_ANY_DAYS).is_timeless:
                deadline_ms = max(deadline_ms, within_ms)
            said = await parts.part("recall", self._past_talk(npc, question), deadline_ms, source=RECALLED_NOW)
        if said is None:
            parts.came_from("recall", RECALLED_AHEAD)
            return self.prefetch.recalled(npc)
        return said

    async def _past_talk(self, npc: NpcId, question: str) -> tuple[RecalledTalk, ...]:
        if self._talk is None or not question:
            return ()
        asked = self._by_name.asked(npc, question)
        return tuple(await self._talk.recall(self._campaign.id, npc, self.prefetch.query(npc, asked)))


def _looked_up(hot: HotContext) -> list[RecalledFact]:
    """Return the facts about a question, also those that are in every prompt."""
    told = (one.recalled for one in hot.rejected if one.why == IN_EVERY_PROMPT)
    return [one for one in (*hot.recalled, *told) if isinstance(one, RecalledFact)]
