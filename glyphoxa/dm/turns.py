"""Why an NPC said what it said, or would say: a prompt, the current state of what the NPC recalled for it, and a turn.

`TurnDesk` explains; the explanation words itself, for the terminal and for the desk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from glyphoxa.dm.entities import NameResolver
from glyphoxa.dm.ports import Review, Turns, Uttered
from glyphoxa.dm.wording import IndentedLine, plain, signals_in_words
from glyphoxa.domain.calendar import StoryCalendar
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import (
    EndedFact,
    Fact,
    Recalled,
    RecalledFact,
    RecalledUtterance,
    Signal,
    Validity,
    learned_from,
)
from glyphoxa.domain.turn_record import AssembledPrompt, Fault, LookUp, Outcome, PromptPart, Stage, TurnRecord
from glyphoxa.judgement.safety import Judged, Mode
from glyphoxa.language.facts import ended_in_words, moment, place, reason_in_words, validity_in_words
from glyphoxa.language.facts import short as short_fact
from glyphoxa.language.prompt_quotes import recalled_line

LAST: Final = "last"
_MAX_LISTED: Final = 10
_MAX_COMPARED: Final = 1_000
_LETTERS: Final = 10


@dataclass(frozen=True, slots=True)
class RecalledThen:
    """Something that an NPC recalled in a turn, or would recall, as the DM sees it now.

    Attributes:
        place: Where it was said or learned; None if unknown.
        validity: A fact's current validity; None for anything else, or if it no longer exists.
        since: How it changed since the turn: "rolled back". Empty: not at all.
        why_rejected: Why it was left out of the prompt; empty if it was included.
        is_inferred: It is a fact that nobody stated in these words.
        path: How it was reached by its relations; empty if that is not how it was found.
    """

    recalled: Recalled
    place: Uttered | None = None
    validity: Validity | None = None
    since: str = ""
    why_rejected: str = ""
    is_inferred: bool = False
    path: str = ""

    def reason(self, names: NameResolver) -> str:
        """Say why the NPC may know it, and whether it was inferred."""
        reason = reason_in_words(self.recalled, names)
        return f"{reason} (inferred, not said in these words)" if self.is_inferred else reason


@dataclass(frozen=True, slots=True)
class ExplainedPrompt:
    """A prompt with the present state of everything that the NPC recalled for it.

    Attributes:
        memories: Those in the prompt, in that order, then the others.
        calendar: The story's calendar; None if it does not count days.
    """

    prompt: AssembledPrompt
    memories: tuple[RecalledThen, ...]
    names: NameResolver
    calendar: StoryCalendar | None = None

    @property
    def selected(self) -> tuple[RecalledThen, ...]:
        return tuple(memory for memory in self.memories if not memory.why_rejected)

    @property
    def rejected(self) -> tuple[RecalledThen, ...]:
        return tuple(memory for memory in self.memories if memory.why_rejected)

    def told(self, *, depth: int = 0) -> Iterator[IndentedLine]:
        """Yield what is in the prompt and why, and what was left out and why."""
        prompt = self.prompt
        parts = (f"{part.name}: {part.tokens or 'nothing'}, {part.source}{_took(part)}" for part in prompt.parts)
        yield from _titled(f"its prompt: about {prompt.tokens} tokens", parts, depth=depth)
        if self.memories:
            rest = f", of {len(self.memories)} that it recalled" if self.rejected else ""
            yield IndentedLine(f"in its prompt: {len(self.selected) or 'nothing'}{rest}", depth)
        elif prompt.text:
            yield IndentedLine("recalled nothing", depth)
        yield from self._told_of(self.selected, depth + 1)
        talk = (memory.recalled for memory in self.memories)
        signals = [signal for one in talk if isinstance(one, RecalledUtterance) for signal in one.signals]
        if signals and not any(signal.startswith(Signal.MEANING) for signal in signals):
            yield IndentedLine("found by words only: the search by meaning did not contribute", depth + 1)
        if self.rejected:
            yield IndentedLine("left out:", depth)
        yield from self._told_of(self.rejected, depth + 1)
        yield from _titled("late or failed:", prompt.omitted, depth=depth)

    def _told_of(self, memories: Iterable[RecalledThen], depth: int) -> Iterator[IndentedLine]:
        for memory in memories:
            yield IndentedLine(recalled_line(memory.recalled), depth)
            yield from (IndentedLine(line, depth + 1) for line in self._evidence(memory))

    def _evidence(self, memory: RecalledThen) -> Iterator[str]:
        recalled = memory.recalled
        if memory.why_rejected:
            yield f"left out: {memory.why_rejected}"
        reason = memory.reason(self.names) or "nobody noted why"
        yield f"known because: {', '.join((reason, *self._source(memory)))}"
        if isinstance(recalled, RecalledUtterance) and (recalled.signals or memory.path):
            cosine = "" if recalled.similarity is None else f", cosine {recalled.similarity:.3f}"
            by = memory.path or signals_in_words(recalled.signals)
            yield f"found by: {by} (score {recalled.score:.2f}{cosine})"
        elif isinstance(recalled, RecalledFact):
            fact = "" if recalled.is_written else f" (fact {short_fact(recalled.fact_id)})"
            yield f"found by: {recalled.path or 'a name in what was said'}{fact}"
        if memory.validity is not None:
            yield f"holds: {validity_in_words(memory.validity, self.calendar) or 'always'}"
        if memory.since:
            yield f"since then: {memory.since}"

    def _source(self, memory: RecalledThen) -> Iterator[str]:
        """Yield where and when something was said or learned. Facts of a file have only their loading time."""
        recalled, said = memory.recalled, memory.place.said if memory.place is not None else None
        if recalled.session_id is None:
            return
        if recalled.session_id not in recalled.reason:
            yield self.names.session(recalled.session_id)
        if said is not None:
            yield f"line {said.ordinal}"
        if at := moment(recalled.at_ms if said is None else said.at_ms):
            yield at


def _took(part: PromptPart) -> str:
    return "" if part.took_us is None else f", {part.took_us / 1_000:.1f} ms"


@dataclass(frozen=True, slots=True)
class ExplainedTurn:
    """
    Attributes:
        heard: The logged utterance that the NPC answered; None if unknown.
        spoken: The logged utterance of its answer, as heard; None if unknown.
    """

    turn: TurnRecord
    heard: Uttered | None
    spoken: Uttered | None
    prompt: ExplainedPrompt

    def told(self) -> Iterator[IndentedLine]:
        """Yield everything about the turn except its prompt's text."""
        turn, names = self.turn, self.prompt.names
        unsaid = (f"{one.text} ({_FAULTS[one.fault]})" for one in turn.unsaid)
        asked = f"to {names.person(turn.npc_id)}" if turn.npc_id is not None else "to nobody"
        yield IndentedLine(f"{turn.id}: {turn.speaker_name} {asked}, {when(turn)}")
        yield from chain(
            _heard(self, names),
            _came_of_it(self, names),
            self.prompt.told(depth=1),
            _looked_up(turn.looked_up),
            _titled("rejected before it was said:", unsaid, depth=1),
            _timeline(turn),
        )
        if turn.prompt.text:
            yield IndentedLine(f"the whole prompt: glyphoxa show turns {short(turn.id)} --prompt", 1)


def unstored(prompt: AssembledPrompt, names: NameResolver) -> ExplainedPrompt:
    """Explain a prompt of a campaign that is not stored: nothing in it has changed."""
    return ExplainedPrompt(prompt, tuple(RecalledThen(one, why_rejected=why) for one, why in _recalled(prompt)), names)


@dataclass(frozen=True, slots=True)
class TurnDesk:
    """Turns of one campaign. A turn is named by its id, a unique ending of it, or `LAST`.

    Every call raises `Unavailable` when the database is away.
    """

    campaign: CampaignId
    turns: Turns
    review: Review
    resolver: NameResolver
    calendar: StoryCalendar | None

    async def latest(
        self, *, session: SessionId | None = None, npc: NpcId | None = None, limit: int
    ) -> list[TurnRecord]:
        """Return turns without their prompts, the newest first."""
        return await self.turns.latest(self.campaign, session=session, npc=npc, limit=limit)

    async def find(self, turn: str, *, session: SessionId | None = None, npc: NpcId | None = None) -> TurnRecord:
        """
        Args:
            session: Only turns of this session.
            npc: Only turns addressed to this NPC.

        Raises:
            NotFound: There is no such turn; the message lists similar ids.
            InvalidInput: The ending is ambiguous; the message lists the matches.
        """
        found: list[TurnId] = []
        if turn == LAST:
            found = [each.id for each in await self.latest(session=session, npc=npc, limit=1)]
        elif turn:
            found = await self.turns.ending_with(self.campaign, turn, session=session, npc=npc, limit=_MAX_LISTED + 1)
        if turn in found:
            found = [TurnId(turn)]
        if len(found) > 1:
            listed = found[:_MAX_LISTED]
            names = [short(each) for each in listed]
            more = " and more" if len(found) > _MAX_LISTED else ""
            listing = ", ".join(names if len({*names}) == len(names) else listed)
            raise InvalidInput(f"{turn!r} matches several turns: {listing}{more}")
        record = await self.turns.turn(self.campaign, found[0]) if found else None
        if record is None:
            raise NotFound(await self._missing(turn, session=session, npc=npc))
        return record

    async def explain(self, turn: TurnRecord) -> ExplainedTurn:
        """Return the turn with the present state of everything it used."""
        prompt = await self.explain_prompt(turn.prompt, turn.npc_id)
        own = [each for each in (turn.utterance_id, turn.reply_id) if each is not None]
        said = await self.turns.uttered(self.campaign, own)
        heard, spoken = (None if each is None else said.get(each) for each in (turn.utterance_id, turn.reply_id))
        return ExplainedTurn(turn, heard, spoken, prompt)

    async def explain_prompt(self, prompt: AssembledPrompt, npc: NpcId | None) -> ExplainedPrompt:
        """Return a prompt of an NPC with the present state of everything that it recalled."""
        recalled = _recalled(prompt)
        learned = {id_ for one, _ in recalled if (id_ := learned_from(one)) is not None}
        uttered = await self.turns.uttered(self.campaign, learned)
        facts = {one.fact_id for one, _ in recalled if isinstance(one, RecalledFact)}
        held = {fact.id: fact for fact in await self.review.facts(self.campaign, facts)}
        ended = {each.fact.id: each for each in await self.review.once_held(self.campaign, facts - held.keys())}
        was = held | {fact: each.fact for fact, each in ended.items()}
        inferred = {id_ for id_, fact in was.items() if fact.provenance.source == "inferred"}
        memories = []
        for one, why in recalled:
            utterance = learned_from(one)
            place = None if utterance is None else uttered.get(utterance)
            if isinstance(one, RecalledFact) and not one.is_written:
                validity, since = self._since_of_fact(npc, held.get(one.fact_id), ended.get(one.fact_id))
            elif utterance is not None and place is None:
                validity, since = None, "not in the log any more"
            else:
                validity, since = None, _of_talk(one, place)
            is_inferred = isinstance(one, RecalledFact) and one.fact_id in inferred and not one.is_summary
            memories.append(RecalledThen(one, place, validity, since, why, is_inferred))
        return ExplainedPrompt(prompt, tuple(memories), self.resolver, self.calendar)

    def _since_of_fact(
        self, npc: NpcId | None, fact: Fact | None, end: EndedFact | None
    ) -> tuple[Validity | None, str]:
        """Return when a recalled fact holds, and how it changed since."""
        if fact is None:
            if end is None:
                return None, "no longer held: it was undone"
            return end.fact.validity, f"no longer held: {ended_in_words(end)}"
        if fact.status != "accepted":
            return fact.validity, f"{fact.status} now"
        if npc is not None and not fact.visibility.is_visible_to(npc):
            return fact.validity, f"{self.resolver.person(npc)} may not know it any more"
        return fact.validity, ""

    async def judged(self, turns: Sequence[TurnRecord]) -> Mapping[TurnId, str]:
        """Return how the players' lines were judged, in words. Lines that are not judged yet are left out."""
        of_turn = {each.id: each.utterance_id for each in turns if each.utterance_id is not None}
        said = await self.turns.uttered(self.campaign, set(of_turn.values()))
        judged = {key: each.judged for key, each in said.items() if each.judged is not None}
        return {turn: judged_in_words(judged[key]) for turn, key in of_turn.items() if key in judged}

    async def _missing(self, turn: str, *, session: SessionId | None, npc: NpcId | None) -> str:
        known = [each.id for each in await self.latest(session=session, npc=npc, limit=_MAX_COMPARED)]
        of = "" if session is None else f" of session {session!r}"
        of += "" if npc is None else f" to {self.resolver.person(npc)}"
        if not known:
            return f"no turn{of} in campaign {self.campaign!r} yet"
        near = did_you_mean(turn, [*known, *map(short, known)]) if turn else ""
        if not near.startswith("did you mean"):
            near = f"the latest are {', '.join(map(short, known[:_MAX_LISTED]))}"
        return f"no turn {turn!r}{of} in campaign {self.campaign!r}: {near}"


def short(turn: TurnId) -> str:
    """Return enough of an id's end to find the turn."""
    return turn[-_LETTERS:].lstrip("-")


def _recalled(prompt: AssembledPrompt) -> list[tuple[Recalled, str]]:
    """Return everything that was recalled, each with why it was left out of the prompt."""
    return [*((one, "") for one in prompt.recalled), *((each.recalled, each.why) for each in prompt.rejected)]


def _of_talk(one: Recalled, place: Uttered | None) -> str:
    if place is None:
        return ""
    if place.said.is_retracted:
        return place.said.state
    words = (isinstance(one, RecalledUtterance) and one.verbatim) or one.text
    return "" if words.endswith(place.said.text) else f"its words are now: {place.said.text}"


def _titled(title: str, lines: Iterable[str], *, depth: int) -> Iterator[IndentedLine]:
    """Yield the lines below a title; nothing if there are none."""
    for n, line in enumerate(lines):
        if not n:
            yield IndentedLine(title, depth)
        yield IndentedLine(line, depth + 1)


# A turn as `glyphoxa show turns` shows it: what was heard, what the NPC recalled, and the outcome.


_OUTCOMES: Final[Mapping[Outcome, str]] = {
    Outcome.ANSWERED: "answered",
    Outcome.INTERRUPTED: "cut off by a player",
    Outcome.NOT_ADDRESSED: "answered by nobody",
    Outcome.MERGED: "cancelled: the speaker continued, and the next turn answers both",
    Outcome.SUPERSEDED: "cancelled: others spoke first",
    Outcome.WITHHELD: "withheld: the safety filter removed the whole answer",
    Outcome.TIMED_OUT: "cancelled: the answer took too long",
    Outcome.FAILED: "failed",
}
_FAULTS: Final[Mapping[Fault, str]] = {
    Fault.NARRATED: "it narrates what the NPC does",
    Fault.THIRD_PERSON: "the NPC speaks of itself in the third person",
    Fault.ASSISTANT: "a typical phrase of an assistant",
    Fault.OF_THE_PROMPT: "words of its instructions or examples",
    Fault.NOT_SPEECH: "a stage direction, a tool call or a line of facts",
    Fault.LABEL: "somebody else's line",
    Fault.ECHO: "it repeats the question",
    Fault.REPEATED: "it has just said so",
    Fault.LANGUAGE: "not in the language of the question",
    Fault.SECRET: "it is one of the NPC's secrets",
    Fault.FORGOTTEN: "it omits what it was told about this",
    Fault.UNFOUNDED: "nothing it knows or remembers supports it",
    Fault.SAFETY: "it touches a topic that the group does not play",
    Fault.DICE: "nobody rolled these dice",
}
_LONGEST_FOUND: Final = 400
_SAYS: Final = ("said", "fact", "summary")
"""Keys for a tool's result; one of these, or something else."""


# Cases for fitting who is addressed.

_CASE_LINES: Final = 10
_CASE_MS: Final = 120_000
_CASE_NPC: Final = ("id", "name", "aliases", "role", "address_only")


def address_cases(
    campaign: Campaign, said: Sequence[Utterance], turns: Iterable[TurnRecord]
) -> Iterator[dict[str, object]]:
    """Yield the readdressed lines of a session as cases of `benchmarks.address`, with the lines before them.

    Args:
        said: Utterances of the session, in order. No others are in a case.
        turns: Its turns. The DM's last decision on a line counts.
    """
    turns = sorted(turns, key=lambda turn: (turn.is_readdressed, turn.stages.get(Stage.SPEECH_END, 0)))
    to: dict[UtteranceId | None, str | None] = {turn.reply_id: turn.speaker_id for turn in turns}
    to |= {turn.utterance_id: turn.npc_id for turn in turns}
    readdressed = {turn.utterance_id for turn in turns if turn.is_readdressed}
    npcs = [{name: getattr(npc, name) for name in _CASE_NPC} for npc in campaign.npcs]
    players = [{"id": player.id, "name": player.name} for player in campaign.players]
    for at, line in enumerate(said):
        if line.id not in readdressed:
            continue
        ends_ms = line.at_ms + line.duration_ms
        before = [(each, ends_ms - each.at_ms - each.duration_ms) for each in said[max(0, at - _CASE_LINES) : at]]
        present = next((each.witnesses for each in said[at::-1] if each.witnesses), frozenset())
        yield {
            "id": line.id,
            "language": campaign.language,
            "npcs": [npc | {"present": npc["id"] in present} for npc in npcs],
            "players": players,
            "before": [
                {
                    "speaker": each.speaker_id,
                    "text": each.text,
                    "to": to.get(each.id),
                    "seconds_ago": max(0, ms) / 1_000,
                }
                for each, ms in before
                if ms <= _CASE_MS
            ],
            "speaker": line.speaker_id,
            "text": line.text,
            "expected": [npc for npc in (to[line.id],) if npc is not None],
            "kind": "readdressed",
        }


def when(turn: TurnRecord) -> str:
    """Return when the speaker finished; empty if unknown."""
    return moment(turn.stages.get(Stage.SPEECH_END, min(turn.stages.values(), default=None)))


def outcome(turn: TurnRecord) -> str:
    """Return the outcome in words, such as: answered; failed: the model cannot be reached."""
    return ": ".join(part for part in (_OUTCOMES[turn.outcome], turn.error) if part)


def _heard(explained: ExplainedTurn, resolver: NameResolver) -> Iterator[IndentedLine]:
    turn, heard = explained.turn, explained.heard
    yield IndentedLine(f"heard: {_where(heard, resolver) or resolver.session(turn.session_id)}", 1)
    yield IndentedLine(f"{turn.speaker_name}: {turn.text}", 2)
    if turn.raw_text != turn.text:
        yield IndentedLine(f"recognised as: {turn.raw_text}", 2)
    for correction in heard.corrections if heard is not None else ():
        why = f"{correction.reason or correction.stage}, {correction.score:.2f}"
        yield IndentedLine(f"{correction.before} was corrected to {correction.after}: {why}", 2)
    yield from _since(heard, turn.text)
    if turn.address_reason:
        yield IndentedLine(f"addressed: {turn.address_reason}", 1)
    if turn.flags:
        yield IndentedLine(f"led away from what the group does not play: {', '.join(turn.flags)}", 1)
    if heard is not None and heard.judged is not None:
        yield from _judged(heard.judged)
    if turn.tier:
        yield IndentedLine(f"memory tier: {turn.tier}: {turn.tier_reason}", 1)


_MODES: Final[Mapping[Mode, str]] = {
    Mode.IN_WORLD_ANSWER: "part of the game",
    Mode.MEMORY_CONSENT: "about what may be remembered",
    Mode.SAFE_REDIRECT: "led away from its topic",
}
_JUDGES: Final = {"rules": "the rules", "llm": "the language model", "backstop": "the rules, some lines later"}


def judged_in_words(judged: Judged) -> str:
    """Return a judgement in a line, such as: kept, part of the game, low risk, by the rules."""
    judgement = judged.judgement
    kept = "kept" if judgement.may_extract else "not kept"
    flags = "".join(f", {flag}" for flag in judgement.flags)
    blocked = ", blocked" if judgement.is_blocked else ""
    review = ", needs review" if judgement.needs_review else ""
    return f"{kept}, {_MODES[judgement.mode]}, {judgement.risk} risk{flags}{blocked}{review}, by {_JUDGES[judged.by]}"


def _judged(judged: Judged) -> Iterator[IndentedLine]:
    yield IndentedLine(f"judged: {judged_in_words(judged)}", 1)
    if judged.judgement.note:
        yield IndentedLine(f"because: {judged.judgement.note}", 2)
    if judged.reason:
        yield IndentedLine(f"not by the language model: {judged.reason}", 2)


def _came_of_it(explained: ExplainedTurn, resolver: NameResolver) -> Iterator[IndentedLine]:
    turn = explained.turn
    after = f", {turn.first_audio_ms} ms after the end of speech" if turn.first_audio_ms is not None else ""
    is_ready_line = turn.outcome is Outcome.ANSWERED and turn.prompt.text and not turn.tier
    yield IndentedLine(f"{outcome(turn)}{' with a ready line' if is_ready_line else ''}{after}", 1)
    if is_ready_line:
        yield IndentedLine("no model was asked, because the NPC knows nothing that the question asks for", 2)
    if turn.npc_id is None:
        return
    if turn.reply_heard:
        yield IndentedLine(f"{resolver.person(turn.npc_id)}: {turn.reply_heard}", 2)
    if turn.reply and plain(turn.reply) != plain(turn.reply_heard):
        yield IndentedLine(f"it would have said: {turn.reply}", 2)
    yield from _since(explained.spoken, turn.reply_heard)


def _looked_up(look_ups: Sequence[LookUp]) -> Iterator[IndentedLine]:
    if look_ups:
        yield IndentedLine("looked up by its model:", 1)
    for one in look_ups:
        asked = ", ".join(f"{name}: {value}" for name, value in one.arguments.items())
        yield IndentedLine(f"{one.tool} ({asked}), {one.took_ms} ms", 2)
        found = one.found.get("found")
        for each in found if isinstance(found, list) else ():
            yield IndentedLine(f"found: {_found(each)}", 3)
        if note := one.found.get("note"):
            yield IndentedLine(str(note), 3)


def _found(found: object) -> str:
    if isinstance(found, Mapping) and (says := next((name for name in _SAYS if name in found), None)) is not None:
        rest = ", ".join(f"{name} {value}" for name, value in found.items() if name != says and value)
        return f"{found[says]} ({rest})" if rest else str(found[says])
    text = json.dumps(found, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_FOUND else f"{text[:_LONGEST_FOUND]} ..."


def _timeline(turn: TurnRecord) -> Iterator[IndentedLine]:
    zero = turn.stages.get(Stage.SPEECH_END)
    if zero is None:
        return
    usual = list(Stage)
    reached = sorted(turn.stages.items(), key=lambda mark: (mark[1], usual.index(mark[0])))
    marks = (f"{stage.value.replace('_', ' ')} {at - zero}" for stage, at in reached if stage is not Stage.SPEECH_END)
    yield IndentedLine(f"ms after the end of speech: {', '.join(marks)}", 1)
    if turn.waited_ms is not None:
        yield IndentedLine(f"waited {turn.waited_ms} ms for others to finish", 1)
    if turn.silenced_after_ms is not None:
        yield IndentedLine(f"silenced by a voice within {turn.silenced_after_ms} ms", 1)


def _where(uttered: Uttered | None, resolver: NameResolver) -> str:
    if uttered is None:
        return ""
    return f"{place(uttered.said.session_id, uttered.said.ordinal, resolver)}, {moment(uttered.said.at_ms)}"


def _since(uttered: Uttered | None, text: str) -> Iterator[IndentedLine]:
    if uttered is None:
        return
    if uttered.said.is_retracted:
        yield IndentedLine(f"since then: {uttered.said.state}", 2)
    elif uttered.said.text != text:
        yield IndentedLine(f"since then: its words are now: {uttered.said.text}", 2)
