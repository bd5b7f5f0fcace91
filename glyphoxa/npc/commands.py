"""The DM's commands at a running table: how each is written and stored, and what it does.

A command is given on the page, on the command line, in Discord or aloud. All of them pass its written form, which the
database stores: the command's name under `do`, and its arguments `npc`, `player`, `scene`, `line`, `text` and
`turns`, with names as the DM wrote them. `command_of` reads it, and `TableControl` performs it in the room.

Commands are not part of the transcript: only the words of `SayAs` are heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, get_type_hints

from loguru import logger
from pydantic import TypeAdapter

from glyphoxa.actors.deadline import done_within
from glyphoxa.actors.supervisor import follow
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, counted, did_you_mean
from glyphoxa.domain.events import PauseChanged, SessionEnds, TableEvent, Whispered
from glyphoxa.domain.heard import Draft, Heard, Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, PlayerId, SceneId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.turn_record import READDRESSED, TurnRecord, Unaddressed
from glyphoxa.names.naming import Called, Resolver, npcs_by_name, players_by_name
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.table_state import TableState
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.questions import Direction, DmControls
from glyphoxa.turns.turn import Effect
from glyphoxa.turns.turn_taking import TurnTaking

THE_DM: Final = PlayerId("the DM")
"""The speaker of words that the DM gives an NPC. Player ids contain no space."""
MAX_TURNS: Final = 25
"""Maximum number of an NPC's turns for which a direction stays in its prompt."""
MAX_IN_A_ROW: Final = 10
"""Maximum number of consecutive answers of NPCs to each other."""
MAX_ROUNDS: Final = 50
"""Maximum number of rounds between two summaries of a running session."""
MAX_DIRECTED: Final = 400
"""Maximum characters of a direction: the local model reads it again in every turn."""
MAX_SAID: Final = 600
"""Maximum characters of one `SayAs` or whisper."""
_NO_LINE: Final = (Unaddressed.COMMAND, Unaddressed.NOISE)
"""Asides that are no lines for anybody."""


@dataclass(slots=True, eq=False)
class TableControl:
    """Performs the DM's commands at an open table. An impossible command raises and has no effect.

    Args:
        perform: Performs effects of turn taking.
        said: Returns the latest utterances, oldest first, without retracted ones.
    """

    state: TableState
    turn_taking: TurnTaking
    npcs: Mapping[NpcId, NpcActor]
    perform: Callable[[Sequence[Effect]], None]
    said: Callable[[], Sequence[Utterance]]
    _changed: Callable[[DmControls], None] = lambda _: None

    @property
    def controls(self) -> DmControls:
        return self.turn_taking.questions.controls

    def obey(self, command: TableCommand, *, at_ms: int) -> str:
        """Perform a command. Returns a report for the DM.

        Raises:
            InvalidInput: The command is impossible.
        """
        before = deepcopy(self.controls)
        try:
            return command.apply(self, at_ms=at_ms)
        finally:  # the controls are in force even if an effect fails, and given again they change nothing
            if self.controls != before:
                self._changed(self.controls)

    def on_change(self, changed: Callable[[DmControls], None]) -> None:
        """Call this whenever the controls change."""
        self._changed = changed

    def finished(self, record: TurnRecord, *, was_heard: bool) -> None:
        """Take a finished turn, which may end a direction."""
        npc = record.npc_id
        if npc is None or not was_heard or record.speaker_id == SpeakerId(THE_DM):
            return
        if self.controls.answered(npc):
            self._changed(self.controls)

    def restore(self, controls: DmControls) -> None:
        """Restore the controls of this session. Call before anybody speaks."""
        self.turn_taking.questions.controls = replace(controls, dms=self.controls.dms)
        if controls.memory_interval is not None:
            self.summarise_every(controls.memory_interval)

    def summarise_every(self, rounds: int) -> None:
        for summary in self.state.summaries.values():
            summary.interval = rounds

    def tell(self, event: TableEvent) -> None:
        self.state.events.tell(event)

    def name(self, npc: NpcId) -> str:
        return self.npcs[npc].npc.name

    def names(self, npcs: Collection[NpcId]) -> str:
        return ", ".join(npc.npc.name for npc_id, npc in self.npcs.items() if npc_id in npcs)

    def line(self, ending: str) -> Utterance:
        """Return the latest line of a player whose id ends with this. Raises: InvalidInput: There is none."""
        lines = (said for said in self.said() if said.npc_id is None and said.aside not in _NO_LINE)
        found = [said for said in lines if said.id.endswith(ending)]
        if not found:
            raise InvalidInput(f"no player has said a line {ending!r} lately" if ending else "no player has spoken yet")
        return found[-1]

    def must_be_heard(self, npc: NpcId) -> None:
        """Raises: InvalidInput: The NPC cannot speak now."""
        present = self.turn_taking.present
        if self.controls.is_paused:
            raise InvalidInput("the table is paused, so nobody would be heard: resume it first")
        if npc not in present:
            raise InvalidInput(f"{self.name(npc)} is not in this scene; here: {self.names(present) or 'nobody'}")


class TableCommand:
    """A command that the room performs."""

    __slots__ = ()

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        """Perform it, see `TableControl.obey`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Mute(TableCommand):
    """Stop an NPC from answering until `Unmute`, and end what it is saying. `npc` None: all NPCs."""

    npc: NpcId | None = None

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        npcs = table.npcs if self.npc is None else (self.npc,)
        table.controls.muted.update(npcs)
        table.perform(table.turn_taking.silence(npcs, at_ms=at_ms))
        return "everybody is muted" if self.npc is None else f"{table.name(self.npc)} is muted"


@dataclass(frozen=True, slots=True)
class Unmute(TableCommand):
    """Let an NPC answer again. `npc` None: all NPCs."""

    npc: NpcId | None = None

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        table.controls.muted.difference_update(table.npcs if self.npc is None else (self.npc,))
        return "everybody may speak again" if self.npc is None else f"{table.name(self.npc)} may speak again"


@dataclass(frozen=True, slots=True)
class SayAs(TableCommand):
    """Say these words in the NPC's voice; from then on they count as the NPC's own."""

    npc: NpcId
    text: str

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        npc, name = table.npcs[self.npc], table.name(self.npc)
        table.must_be_heard(self.npc)
        _must_fit(self.text, MAX_SAID, "words for an NPC")
        if not npc.says_given_words:
            raise InvalidInput(
                f"{name} speaks with the engine {npc.npc.engine!r}, which chooses its own words; direct it instead"
            )
        draft = Draft(THE_DM, Heard(self.text, self.text, (), at_ms, at_ms), at_ms, at_ms, typed=True)
        table.perform(table.turn_taking.say(self.npc, draft, Addressed(self.npc, "words of the DM"), at_ms=at_ms))
        return f"{name} will say it as soon as the floor is free"


@dataclass(frozen=True, slots=True)
class Direct(TableCommand):
    """Give an instruction for an NPC's next answers. An empty `text` removes the current one."""

    npc: NpcId
    text: str
    turns: int = 1

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        if not self.text:
            table.controls.directions.pop(self.npc, None)
            return f"{table.name(self.npc)} has no direction any more"
        _must_fit(self.text, MAX_DIRECTED, "a direction")
        if not 1 <= self.turns <= MAX_TURNS:
            raise InvalidInput(f"a direction applies to 1 to {MAX_TURNS} turns, not {self.turns}")
        table.controls.directions[self.npc] = Direction(self.text, self.turns)
        return f"{table.name(self.npc)} is directed for {_answers(self.turns)}"


@dataclass(frozen=True, slots=True)
class Puppet(TableCommand):
    """Send everything this player says to this NPC. `npc` None ends it."""

    player: PlayerId
    npc: NpcId | None

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        if self.npc is None:
            table.controls.puppets.pop(self.player, None)
            return f"what {table.state.name_of(self.player)} says is addressed as usual again"
        table.controls.puppets[self.player] = self.npc
        return _bound(table, self.player, self.npc)


@dataclass(frozen=True, slots=True)
class Readdress(TableCommand):
    """Say who a player's line was meant for: this NPC answers it now, and no other. `npc` None: nobody.

    Attributes:
        line: The id of the utterance, or the end of it; empty: the last line of a player.
    """

    npc: NpcId | None
    line: UtteranceId

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        said, name = table.line(self.line), "nobody"
        if self.npc is not None:
            name = table.name(self.npc)
            table.must_be_heard(self.npc)
            if self.npc in table.controls.muted:
                raise InvalidInput(f"{name} is muted: unmute it first")
            if said.aside is None and self.npc not in said.witnesses:
                raise InvalidInput(f"{name} was not there when {said.speaker_name} said it")
        heard = Heard(said.text, said.raw_text, said.corrections, at_ms, at_ms)
        draft = Draft(said.seat or PlayerId(said.speaker_id), heard, at_ms, at_ms, utterance=said.id)
        unaddressed = Unaddressed.NOT_MEANT if self.npc is None else None
        addressed = Addressed(self.npc, f"{READDRESSED}{name}", unaddressed)
        table.perform(table.turn_taking.readdress(draft, addressed, at_ms=at_ms))
        return f"what {said.speaker_name} said was for {name}"


@dataclass(frozen=True, slots=True)
class StopAll(TableCommand):
    """Stop all speech and discard pending answers. The next utterance is answered again."""

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        table.perform(table.turn_taking.hush_all())
        return "everybody was stopped"


@dataclass(frozen=True, slots=True)
class WhisperTo(TableCommand):
    """Show words to one player only."""

    player: PlayerId
    text: str

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        _must_fit(self.text, MAX_SAID, "a whisper")
        name = table.state.name_of(self.player)
        if not table.state.is_seated(self.player):
            raise InvalidInput(f"{name} does not sit at the table and would not see it")
        table.tell(Whispered(self.player, self.text, at_ms))
        return f"{name} reads it"


@dataclass(frozen=True, slots=True)
class LetNpcsTalk(TableCommand):
    """Let NPCs that are called by name answer each other, at most this many times in a row; 0: never."""

    most_in_a_row: int

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        if not 0 <= self.most_in_a_row <= MAX_IN_A_ROW:
            raise InvalidInput(
                f"NPCs may give each other 0 to {MAX_IN_A_ROW} answers in a row, not {self.most_in_a_row}"
            )
        table.controls.npc_to_npc = self.most_in_a_row
        return _talking(self.most_in_a_row) if self.most_in_a_row else "NPCs answer players only"


@dataclass(frozen=True, slots=True)
class SummariseEvery(TableCommand):
    """Bring the summaries of this session up to date after this many rounds."""

    rounds: int

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        if not 1 <= self.rounds <= MAX_ROUNDS:
            raise InvalidInput(f"summaries are made every 1 to {MAX_ROUNDS} rounds, not {self.rounds}")
        table.controls.memory_interval = self.rounds
        table.summarise_every(self.rounds)
        return _summarised(self.rounds)


@dataclass(frozen=True, slots=True)
class Pause(TableCommand):
    """Stop listening, answering and recording until `Unpause`."""

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        table.controls.is_paused = True
        table.tell(PauseChanged(True, at_ms))
        table.perform(table.turn_taking.hush_all())
        return "the table is paused: nothing is heard, answered or stored"


@dataclass(frozen=True, slots=True)
class Unpause(TableCommand):
    """Resume a paused table."""

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        table.controls.is_paused = False
        table.tell(PauseChanged(False, at_ms))
        return "the table continues"


@dataclass(frozen=True, slots=True)
class EndSession(TableCommand):
    """Close the table and end the session."""

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        table.tell(SessionEnds(at_ms))
        return "the session ends, and the table closes"


@dataclass(frozen=True, slots=True)
class ShowControls(TableCommand):
    """Show which commands are in force."""

    def apply(self, table: TableControl, *, at_ms: int) -> str:
        controls, state = table.controls, table.state
        lines = [
            f"scene: {state.location_name}, session {state.session}",
            f"NPCs: {table.names(table.turn_taking.present) or 'nobody'}",
            f"players: {', '.join(state.seated_names) or 'nobody'}",
        ]
        if controls.is_paused:
            lines.append("the table is paused")
        if controls.muted:
            lines.append(f"muted: {table.names(controls.muted)}")
        lines += [
            f"directed for {_answers(direction.turns_left)}: {table.name(npc)}: {direction.text}"
            for npc, direction in controls.directions.items()
        ]
        lines += [_bound(table, player, npc) for player, npc in controls.puppets.items()]
        if most := table.turn_taking.follow_ups.max_in_a_row:
            lines.append(_talking(most))
        if rounds := controls.memory_interval:
            lines.append(_summarised(rounds))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class MoveTo:
    """Move the table to another scene. The session performs it, because it takes time."""

    scene: SceneId


SessionCommand = TableCommand | MoveTo
COMMANDS: Final[Mapping[str, type[SessionCommand]]] = {
    "mute": Mute,
    "unmute": Unmute,
    "say": SayAs,
    "direct": Direct,
    "puppet": Puppet,
    "readdress": Readdress,
    "whisper": WhisperTo,
    "talk": LetNpcsTalk,
    "summarise": SummariseEvery,
    "scene": MoveTo,
    "stop": StopAll,
    "pause": Pause,
    "resume": Unpause,
    "end": EndSession,
    "show": ShowControls,
}
"""The commands by the names under which a DM gives them."""


def _must_fit(text: str, most: int, what: str) -> None:
    if not text.strip():
        raise InvalidInput(f"{what} must not be empty")
    if len(text) > most:
        raise InvalidInput(f"{what} may have at most {most} characters, not {len(text)}")


def _answers(n: int) -> str:
    return "its next answer" if n == 1 else f"its next {n} answers"


def _bound(table: TableControl, player: PlayerId, npc: NpcId) -> str:
    return f"what {table.state.name_of(player)} says goes to {table.name(npc)}"


def _talking(most: int) -> str:
    return f"NPCs may give each other {counted(most, 'answer')} in a row"


def _summarised(rounds: int) -> str:
    return f"summaries are made every {counted(rounds, 'round')}"


# The written form.


WrittenCommand = Mapping[str, object]
"""`do` and its arguments. Without `npc`: all NPCs, or none any more."""


def command_of(written: WrittenCommand, campaign: Campaign) -> SessionCommand:
    """Read a command, and resolve the names in it.

    Raises:
        NotFound: Nobody has that name.
        InvalidInput: It is not a command, a name is ambiguous, or a number is none.
    """
    do = written.get("do")
    command = COMMANDS.get(str(do))
    if command is None:
        raise InvalidInput(f"unknown table command {do!r}: {did_you_mean(str(do), COMMANDS)}")
    return command(**{name: _value(kind, written, campaign) for name, kind in get_type_hints(command).items()})


def _value(kind: object, written: WrittenCommand, campaign: Campaign) -> Any:
    """Return the value of a command's field of this type. Each type has one name in the written form."""
    if kind is int:
        turns = written.get("turns", -1)
        if isinstance(turns, str) and not (turns.isascii() and turns.isdecimal() and len(turns) < 10):
            raise InvalidInput(f"the number of answers must be a number, not {turns!r}")
        return int(turns) if isinstance(turns, int | str) else -1
    if kind is str:  # on one line
        return " ".join(str(written.get("text") or "").split())
    if kind is UtteranceId:
        return UtteranceId(str(written.get("line") or ""))
    if kind is SceneId:
        return scene_called(str(written.get("scene") or ""), campaign)
    if kind is PlayerId:
        return players_by_name(campaign.players, campaign.id).one(str(written.get("player") or "")).id
    if kind != NpcId and written.get("npc") is None:  # all NPCs, or none any more
        return None
    npcs = npcs_by_name(campaign.npcs, {each.id: each for each in campaign.entities}, campaign.id)
    return npcs.one(str(written.get("npc") or "")).id


def scene_called(name: str, campaign: Campaign) -> SceneId:
    """Return the scene with this id, or at the location with this name.

    Raises:
        NotFound: There is none.
        InvalidInput: It may be several.
    """
    places = {each.id: each.name for each in campaign.entities}

    def called(scene: Scene) -> Called:
        return Called(scene.id, (places.get(scene.location, scene.id), scene.id))

    return Resolver(campaign.scenes, called, campaign=campaign.id, what="scene").one(name).id


# Commands from other processes, and the controls in force, which are stored with the session, so that reopening it
# restores mutes and directions.


_WAIT_FOR_MS: Final = 1_000
_OBEYED_WITHIN_S: Final = 3.0
_STORED: Final = TypeAdapter(DmControls)


class StoredControls:
    """Stores the controls in the background, only the newest state."""

    def __init__(self, campaign: CampaignId, session: SessionId, store: CommandInbox) -> None:
        self._campaign = campaign
        self._session = session
        self._store = store
        self._newest: Mapping[str, Any] = {}
        self._changed = asyncio.Event()
        self._is_kept = asyncio.Event()
        self._is_kept.set()

    async def before(self, npcs: Collection[NpcId]) -> DmControls:
        """Return the controls from the end of the last run, for these NPCs."""
        try:
            return _restored(await self._store.controls(self._campaign, self._session), npcs)
        except GlyphoxaError as error:
            logger.warning("mutes and directions of this session could not be restored: {}", error)
            return DmControls()

    def on_changed(self, controls: DmControls) -> None:
        self._newest = _STORED.dump_python(controls, mode="json", exclude={"dms"})
        self._changed.set()
        self._is_kept.clear()

    async def wait_until_kept(self) -> None:
        """Wait briefly until the database has the current controls.

        A confirmed command then usually survives a crash. It applies even if the wait times out.
        """
        await done_within(_WAIT_FOR_MS, self._is_kept.wait())

    async def run(self) -> None:
        """Run the actor."""
        await follow(self._changes, self._keep, what="the DM's controls")

    async def _changes(self) -> AsyncGenerator[Mapping[str, Any], None]:
        while True:
            await self._changed.wait()
            yield self._newest

    async def _keep(self, controls: Mapping[str, Any]) -> None:
        await self._store.keep_controls(self._campaign, self._session, controls)
        if controls is self._newest:
            self._changed.clear()
            self._is_kept.set()


def _restored(kept: Mapping[str, Any], npcs: Collection[NpcId]) -> DmControls:
    """Parse stored controls, without NPCs that the campaign no longer has."""
    controls = _STORED.validate_python(kept)
    controls.muted &= set(npcs)
    controls.directions = {npc: each for npc, each in controls.directions.items() if npc in npcs}
    controls.puppets = {player: npc for player, npc in controls.puppets.items() if npc in npcs}
    return controls


class CommandInbox(Protocol):
    """Commands of DMs, and the controls that they set. Each is taken by one table soon after it was given, or never.

    Calls raise `Unavailable` if the database is unreachable.
    """

    async def controls(self, campaign: CampaignId, session: SessionId) -> Mapping[str, Any]:
        """Return the stored controls; empty if there are none."""
        ...

    async def keep_controls(self, campaign: CampaignId, session: SessionId, controls: Mapping[str, Any]) -> None: ...

    async def take(self, campaign: CampaignId, session: SessionId) -> tuple[str, WrittenCommand] | None:
        """Take the oldest command for this table, with its id."""
        ...

    async def answer(self, campaign: CampaignId, command: str, text: str, *, is_done: bool) -> None:
        """Answer a command. Its sender waits for this."""
        ...

    def changes(self, campaign: CampaignId) -> AsyncGenerator[object, None]:
        """Yield whenever there may be a command."""
        ...


async def follow_commands(
    state: TableState, inbox: CommandInbox, *, obey: Callable[[SessionCommand], Awaitable[str]]
) -> None:
    """Take commands for a table from an inbox and obey them. An actor.

    Args:
        obey: Obeys one and returns a report; raises `InvalidInput`.
    """
    campaign = state.campaign.id

    async def result_of(written: WrittenCommand) -> tuple[str, bool]:
        try:
            command = command_of(written, state.campaign)
            async with asyncio.timeout(_OBEYED_WITHIN_S):
                return await obey(command), True
        except InvalidInput as error:
            return str(error), False
        except TimeoutError:
            return "the table received the command but has not obeyed it yet: it is busy, or closing", False

    async def take_all(_: object) -> None:
        while (taken := await inbox.take(campaign, state.session)) is not None:
            id_, written = taken
            text, is_done = await result_of(written)
            await inbox.answer(campaign, id_, text, is_done=is_done)

    await follow(lambda: inbox.changes(campaign), take_all, what="the DM's commands")
