"""Hot context: what an NPC has in mind when it answers.

Identity, what changed of the world, and recall are gathered at the same time, each under its own deadline and in the
name of the NPC that is to answer. A late or failed part is left out and said so; identity then falls back to what it
was last time, which also keeps the beginning of the prompt the same for the prompt cache, or at first to what the
campaign's file lets this NPC know. The scene is known without asking, and so is what is known of who is named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from glyphoxa.context.bearing import InMind
from glyphoxa.context.bible import Bible
from glyphoxa.context.budgets import Budgets
from glyphoxa.context.gathering import OF_FILE, OF_MEMORY, RECALLED_AHEAD, RECALLED_NOW, Gathering, monotonic_us
from glyphoxa.context.how_related import HowRelated, asks_how_related, with_chain
from glyphoxa.context.identity import Identities
from glyphoxa.context.knowledge import shortened
from glyphoxa.context.known_sentences import KnownSentences
from glyphoxa.context.not_known import not_known
from glyphoxa.context.own_secrets import touched, without, words_of
from glyphoxa.context.past import Past
from glyphoxa.context.ports import HotContext
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.context.relevance import without_call
from glyphoxa.context.scene import Scenes
from glyphoxa.context.selection import Candidates, PromptSoFar, select
from glyphoxa.context.tokens import characters_in
from glyphoxa.context.told_before import told_before
from glyphoxa.context.wording import recalled_line, wording
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.domain.knowledge import AUTO_ACCEPT
from glyphoxa.domain.recalled import RecalledFact, RecalledTalk, RecalledUtterance
from glyphoxa.recall.question import asks_for_a_time
from glyphoxa.recall.terms import Terms
from glyphoxa.transcript.api import PastTalk, TalkQuery
from glyphoxa.world.api import IdentitySnapshot, KnowledgeGraph, Known

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
        return self._with_not_known(hot, npc, question, asker)

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
        return self._with_not_known(hot, npc, question, asker) if is_all else hot

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

    def _with_not_known(self, hot: HotContext, npc: NpcId, question: str, asker: str) -> HotContext:
        """What it says where the question asks for more than it holds. Nothing, as long as a part is missing: that may
        be the one which knows. The names of the campaign's players have been heard by every NPC.
        """
        talk = [one for one in hot.recalled if not isinstance(one, RecalledFact)]
        if question and not hot.kept:
            hot = replace(hot, told=told_before(question, talk, asker, language=self._campaign.language))
        if hot.omitted or hot.kept or not question:
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
