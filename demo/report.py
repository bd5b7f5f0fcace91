"""Computes the evening's figures from the script and the turns. All functions are pure.

The story is not hard-coded. The script's `memory` section says what was told to whom and who was absent. Everything
else is compared with the actual prompts, recalled items and replies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from demo.played import LinePlayed, SessionPlayed
from demo.script import Evening, MemoryCheck
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import learned_from
from glyphoxa.domain.turn_record import Outcome, Stage, TurnRecord
from glyphoxa.language.prompt_quotes import recalled_line

BEFORE_MS, AFTER_MS = 600, 1_500
"""Tolerance: a detector may start speech a little early, and a part after a pause may start a little late."""

COMMON = frozenset(
    """about after again also been before came come could does down evening from gave give going good have here into
    just know like long made many mine more most much must name near never once only other over please said says shall
    should some something tell that their them then there they thing think this time told upon very want well went
    were what when where which will with would your yours""".split()  # noqa: SIM905 - a list of 70 lines reads worse
)
MIN_SHOWN_WORDS = 2
"""One shared word may be chance. Two words of what was told that are not in the question are not."""


@dataclass(frozen=True, slots=True)
class LineScore:
    """A script line and how well its transcript matches."""

    line_id: str
    raw: str
    corrected: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    ordinary_words_changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DemoCheck:
    """A condition that must hold in every evening, whatever words the model chooses.

    Attributes:
        what: For example "names are recognised".
        wrong: One line for each violation; empty if the check passes.
    """

    what: str
    wrong: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.wrong


@dataclass(frozen=True, slots=True)
class Figures:
    """Percentages are 0 to 100, times are in milliseconds. None where nothing was measured."""

    first_audio_p50_ms: int | None
    first_audio_p95_ms: int | None
    first_sound_p50_ms: int | None
    first_sound_p95_ms: int | None
    l1_entries: int
    corrections: int
    names_expected: int
    names_right: int
    names_right_pct: float | None
    ordinary_words_changed: int
    recalls: int
    outcomes: dict[str, int]
    recalled_across_sessions: bool
    leaked_to_absent_npc: bool
    interruptions: int
    lines: tuple[LineScore, ...]
    checks: tuple[DemoCheck, ...]


def first_sound_ms(turn: TurnRecord) -> int | None:
    """Return the time from the end of speech to the first sound of any kind, such as a filler."""
    sounds = [turn.stages[stage] for stage in (Stage.FILLER, Stage.FIRST_AUDIO) if stage in turn.stages]
    return min(sounds) - turn.stages[Stage.SPEECH_END] if sounds and Stage.SPEECH_END in turn.stages else None


def figures(evening: Evening, campaign: Campaign, sessions: Sequence[SessionPlayed]) -> Figures:
    turns = [turn for session in sessions for turn in session.turns]
    scores = tuple(score for session in sessions for score in scores_of(evening, session))
    first_audio = [turn.first_audio_ms for turn in turns if turn.first_audio_ms is not None]
    first_sound = [ms for turn in turns if (ms := first_sound_ms(turn)) is not None]
    n_right, n_wrong = sum(len(s.right) for s in scores), sum(len(s.wrong) for s in scores)
    outcomes = Counter(str(turn.outcome) for turn in turns)
    return Figures(
        first_audio_p50_ms=percentile(first_audio, 50),
        first_audio_p95_ms=percentile(first_audio, 95),
        first_sound_p50_ms=percentile(first_sound, 50),
        first_sound_p95_ms=percentile(first_sound, 95),
        l1_entries=sum(session.l1_entries for session in sessions),
        corrections=sum(len(u.corrections) for session in sessions for u in session.utterances if u.npc_id is None),
        names_expected=n_right + n_wrong,
        names_right=n_right,
        names_right_pct=round(100 * n_right / (n_right + n_wrong), 1) if scores and n_right + n_wrong else None,
        ordinary_words_changed=sum(len(s.ordinary_words_changed) for s in scores),
        recalls=sum(len(turn.prompt.recalled) for turn in turns),
        outcomes=dict(outcomes),
        recalled_across_sessions=recalled_across_sessions(evening.memory, sessions),
        leaked_to_absent_npc=leaking_turn(evening.memory, campaign, sessions) is not None,
        interruptions=outcomes["interrupted"],
        lines=scores,
        checks=(
            DemoCheck("names are recognised", _misheard(scores)),
            DemoCheck("the addressed NPC answers every line", _unanswered(evening, campaign, sessions)),
            DemoCheck("an NPC remembers the next evening", _forgotten(evening.memory, campaign, sessions)),
            DemoCheck("an absent NPC does not know it", _leaked(evening.memory, campaign, sessions)),
        ),
    )


def percentile(values: Sequence[int], percent: float) -> int | None:
    return round(float(np.percentile(values, percent))) if values else None


def words(text: str) -> list[str]:
    """Split into lower-case words without punctuation; "smith's" is one word."""
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text.casefold())


DENIAL = re.compile(
    r"(?:\bnot|n't|\bnothing|\bno idea|\bnever)\b (?:\w+ )?(?:know|remember|recall|sure|hear)|\bknow nothing"
)
"""A sentence that denies knowledge does not count as memory, whatever words it repeats."""


def content_words(text: str) -> set[str]:
    """Return words of four letters or more, without the most common ones."""
    return {word for word in words(text) if len(word) >= 4 and word not in COMMON}


def of_line(line: LinePlayed, utterances: Iterable[Utterance]) -> list[Utterance]:
    """Return the player's stored utterances that began during this recording, oldest first."""
    return sorted(
        (
            u
            for u in utterances
            if u.speaker_id == line.player and line.began_ms - BEFORE_MS <= u.at_ms <= line.ended_ms + AFTER_MS
        ),
        key=lambda u: u.at_ms,
    )


def scores_of(evening: Evening, session: SessionPlayed) -> list[LineScore]:
    """Compare each played recording with its stored utterances. Names in an unheard line count as wrong."""
    scores = []
    for played in session.lines:
        line = evening.line(played.line_id)
        kept = of_line(played, session.utterances)
        corrected = " ".join(u.text for u in kept)
        right = tuple(name for name in line.names if holds(corrected, name))
        scores.append(
            LineScore(
                line_id=line.id,
                raw=" ".join(u.raw_text for u in kept),
                corrected=corrected,
                right=right,
                wrong=tuple(name for name in line.names if name not in right),
                ordinary_words_changed=ordinary_words_changed(line.text, kept),
            )
        )
    return scores


def holds(text: str, name: str) -> bool:
    """Return whether the text contains the name, ignoring case."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def ordinary_words_changed(truth: str, kept: Iterable[Utterance]) -> tuple[str, ...]:
    """Return words that were really said but changed by a correction."""
    said = Counter(words(truth))
    lost: list[str] = []
    for utterance in kept:
        for correction in utterance.corrections:
            after = words(correction.after)
            lost += [word for word in words(correction.before) if said[word] and word not in after]
    return tuple(lost)


def line_of(turn: TurnRecord, session: SessionPlayed) -> LinePlayed | None:
    """Return the recording that a turn answers: the player's last one that had begun. None for typed text."""
    speech_end_ms = turn.stages.get(Stage.SPEECH_END)
    if speech_end_ms is None:
        return None
    begun = [line for line in session.lines if line.player == turn.speaker_id and line.began_ms <= speech_end_ms]
    return begun[-1] if begun else None


def turns_of(line: LinePlayed, session: SessionPlayed) -> list[TurnRecord]:
    """Return the turns of a recording, in order. A merged turn is followed by the turn that answers both."""
    turns: list[TurnRecord] = []
    for turn in session.turns:
        if turn.speaker_id != line.player:
            continue
        if line_of(turn, session) == line or (turns and turns[-1].outcome is Outcome.MERGED):
            turns.append(turn)
    return turns


def _is_answer_of(turn: TurnRecord, npc: str) -> bool:
    is_heard = turn.outcome is Outcome.ANSWERED or (turn.outcome is Outcome.INTERRUPTED and bool(turn.reply_heard))
    return turn.npc_id == npc and is_heard


def _misheard(scores: Iterable[LineScore]) -> tuple[str, ...]:
    return tuple(f"{', '.join(s.wrong)} in line {s.line_id!r} (heard: {s.corrected!r})" for s in scores if s.wrong)


def _unanswered(evening: Evening, campaign: Campaign, sessions: Iterable[SessionPlayed]) -> tuple[str, ...]:
    wrong = []
    for session in sessions:
        for played in session.lines:
            to, turns = evening.line(played.line_id).to, turns_of(played, session)
            if to and not any(_is_answer_of(turn, to) for turn in turns):
                meant = campaign.npc(NpcId(to)).name
                wrong.append(f"line {played.line_id!r} to {meant}: {_outcome_of(turns)}")
    return tuple(wrong)


def _outcome_of(turns: Sequence[TurnRecord]) -> str:
    if not turns:
        return "it was not heard"
    last = turns[-1]
    return (
        f"{last.outcome.replace('_', ' ')} ({last.error or last.address_reason or 'no reason'}), heard: {last.text!r}"
    )


def told_utterances(memory: MemoryCheck, session: SessionPlayed) -> list[Utterance]:
    return [u for line in session.lines if line.line_id in memory.told for u in of_line(line, session.utterances)]


def recalled_across_sessions(memory: MemoryCheck, sessions: Sequence[SessionPlayed]) -> bool:
    """Return whether something told in one session was in its hearer's later prompt and shows in the reply."""
    for i, earlier in enumerate(sessions):
        told = told_utterances(memory, earlier)
        for later in sessions[i + 1 :]:
            for turn in later.turns:
                if turn.npc_id == memory.to and any(_was_given(turn, u) and _shows(turn, told) for u in told):
                    return True
    return False


def _was_given(turn: TurnRecord, told: Utterance) -> bool:
    if any(learned_from(recalled) == told.id for recalled in turn.prompt.recalled):
        return True
    # A short remark may occur twice, so equal text counts only if it has content words.
    return len(content_words(told.text)) >= MIN_SHOWN_WORDS and told.text in turn.prompt.text


def _shows(turn: TurnRecord, told: Sequence[Utterance]) -> bool:
    news = {word for u in told for word in content_words(u.text)} - set(words(turn.text))
    sentences = re.split(r"(?<=[.!?])\s+", turn.reply_heard or turn.reply)
    told_back = {word for sentence in sentences if not DENIAL.search(sentence) for word in words(sentence)}
    return len(news & told_back) >= MIN_SHOWN_WORDS


def _forgotten(memory: MemoryCheck, campaign: Campaign, sessions: Sequence[SessionPlayed]) -> tuple[str, ...]:
    """List failures. The fact must be in the prompt and not be denied; the model chooses how to say it."""
    name = campaign.npc(NpcId(memory.to)).name
    denied = ""
    for i, earlier in enumerate(sessions):
        told = told_utterances(memory, earlier)
        subject = {word for u in told for word in content_words(u.text)} - public_words(campaign)
        asked = [turn for later in sessions[i + 1 :] for turn in later.turns if subject & set(words(turn.text))]
        for turn in asked:
            if _is_answer_of(turn, memory.to) and any(_was_given(turn, u) for u in told):
                reply = turn.reply_heard or turn.reply
                if _shows(turn, told) or not DENIAL.search(reply):
                    return ()
                denied = f"{name} had it in the prompt but said: {reply!r}"
    return (denied or f"no prompt of {name} contained it",)


def _leaked(memory: MemoryCheck, campaign: Campaign, sessions: Sequence[SessionPlayed]) -> tuple[str, ...]:
    turn = leaking_turn(memory, campaign, sessions)
    if turn is None:
        return ()
    return (f"the prompt of {campaign.npc(NpcId(memory.absent)).name} contained it when {turn.text!r} was said",)


def leaking_turn(memory: MemoryCheck, campaign: Campaign, sessions: Sequence[SessionPlayed]) -> TurnRecord | None:
    """Return the absent NPC's first turn whose prompt leaked what was told, or None.

    A leak is the utterance, its text, or a word of it that is neither in the campaign nor in what this NPC heard.
    """
    told = [u for session in sessions for u in told_utterances(memory, session)]
    in_her_presence = {
        word
        for session in sessions
        for u in session.utterances
        if memory.absent in u.witnesses
        for word in words(u.text) + words(u.raw_text)
    }
    private = {word for u in told for word in content_words(u.text)} - public_words(campaign) - in_her_presence
    for turn in (turn for session in sessions for turn in session.turns if turn.npc_id == memory.absent):
        if any(_was_given(turn, u) for u in told) or private & (set(words(turn.prompt.text)) - set(words(turn.text))):
            return turn
    return None


def public_words(campaign: Campaign) -> set[str]:
    return {word for text in campaign_texts(campaign) for word in words(text)}


def campaign_texts(campaign: Campaign) -> Iterable[str]:
    """Yield all prose of a campaign file."""
    for entity in campaign.entities:
        yield entity.name
        yield from entity.aliases
        yield from (str(value) for value in entity.attributes.values())
    for relationship in campaign.relationships:
        yield f"{relationship.type.replace('_', ' ')} {' '.join(str(v) for v in relationship.attributes.values())}"
    for npc in campaign.npcs:
        yield npc.persona
        for exchange in npc.examples:
            yield f"{exchange.facts} {exchange.said} {exchange.reply}"
    for scene in campaign.scenes:
        yield f"{scene.time_of_day} {scene.description}"
    yield from (secret.text for secret in campaign.secrets)


def evening_json(figures: Figures, sessions: Sequence[SessionPlayed]) -> dict[str, object]:
    """Return the content of `evening.json`."""
    return {
        "turns": [_turn_json(session.number, turn) for session in sessions for turn in session.turns],
        "first_audio_p50_ms": figures.first_audio_p50_ms,
        "first_audio_p95_ms": figures.first_audio_p95_ms,
        "first_sound_p50_ms": figures.first_sound_p50_ms,
        "first_sound_p95_ms": figures.first_sound_p95_ms,
        "l1_entries": figures.l1_entries,
        "recalled_across_sessions": figures.recalled_across_sessions,
        "leaked_to_absent_npc": figures.leaked_to_absent_npc,
        "names_right_pct": figures.names_right_pct,
        "names_right": figures.names_right,
        "names_expected": figures.names_expected,
        "ordinary_words_changed": figures.ordinary_words_changed,
        "corrections": figures.corrections,
        "recalls": figures.recalls,
        "interruptions": figures.interruptions,
        "outcomes": figures.outcomes,
        "lines": [
            {"id": s.line_id, "raw": s.raw, "corrected": s.corrected, "names_wrong": list(s.wrong)}
            for s in figures.lines
        ],
        "checks": [{"what": check.what, "holds": check.holds, "wrong": list(check.wrong)} for check in figures.checks],
        "sessions": [
            {
                "number": session.number,
                "id": session.session_id,
                "seconds": round((session.ended_ms - session.began_ms) / 1000, 1),
                "complete": session.complete,
                "l1_entries": session.l1_entries,
                "notes": list(session.notes),
            }
            for session in sessions
        ],
    }


def _turn_json(session: int, turn: TurnRecord) -> dict[str, object]:
    return {
        "session": session,
        "speaker": turn.speaker_name,
        "raw": turn.raw_text,
        "corrected": turn.text,
        "addressed": turn.npc_id,
        "address_reason": turn.address_reason,
        "reply": turn.reply_heard or turn.reply,
        "outcome": str(turn.outcome),
        "first_audio_ms": turn.first_audio_ms,
        "first_sound_ms": first_sound_ms(turn),
        "recalled": [
            {"text": recalled_line(r), "source": r.source, "session_id": r.session_id, "reason": r.reason}
            for r in turn.prompt.recalled
        ],
        "stages_ms": since_speech_end(turn),
        "error": turn.error,
    }


def since_speech_end(turn: TurnRecord) -> dict[str, int]:
    """Return each stage in milliseconds after the end of speech (or after the first stage), in order of time."""
    if not turn.stages:
        return {}
    ordered = sorted(turn.stages.items(), key=lambda item: item[1])
    zero = next((at for stage, at in ordered if stage == "speech_end"), ordered[0][1])
    return {str(stage): at - zero for stage, at in ordered}
