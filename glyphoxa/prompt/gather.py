"""Gather the hot context: what an NPC has in mind when it answers.

Identity, scene and the facts about what a question names are in memory. Only recall is awaited: what the NPC heard,
the meaning of the question, and the latest changes of the world, together under one deadline. What is late or fails is
left out and reported. The identity changes with the world only, which keeps the start of the prompt for the prompt
cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from loguru import logger

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import RecalledFact, RecalledTalk, RecalledUtterance
from glyphoxa.domain.turn_record import PromptPart
from glyphoxa.judgement.safety import topics_of
from glyphoxa.judgement.small_model import PromptRepair
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.language.sentence_form import question_of
from glyphoxa.language.sentences import characters_in, shortened
from glyphoxa.language.text import Text, language_of
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.identity import Bible, Identities, Identity, KnownSentences
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.prompt import OF_FILE, Doubt, HotContext
from glyphoxa.prompt.scene import Past, Scenes
from glyphoxa.prompt.select import IN_EVERY_PROMPT, MOST_WRITTEN, Candidates, select, touched, with_chain, written
from glyphoxa.prompt.wording import SaidWhen, wording
from glyphoxa.recall.table_calendar import Days
from glyphoxa.recall.time_reader import read_time
from glyphoxa.recall.vectors import ABOUT_IT, AT_HAND
from glyphoxa.transcript.sessions import SummarySentence
from glyphoxa.world.graph import Known

OF_MEMORY: Final = "memory"
AS_BEFORE: Final = "as it was read before"
RECALLED_NOW: Final = "recalled now"
RECALLED_AHEAD: Final = "recalled while it was asked"

_LINES: Final = (
    "facts",
    "not_known",
    "shrugs",
    "told",
    "remembered",
    "distant",
    "identity",
    "orders",
    "glossary",
    "kept",
)
"""The lines of a hot context."""
ENTER_DEADLINE_MS = 2_000
"""Between scenes nobody waits for an answer."""
_ANY_DAYS: Final = Days(1_700_000_000_000)
"""Whether a question contains a time does not depend on the day."""


class _Awaited:
    """The part of one hot context that is awaited.

    Attributes:
        omitted: The parts that were late or failed, each with the reason.
        took_us: How long each part took, in microseconds.
    """

    def __init__(self) -> None:
        self.omitted: dict[str, str] = {}
        self.took_us: dict[str, int] = {}
        self._now_s = asyncio.get_running_loop().time

    async def all(self, parts: Mapping[str, Awaitable[Any]], deadline_ms: int) -> dict[str, Any]:
        """Return the results of the parts that end before the deadline. Raises nothing of its own."""
        tasks = {name: asyncio.create_task(self._one(name, part)) for name, part in parts.items()}
        try:
            done, _ = await asyncio.wait(tasks.values(), timeout=deadline_ms / 1_000)
            for late in (name for name, task in tasks.items() if task not in done):
                self.omitted[late], self.took_us[late] = f"not there within {deadline_ms} ms", deadline_ms * 1_000
            return {name: task.result() for name, task in tasks.items() if name not in self.omitted}
        finally:
            for task in tasks.values():
                task.cancel()

    async def _one(self, name: str, part: Awaitable[Any]) -> Any:
        began_s = self._now_s()
        try:
            return await part
        except GlyphoxaError as error:
            self.omitted.setdefault(name, str(error))
        except Exception as error:
            # The boundary between memory and a turn: a bug in a look-up never costs the NPC's answer.
            logger.exception("hot context without {}", name)
            self.omitted.setdefault(name, type(error).__name__)
        finally:
            self.took_us.setdefault(name, round((self._now_s() - began_s) * 1_000_000))


class _Mind:
    """One NPC's mind for one question: each part is computed at most once.

    Args:
        question: Empty while nobody speaks.
    """

    def __init__(self, of: HotContexts, npc: NpcId, question: str = "", *, asker: str = "") -> None:
        self.npc = npc
        self.question = question
        self.asker = asker
        self.heard = of.prefetch.conversations.get(npc) or Conversation(of.campaign.npc(npc))
        self._of = of
        self._safety = of.safety
        self._language = of.campaign.language

    @cached_property
    def asked(self) -> str:
        """The question without the words that call the NPC."""
        return self._of.world.asked(self.npc, self.question)

    @cached_property
    def identity(self) -> Identity:
        """Its knowledge of itself."""
        return self._of.identities.read(self.npc)

    @cached_property
    def bible(self) -> tuple[str, ...]:
        """The author's instructions."""
        return self._of.bible.lines(self.npc)

    @cached_property
    def past(self) -> str:
        """Events of earlier sessions."""
        return "" if self._of.past is None else self._safety.allowed(self._of.past.of(self.npc))

    @cached_property
    def scenes(self) -> Mapping[Scene, str]:
        """A line for each scene of this session."""
        return self._of.scenes.lines(self.npc)

    @cached_property
    def glossary(self) -> tuple[str, ...]:
        """The terms in all its prompts."""
        persona = self._of.campaign.npc(self.npc).persona
        beside = (persona, *self.bible, *self.identity.lines, self.past, *self.scenes.values())
        return self._of.bible.glossary(self.npc, beside)

    @cached_property
    def standing(self) -> tuple[str, ...]:
        """The lines in all its prompts: bible, identity, glossary, past sessions and the table's scene."""
        here = "" if self._of.scenes.here is None else self.scenes.get(self._of.scenes.here, "")
        lines = [*self.bible, *self.identity.lines, *self.glossary, self.past, here]
        return tuple(self._safety.allowed_in(lines))

    @cached_property
    def talk(self) -> list[str]:
        """The transcript of the prompt, without the question."""
        return self.heard.said_beside(self.question)

    @cached_property
    def _in_prompt(self) -> frozenset[str]:
        """The ids and the words of the lines in the prompt."""
        return frozenset((*self.heard.utterance_ids, *map(str.casefold, self.heard.spoken)))

    @cached_property
    def told(self) -> list[str]:
        """The summaries in the prompt: of this session, and of earlier ones."""
        return [*(sentence.text for sentence in self.heard.summary), *filter(None, [self.past])]

    def written(self) -> list[RecalledFact]:
        """Return the sentences of the NPC's persona and of the bible that are near to the question in meaning."""
        nearest = self._of.world.nearest(self.npc, self.question)
        if not nearest:
            return []
        texts = self._of.bible.texts(self.npc)
        worth = ((nearest.get(text, 0.0) + AT_HAND, said, source) for source, said, text in texts)
        near = sorted((one for one in worth if one[0] >= ABOUT_IT), reverse=True)
        entity = self._of.campaign.npc(self.npc).entity_id
        return [written(said, source, entity, similarity) for similarity, said, source in near[:MOST_WRITTEN]]

    def mentioned(self, shown: Sequence[str]) -> list[str]:
        """Return the terms of the question and of the talk, the latest first, that are not `shown`."""
        texts = (self.question, *self.talk[::-1], *(one.text for one in self.heard.summary))
        return self._of.bible.mentioned(self.npc, texts, shown) if self.question else []

    def kept(self) -> list[RecalledFact]:
        """Return the NPC's secrets that the question touches."""
        if not self.identity.secrets:
            return []
        who = self._of.campaign.npc(self.npc)
        # Words of its names, and those in all its prompts, touch no secret.
        loose = Text.of(" ".join((who.name, *who.aliases, *self.standing))).telling(self._language)
        found = touched(
            self.identity.secrets,
            self.asked,
            just_heard=self.heard.heard_before(self.question),
            language=self._language,
            loose=loose,
        )
        # A secret of a campaign has any length, and a prompt that is too long is rejected.
        longest = characters_in(self._of.budgets.identity_tokens)
        return [replace(one, text=shortened(one.text, longest)) for one in found]

    def is_in_talk(self, one: RecalledUtterance) -> bool:
        """Return whether the prompt has it already.

        It may have entered the prompt since, or been said again in the same words, or a summary may contain all that it
        says.
        """
        return (
            one.utterance_id in self._in_prompt
            or one.text.casefold() in self._in_prompt
            or " ".join(one.text.split()) in self.past
            or any(self._summarises(sentence, one) for sentence in self.heard.summary)
        )

    def _summarises(self, sentence: SummarySentence, one: RecalledUtterance) -> bool:
        said, told = Text.of(one.text), Text.of(sentence.text)
        return one.utterance_id in sentence.evidence and said.telling(self._language) <= told.telling(self._language)

    def has_heard_of(self, name: str) -> bool:
        """Return whether the NPC has heard a name, also as a part of a longer one: Ade is Ade Okoro to anyone who knows
        him. Every NPC has heard the names of the campaign's players.
        """
        campaign, world = self._of.campaign, self._of.world
        who, spoken = campaign.npc(self.npc), name.casefold().split()
        own = " ".join((who.name, *who.aliases, *(player.name for player in campaign.known_players)))
        if not set(spoken).isdisjoint(own.casefold().split()):
            return True
        is_part = world.current is not None and world.current.has_word(self.npc, spoken[-1])
        return is_part or any(world.named(self.npc, each) for each in (name, name.removesuffix("s")))


class HotContexts:
    """Implements `HotContextSource` over memory.

    Args:
        prefetch: Shared with the ears, which send it partial transcripts. Its world and its conversations are in the
            prompts.
        when: Adds when things were said, and knows the story day; None adds nothing.
        past: Summaries of earlier sessions; None without any.
        repairs: Whether the prompt states what the NPC does not know, as a small model needs; see `small_model`.
    """

    def __init__(
        self,
        prefetch: Prefetch,
        *,
        when: SaidWhen | None = None,
        budgets: Budgets | None = None,
        past: Past | None = None,
        repairs: bool = True,
    ) -> None:
        self.prefetch = prefetch
        self.world, self.budgets = world, budgets = prefetch.world, budgets or Budgets()
        self.campaign = campaign = world.campaign
        self.safety = topics_of(campaign)
        sentences = KnownSentences(campaign, world.known)
        self.identities = Identities(
            campaign, world, tokens=budgets.identity_tokens, always_tokens=budgets.bible_tokens
        )
        self.bible = Bible(campaign, sentences, budgets=budgets, terms=world.terms)
        self.past = past
        self.scenes = Scenes(
            campaign, sentences, tokens=budgets.scene_tokens, story_day=str if when is None else when.today
        )
        self._words = wording(campaign.language)
        self._dated: Callable[[Any], Any] = (lambda one: one) if when is None else when.dated
        self._needs_repairs = repairs

    async def enter(self, scene: Scene) -> None:
        """Enter a scene: read what its NPCs know of themselves, so that a prompt cache can be prepared with the first
        answer's exact words.
        """
        await _Awaited().all({"facts": self.world.refresh()}, ENTER_DEADLINE_MS)
        npcs = [npc.id for npc in self.campaign.npcs]
        identities = {npc: self.identities.read(npc) for npc in npcs}
        if self.past is not None:
            reading = {f"past of {npc}": self.past.read(npc, identities[npc].holdings) for npc in npcs}
            await _Awaited().all(reading, ENTER_DEADLINE_MS)
        self.scenes.enter(scene)
        self.world.place = scene.location
        # The author's texts are embedded in the background.
        self.world.meanings.learn(text for npc in npcs for *_, text in self.bible.texts(npc))

    def standing(self, npc: NpcId) -> tuple[str, ...]:
        """Return what is in all prompts of an NPC: bible, identity, glossary, past sessions and scene."""
        return _Mind(self, npc).standing

    def known(self, npc: NpcId) -> Known | None:
        """Return what an NPC knows of itself; None: nothing."""
        return self.identities.read(npc).known

    async def gather(self, npc: NpcId, question: str, *, asker: str = "", within_ms: int = 0) -> HotContext:
        """See `HotContextSource.gather`."""
        awaited, deadline_ms = _Awaited(), self.budgets.recall_deadline_ms
        parts: dict[str, Awaitable[Any]] = {}
        if self.world.is_stored:
            parts["facts"] = self.world.refresh()
        if self.past is not None:
            parts["past"] = self.past.read(npc, self.identities.read(npc).holdings)
        if self.prefetch.has_memory and question and not self.prefetch.has_answered(npc, question):
            if not read_time(question, language=self.campaign.language, days=_ANY_DAYS).is_timeless:
                deadline_ms = max(deadline_ms, within_ms)
            parts["recall"] = self.prefetch.recall(npc, question)
        parts["meaning"] = self.world.understand(npc, question, deadline_ms=deadline_ms)
        found = await awaited.all(parts, deadline_ms)
        awaited.omitted.pop("meaning", None)  # facts are found by names and words then
        return self._made(_Mind(self, npc, question, asker=asker), awaited, found.get("recall"))

    def gather_nowait(self, npc: NpcId, question: str, *, asker: str = "") -> HotContext:
        """See `HotContextSource.gather_nowait`."""
        return self._made(_Mind(self, npc, question, asker=asker))

    def recalled(self, npc: NpcId, question: str, said: Sequence[RecalledTalk]) -> HotContext:
        """Return what an NPC would have in mind for a question if it recalled these utterances, best first."""
        return self._made(_Mind(self, npc, question), said=said)

    def _made(
        self, mind: _Mind, awaited: _Awaited | None = None, said: Sequence[RecalledTalk] | None = None
    ) -> HotContext:
        """Make a hot context of what is in memory. A bug in it costs the memory, never the NPC's answer.

        Args:
            awaited: None while the player still speaks: nothing was awaited.
            said: Recalled for the whole question; None: use what was recalled for the words so far.
        """
        try:
            hot = self._selected(mind, said)
            if awaited is not None:
                omitted = tuple(f"{name}: {why}" for name, why in awaited.omitted.items())
                hot = replace(hot, omitted=omitted, gathered=self._gathered(awaited, said))
            # While the player speaks, what is not there yet may still come.
            if mind.question and (awaited is not None or self.prefetch.has_answered(mind.npc, mind.question)):
                hot = self._repaired(hot, mind)
            return self._allowed(hot)
        except Exception as error:
            logger.exception("an answer without memory")
            return HotContext(omitted=(f"hot context: {type(error).__name__}",))

    def _gathered(self, awaited: _Awaited, said: Sequence[RecalledTalk] | None) -> Mapping[str, PromptPart]:
        known_from, took_us = OF_MEMORY if self.world.is_stored else OF_FILE, awaited.took_us
        parts = [
            PromptPart("identity", AS_BEFORE if "facts" in awaited.omitted else known_from),
            PromptPart("scene", known_from),
            PromptPart("facts", known_from, took_us=took_us.get("facts")),
        ]
        if self.prefetch.has_memory:
            source = RECALLED_AHEAD if said is None else RECALLED_NOW
            parts.append(PromptPart("recall", source, took_us=took_us.get("recall")))
        return {part.name: part for part in parts}

    def _selected(self, mind: _Mind, said: Sequence[RecalledTalk] | None) -> HotContext:
        npc, question, language = mind.npc, mind.question, self.campaign.language
        recalled = self.prefetch.recalled(npc, question) if said is None else said
        found = (*map(self._dated, self.world.facts(npc, question)), *mind.written())
        selection = select(
            Candidates(
                question,
                language,
                mind.asker,
                with_chain(self.world.chain(npc, question), found),
                [self._dated(one) for one in recalled],
                self.safety.forbids,
                mind.identity.tells,
                mind.is_in_talk,
            ),
            self.budgets,
        )
        touched_now = mind.kept()
        # To a plain remark there is nothing to deny. A model that reads the secret denies it unasked, or reveals it.
        is_remark = question_of(question, language_of(question) or language).is_remark
        kept = [one for one in touched_now if not is_remark and not self.safety.forbids(one.text)]
        facts = [recalled_line(one) for one in selection.facts]
        return HotContext(
            facts=(*facts, *mind.mentioned((*mind.glossary, *facts))),
            remembered=tuple(recalled_line(one) for one in selection.talk),
            recalled=(*selection.facts, *selection.talk, *kept),
            identity=(*mind.bible, *mind.identity.lines),
            orders=self.bible.orders(npc),
            glossary=mind.glossary,
            scenes=mind.scenes,
            kept=tuple(one.text for one in kept),
            guarded=() if kept else tuple(one.text for one in touched_now),
            past=mind.past,
            rejected=selection.rejected,
            distant=() if selection.distant is None else (recalled_line(selection.distant),),
        )

    def _repaired(self, hot: HotContext, mind: _Mind) -> HotContext:
        """Add what a small model needs: what the asker told, and what the NPC does not know.

        While a part is missing, nothing is declared unknown, because that part may contain it.
        """
        if not self._needs_repairs or hot.kept:
            return hot
        repair = PromptRepair(
            mind.asked,
            self.campaign.language,
            self.campaign.npc(mind.npc).name,
            facts=_looked_up(hot),
            remembered=[one for one in hot.recalled if not isinstance(one, RecalledFact)],
            talk=mind.talk,
            summaries=self.safety.allowed_in(mind.told),
            beside=(*mind.standing, *set(hot.facts).difference(map(recalled_line, hot.recalled))),
            is_known=mind.has_heard_of,
            asker=mind.asker,
        )
        if then := repair.said_then():
            return replace(hot, told=then, shrugs=then)
        hot = replace(hot, told=repair.told())
        if hot.omitted:
            return hot
        found, odds = repair.not_known(), repair.log_odds
        hot = replace(hot, facts=(*hot.facts, *found.facts), not_known=found.facts, shrugs=found.replies)
        if odds is None or not repair.is_unsure:
            return hot
        unknown, allow = repair.if_not_known(), self.safety.allowed_in
        facts = (fact for fact in hot.facts if fact not in hot.not_known)
        evidence = dict.fromkeys((*hot.identity[:1], *facts, *hot.remembered, *hot.distant))
        notes = repair.notes(allow([*evidence]))
        return replace(hot, doubt=Doubt(odds, notes, tuple(allow([*unknown.facts])), tuple(allow([*unknown.replies]))))

    def _allowed(self, hot: HotContext) -> HotContext:
        """Return it without what must not come up, and with a direction if what it recalls is veiled."""
        lines: dict[str, Any] = {name: tuple(self.safety.allowed_in([*getattr(hot, name)])) for name in _LINES}
        lines["distant"] = tuple(line for line in lines["distant"] if not self.safety.flags(line))
        recalled = (*lines["facts"], *lines["remembered"], *lines["kept"])
        return replace(
            hot,
            **lines,
            scenes={scene: self.safety.allowed(line) for scene, line in hot.scenes.items()},
            past=self.safety.allowed(hot.past),
            direction=self._words.veil if any(map(self.safety.flags, recalled)) else "",
        )


def _looked_up(hot: HotContext) -> list[RecalledFact]:
    """Return the facts about a question, also those that are in every prompt."""
    told = (one.recalled for one in hot.rejected if one.why == IN_EVERY_PROMPT)
    return [one for one in (*hot.recalled, *told) if isinstance(one, RecalledFact)]
