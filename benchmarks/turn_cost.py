"""What our own decisions of one turn cost the event loop, in units of a fixed piece of Python on the same machine.

A slow or busy machine makes both slower. The CPU time of this thread is taken, not the time that passes; work and
yardstick take turns, and the least of several rounds counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.beginning import beginning
from glyphoxa.context.by_name import ByName
from glyphoxa.context.conversation import Conversation
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.context.prompt import with_hot_context
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.events import SceneChanged
from glyphoxa.domain.heard import SpeechStarted
from glyphoxa.domain.ids import EntityId, PlayerId
from glyphoxa.names.table_names import TableNames
from glyphoxa.speech.correction.corrector import Corrected
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer
from glyphoxa.turns.address import Addressing, Said

ROUNDS = 12
N_TURNS = 24
N_NAMES = 600
PLAYER = PlayerId("hanna")
_SENTENCES = Path(__file__).parent / "data" / "names" / "C.txt"
_WORDS_A_PARTIAL = 2
_ONSETS = ("b", "dr", "f", "gr", "k", "l", "m", "n", "r", "s", "t", "thr", "v", "w", "z")
_VOWELS = ("a", "e", "i", "o", "u", "ae", "ia", "or")
_CODAS = ("n", "l", "r", "th", "sk", "nd", "m", "x")

Correct = Callable[[str], Corrected]
SlowDown = Callable[[Correct, Gazetteer], Correct]


@dataclass(slots=True)
class Mind:
    """The decisions between a transcript and a prompt, wired as at a table, without its database."""

    campaign: Campaign
    names: TableNames
    correct: Correct
    prefetch: Prefetch
    assembly: HotContextAssembly
    conversation: Conversation
    addressing: Addressing

    async def turn(self, text: str) -> None:
        """Growing partials, the final words, whom they are meant for, and the prompt for the answer."""
        npc, player = self.campaign.npcs[0], PLAYER
        self.names.on_ear(SpeechStarted(player, 0))
        words = text.split()
        for n in range(_WORDS_A_PARTIAL, len(words), _WORDS_A_PARTIAL):
            partial = self.correct(" ".join(words[:n])).text
            self.prefetch.on_partial(player, partial)
            self._address(player, partial)
        final = self.correct(text).text
        self._address(player, final)
        self.names.left(player)
        hot = await self.assembly.gather(npc.id, final)
        with_hot_context(self.conversation.prompt(final, "Hanna"), hot)

    def _address(self, player: PlayerId, text: str) -> None:
        present = [npc.id for npc in self.campaign.npcs]
        names = {npc.id: npc.name for npc in self.campaign.npcs}
        said = Said(player, text, self.names.mentions(text))
        self.addressing.decide(said, present=present, names=names, at_ms=0)


def turn_cost(campaign: Campaign, *, slow_down: SlowDown | None = None) -> float:
    """CPU time of a turn's decisions, in yardsticks.

    Args:
        slow_down: Wraps the corrector: for showing that a regression is seen.
    """
    sentences = _SENTENCES.read_text("utf-8").splitlines()[:N_TURNS]
    work_ns: list[int] = []
    yard_ns: list[int] = []
    with asyncio.Runner() as runner:
        for _ in range(ROUNDS):
            mind = _mind(campaign, slow_down)  # anew, so that nothing is remembered from the last round
            work_ns.append(runner.run(_all(mind, sentences)))
            yard_ns.append(yardstick_ns())
    return min(work_ns) / N_TURNS / min(yard_ns)


async def _all(mind: Mind, sentences: Sequence[str]) -> int:
    began = time.thread_time_ns()
    for sentence in sentences:
        await mind.turn(sentence)
    return time.thread_time_ns() - began


def yardstick_ns() -> int:
    """Strings, dicts and calls, as our own work has them; about 10 ms on a machine of 2024."""
    began = time.thread_time_ns()
    counts: dict[str, int] = {}
    for n in range(20_000):
        key = f"{n % 977:x}"
        counts[key] = counts.get(key, 0) + len(key.upper())
    sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return time.thread_time_ns() - began


def _mind(campaign: Campaign, slow_down: SlowDown | None) -> Mind:
    invented = (Entity(entry.entity_id, entry.entity_type, entry.name) for entry in many_names(N_NAMES))
    campaign = replace(campaign, entities=(*campaign.entities, *invented))
    names = TableNames(campaign, now_ms=lambda: 0)
    names.on(SceneChanged(campaign.scenes[0], 0))
    correct: Correct = partial(names.correct, player=PLAYER)
    if slow_down is not None:
        correct = slow_down(correct, names.current)
    conversation = Conversation(campaign.npcs[0], beginning=beginning(campaign, campaign.npcs[0]))
    prefetch = Prefetch(
        campaign.id,
        by_name=ByName(campaign, None),
        talk=None,
        language=campaign.language,
        present=lambda: {npc.id: npc.name for npc in campaign.npcs},
        known_utterances=lambda _npc: conversation.utterance_ids,
    )
    assembly = HotContextAssembly(
        campaign,
        graph=None,
        talk=None,
        prefetch=prefetch,
        known_utterances=lambda _npc: conversation.utterance_ids,
    )
    return Mind(campaign, names, correct, prefetch, assembly, conversation, Addressing())


def many_names(n: int) -> list[Entry]:
    """Invented names, always the same ones."""
    entries: list[Entry] = []
    for k in range(n):
        first, rest = k % len(_ONSETS), k // len(_ONSETS)
        vowel, coda = _VOWELS[rest % len(_VOWELS)], _CODAS[(rest // len(_VOWELS)) % len(_CODAS)]
        name = f"{_ONSETS[first]}{vowel}{_CODAS[(k * 3) % len(_CODAS)]}{_VOWELS[(k * 5) % len(_VOWELS)]}{coda}"
        entries.append(Entry(f"{name.capitalize()}{_VOWELS[k % 3]}", EntityId(f"invented-{k}"), "location"))
    return entries
