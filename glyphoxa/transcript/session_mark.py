"""Notes which session is being played, from the first word on, and that it was closed: for who opens a table again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from glyphoxa.domain.events import SceneChanged, TableEvent, UtteranceKept
from glyphoxa.domain.ids import CampaignId, SceneId, SessionId
from glyphoxa.transcript.last_sessions import LastSession, LastSessions


class SessionMark:
    """
    Args:
        now_ms: Unix epoch.
    """

    def __init__(
        self, sessions: LastSessions, campaign: CampaignId, session: SessionId, *, now_ms: Callable[[], int]
    ) -> None:
        self._sessions = sessions
        self._campaign = campaign
        self._now_ms = now_ms
        before = sessions.of(campaign)
        self.before = before if before is not None and before.session == session else None
        """The session as it was left; None when it is a new one."""
        self._session = session
        self._scene: SceneId | None = None
        self._mark: LastSession | None = None
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def on(self, event: TableEvent) -> None:
        """Be told what happens at the table. Returns at once."""
        match event:
            case SceneChanged(scene):
                self._scene = scene.id
                if self._mark is not None:
                    self._note(replace(self._mark, scene=scene.id))
            case UtteranceKept() if self._mark is None and self._scene is not None:
                began_ms = self.before.began_ms if self.before is not None else event.utterance.at_ms
                self._note(LastSession(self._session, began_ms, self._scene))

    async def closed(self) -> None:
        """The session was closed in order."""
        if self._mark is None and self.before is not None:
            self._mark = self.before
        if self._mark is not None:
            self._mark = replace(self._mark, closed_ms=self._now_ms())
            await self._write()

    def _note(self, mark: LastSession) -> None:
        self._mark = mark
        task = asyncio.get_running_loop().create_task(self._write())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self) -> None:
        """What is known when it is written; the last of several is what stays."""
        async with self._writing:
            if self._mark is not None:
                await asyncio.to_thread(self._sessions.note, self._campaign, self._mark)
