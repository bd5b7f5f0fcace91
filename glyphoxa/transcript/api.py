"""Memory level 1, as others use it: what was said is kept, looked at again, found and shown.

Recall and the adapters, which read and store talk in bulk, also know `feed` and `chunking`.
"""

from __future__ import annotations

from glyphoxa.transcript.decisions import DecidedTalk, News
from glyphoxa.transcript.episodes import EPISODE, episode_of
from glyphoxa.transcript.journal import FinishedTurn, Journal, SoFar
from glyphoxa.transcript.last_sessions import LastSession, LastSessions
from glyphoxa.transcript.ports import (
    Decided,
    Found,
    PastTalk,
    SessionSummaries,
    TalkDecisions,
    TalkFilter,
    TalkQuery,
    TalkSearch,
    TranscriptLog,
)
from glyphoxa.transcript.recent_talk import RecentTalk
from glyphoxa.transcript.reviser import Reviser
from glyphoxa.transcript.session_mark import SessionMark
from glyphoxa.transcript.story_days import BETWEEN, DayTold, day_now

__all__ = [
    "BETWEEN",
    "EPISODE",
    "DayTold",
    "Decided",
    "DecidedTalk",
    "FinishedTurn",
    "Found",
    "Journal",
    "LastSession",
    "LastSessions",
    "News",
    "PastTalk",
    "RecentTalk",
    "Reviser",
    "SessionMark",
    "SessionSummaries",
    "SoFar",
    "TalkDecisions",
    "TalkFilter",
    "TalkQuery",
    "TalkSearch",
    "TranscriptLog",
    "day_now",
    "episode_of",
]
