"""Read the data of the recall benchmarks: `turns.jsonl` and `questions.jsonl`.

    {"campaign": "c", "session": "s01", "turn": 0, "id": "D1:3", "speaker": "Tamsin", "text": "...", "at": null}
    {"id": "q1", "campaign": "c", "question": "...", "category": "multi-hop", "evidence": ["D1:3"]}

Published evidence ids are not clean ("D8:6; D9:17", "D:11:26", "D30:05"). They are split and compared by their letters
and numbers. An id that still matches no turn is dropped and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.runner import json_lines
from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId, SessionId, SpeakerId, UtteranceId

WITNESS: Final = NpcId("the-witness")
"""The NPC that asks all questions: it was always present, and said nothing."""
WITNESS_NAME: Final = "Aldric"
_PLACE: Final = EntityId("the-place")
_FIRST_DAY_MS: Final = 1_704_067_200_000
_WEEK_MS: Final = 7 * 24 * 3_600_000
_TURN_MS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Turn:
    """
    Attributes:
        id: In the file; unique in its campaign.
        at_ms: Without a time in the file, sessions are a week apart, turns five seconds.
    """

    campaign: CampaignId
    session: str
    id: str
    speaker: str
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Question:
    """
    Attributes:
        evidence: Ids of turns, each once.
    """

    id: str
    campaign: CampaignId
    text: str
    category: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecallData:
    """
    Attributes:
        turns: The turns of each campaign, in the order of the file.
        questions: Those that have evidence.
        without_evidence: Questions whose evidence matches no turn.
        evidence_dropped: Ids that match no turn.
    """

    turns: Mapping[CampaignId, Sequence[Turn]]
    questions: Sequence[Question]
    without_evidence: int = 0
    evidence_dropped: int = 0

    def first(self, n: int | None) -> RecallData:
        """Return the data with the first `n` questions only."""
        return self if n is None else RecallData(self.turns, self.questions[:n], 0, 0)

    @property
    def n_turns(self) -> int:
        return sum(map(len, self.turns.values()))


def read_turns(path: Path) -> dict[CampaignId, list[Turn]]:
    """
    Raises:
        InvalidInput: The file is missing or a line is invalid; the message says which.
    """
    turns: dict[CampaignId, list[Turn]] = {}
    clock = _Clock()
    for where, line in json_lines(path):
        campaign = CampaignId(_text(line, "campaign", where))
        session, id_ = _text(line, "session", where), _text(line, "id", where)
        at_ms = clock.at_ms(campaign, session, line.get("at"), where)
        speaker = _text(line, "speaker", where)
        said = Turn(campaign, session, id_, speaker, _text(line, "text", where, may_be_empty=True), at_ms)
        turns.setdefault(campaign, []).append(said)
    return turns


def read_data(directory: Path) -> RecallData:
    """
    Raises:
        InvalidInput: A file is missing or a line is invalid; the message says which.
    """
    turns = read_turns(directory / "turns.jsonl")
    by_campaign = {campaign: TurnIds(turn.id for turn in said) for campaign, said in turns.items()}
    for campaign, ids in by_campaign.items():
        if len(ids) != len(turns[campaign]):
            raise InvalidInput(f"{directory / 'turns.jsonl'}: two turns of campaign {campaign!r} have the same id")
    questions, dropped, without = [], 0, 0
    for where, line in json_lines(directory / "questions.jsonl"):
        campaign = CampaignId(_text(line, "campaign", where))
        named = line.get("evidence") or ()
        named = [named] if isinstance(named, str) else named
        evidence, n_unknown = by_campaign.get(campaign, _NO_TURNS).evidence(map(str, named))
        dropped += n_unknown
        if not evidence:
            without += 1
            continue
        asked, category = _text(line, "question", where), str(line.get("category") or "all")
        questions.append(Question(_text(line, "id", where), campaign, asked, category, evidence))
    return RecallData(turns, questions, without, dropped)


class TurnIds:
    """The ids of a campaign's turns, found by similar spellings."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = frozenset(ids)
        self._by_key: dict[tuple[str | int, ...], str | None] = {}
        for id_ in self._ids:
            key = _key(id_)
            self._by_key[key] = None if key in self._by_key else id_  # two that look alike match neither

    def __len__(self) -> int:
        return len(self._ids)

    def evidence(self, named: Iterable[str]) -> tuple[tuple[str, ...], int]:
        """Return the matching turns, each once, and the number of names without one."""
        found: dict[str, None] = {}
        n_unknown = 0
        for text in named:
            for one in [text] if text in self._ids else filter(None, re.split(r"[;,\s]+", text)):
                id_ = one if one in self._ids else self._by_key.get(_key(one))
                if id_ is None:
                    n_unknown += 1
                else:
                    found[id_] = None
        return tuple(found), n_unknown


_NO_TURNS: Final = TurnIds(())


def _key(text: str) -> tuple[str | int, ...]:
    return tuple(int(part) if part.isdecimal() else part.casefold() for part in re.findall(r"\d+|[^\W\d_]+", text))


def utterances_of(turns: Sequence[Turn]) -> list[Utterance]:
    """Return utterances as the table stores them.

    Ids contain the campaign's, because a program's are unique everywhere.
    """
    return [
        Utterance(
            id=utterance_id(turn.campaign, turn.id),
            campaign_id=turn.campaign,
            session_id=SessionId(turn.session),
            speaker_id=SpeakerId(f"speaker {turn.speaker}"),
            speaker_name=turn.speaker,
            text=turn.text,
            raw_text=turn.text,
            at_ms=turn.at_ms,
            witnesses=frozenset((WITNESS,)),
        )
        for turn in turns
    ]


def utterance_id(campaign: CampaignId, turn_id: str) -> UtteranceId:
    return UtteranceId(f"{campaign}/{turn_id}")


def turn_id(campaign: CampaignId, utterance: str) -> str:
    return utterance.removeprefix(f"{campaign}/")


def campaign_of(campaign: CampaignId, turns: Sequence[Turn]) -> Campaign:
    """Return a minimal campaign: its speakers are players, and one NPC is with them."""
    speakers = dict.fromkeys(turn.speaker for turn in turns)
    itself = EntityId(WITNESS)
    people = [Entity(EntityId(f"speaker {name}"), "player", name) for name in speakers]
    return Campaign(
        id=campaign,
        name=str(campaign),
        language="en",
        entities=(Entity(_PLACE, "location", "The Inn"), Entity(itself, "npc", WITNESS_NAME), *people),
        relationships=(),
        npcs=(Npc(WITNESS, itself, WITNESS_NAME, f"You are {WITNESS_NAME}."),),
        players=tuple(Player(PlayerId(f"speaker {name}"), name) for name in speakers),
        scenes=(Scene(SceneId("the-scene"), _PLACE, (WITNESS,)),),
        time_zone="UTC",  # the same on every machine
    )


class _Clock:
    """Times of turns, also if the file has none."""

    def __init__(self) -> None:
        self._sessions: dict[CampaignId, list[str]] = {}
        self._last_ms: dict[CampaignId, int] = {}

    def at_ms(self, campaign: CampaignId, session: str, at: object, where: str) -> int:
        sessions = self._sessions.setdefault(campaign, [])
        is_new = not sessions or sessions[-1] != session
        if is_new:
            sessions.append(session)
        if at is not None:
            found = _ms(at, where)
        elif campaign not in self._last_ms:
            found = _FIRST_DAY_MS
        else:
            found = self._last_ms[campaign] + (_WEEK_MS if is_new else _TURN_MS)
        self._last_ms[campaign] = found
        return found


def _ms(at: object, where: str) -> int:
    try:
        time = datetime.fromisoformat(str(at).replace("Z", "+00:00"))
    except ValueError:
        raise InvalidInput(f"{where}: at is {at!r}; valid: a time like 2023-05-08T13:56:00Z, or null") from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1_000)


def _text(line: Mapping[str, Any], key: str, where: str, *, may_be_empty: bool = False) -> str:
    value = line.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not (value or may_be_empty):
        raise InvalidInput(f"{where}: {key} is {value!r}; valid: a text")
    return value
