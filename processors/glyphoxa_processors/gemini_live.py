"""A speech-to-speech session with Google's Gemini Live protocol.

Such a session cannot forget: no item can be deleted or cut. Therefore each connection answers one question. The next
one is opened after the answer with the same instructions, and gets the conversation with the question. A session thus
knows only the prompt, even after an interruption or a change by the DM. It stays below its limits of context and time,
and a dropped connection loses nothing. A connection declares its tools once. The one that is opened in advance declares
those of the last question, and another one is opened if the next question has another tier.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google import genai
from google.genai import errors, types

from glyphoxa.actors.deadline import end_tasks
from glyphoxa.chat.dialect import Connection
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.prompt.prompt import Message
from glyphoxa_processors.s2s_session import (
    Call,
    Given,
    SessionFailed,
    SessionLost,
    SpokenSound,
    SpokenWords,
    arguments_of,
    closed_because,
    instructions_of,
    message_of,
    pcm_of,
    reason,
    text_of,
    translated,
    value_at,
)
from glyphoxa_processors.sockets import FAULTS, OPEN_WITHIN_S

if TYPE_CHECKING:
    from google.genai.live import AsyncSession

_LAST_WORDS_WITHIN_S = 0.5
"""The server ends a turn after playback and reports earlier that generation is complete. The transcript may arrive a
little later than that report."""

_ODD_ANSWER = (ValueError, TypeError, AttributeError)
"""How the SDK fails at an answer it cannot read."""


@dataclass(frozen=True, slots=True)
class LiveEndpoint:
    """Google, or a compatible service."""

    connection: Connection
    voice: str

    def session(self, tools: Sequence[ToolSpec], on_ending: Callable[[], None]) -> LiveSession:
        return LiveSession(self, tools, on_ending)


def endpoint(connection: Connection, *, voice: str | None = None) -> LiveEndpoint:
    return LiveEndpoint(connection, voice or "Charon")


class _Line:
    """One connection and its state."""

    def __init__(self, on_ending: Callable[[], None]) -> None:
        self._on_ending = on_ending
        self.stack = AsyncExitStack()
        self.came: asyncio.Queue[Mapping[str, Any] | SessionFailed] = asyncio.Queue()
        self.is_asked = False
        self.is_called = False
        self.is_ending = False
        self._reading: asyncio.Task[None] | None = None
        self.live: AsyncSession

    async def open(self, client: genai.client.AsyncClient, model: str, config: types.LiveConnectConfig) -> None:
        try:
            self.live = await self.stack.enter_async_context(client.live.connect(model=model, config=config))
        except errors.APIError as error:  # closed before it was open
            raise SessionFailed(closed_because(error.code, error.message or str(error.details))) from error
        self._reading = asyncio.create_task(self._read(self.live), name="receive")

    async def close(self) -> None:
        if self._reading is not None:
            await end_tasks(self._reading)
        await self.stack.aclose()

    async def _read(self, live: AsyncSession) -> None:
        # The SDK's own reader ends at a message that is new, not JSON or without a status.
        socket: Any = live._ws
        try:
            while True:
                message = message_of(await socket.recv(decode=False))
                if error := value_at(message, "error", kind=dict):
                    self.came.put_nowait(SessionFailed(text_of(error)))
                else:
                    self.came.put_nowait(message)
                if "goAway" in message:
                    self._ends()
        except FAULTS as error:
            self.came.put_nowait(SessionLost(reason(error)))
            self._ends()

    def _ends(self) -> None:
        self.is_ending = True
        self._on_ending()


class LiveSession:
    """A `SpeechSession` with one connection for each question, opened in advance."""

    def __init__(self, endpoint: LiveEndpoint, tools: Sequence[ToolSpec], on_ending: Callable[[], None]) -> None:
        self._endpoint = endpoint
        self._tools = tools
        self._on_ending = on_ending
        self._client = _client(endpoint.connection).aio
        self._instructions = ""
        self._line: _Line | None = None
        # Second-generation models answer once the conversation is complete; later ones wait for realtime input after
        # it.
        self._speaks_at_once = "gemini-2" in endpoint.connection.model

    async def open(self) -> None:
        if self._line is None or self._line.is_asked or self._line.is_ending:
            await self._connect()

    async def expect(self, instructions: str) -> None:
        if instructions != self._instructions:
            self._instructions = instructions
            await self._connect()

    async def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> None:
        if [*tools] != [*self._tools]:
            self._tools = tools
            await self.close()
        await self.expect(instructions_of(messages))
        await self.open()
        line = self._open_line()
        line.is_asked = True
        turns = [_content(message) for message in messages if message.role != "system"]
        with translated(*_ODD_ANSWER):
            if self._speaks_at_once:
                await line.live.send_client_content(turns=list(turns), turn_complete=True)
            else:
                await line.live.send_client_content(turns=list(turns[:-1]), turn_complete=True)
                await line.live.send_realtime_input(text=messages[-1].content)

    async def respond(self, tools: Sequence[ToolSpec]) -> AsyncIterator[Given]:
        line = self._open_line()
        is_made = has_given = False
        while True:
            try:
                async with asyncio.timeout(_LAST_WORDS_WITHIN_S if is_made else None):
                    came = await line.came.get()
            except TimeoutError:
                return
            if isinstance(came, SessionFailed):
                raise came
            for given in _given(came):
                has_given = True
                yield given
            if "toolCall" in came:
                line.is_called = True
                return
            content = value_at(came, "serverContent", kind=dict)
            if content.get("interrupted"):
                raise SessionLost("the server interrupted the reply")
            if content.get("turnComplete"):
                if not has_given and line.is_called:
                    # The end of the call's own turn, which may arrive after the answer to the call.
                    line.is_called = False
                    continue
                if not has_given and (why := value_at(content, "turnCompleteReason", kind=str)):
                    raise SessionFailed(f"the model gave no reply: {why}")
                return
            is_made = is_made or bool(content.get("generationComplete") and has_given)

    async def answer(self, answers: Sequence[tuple[Call, Any]]) -> None:
        responses = [types.FunctionResponse(id=call.id, name=call.name, response=found) for call, found in answers]
        with translated(*_ODD_ANSWER):
            await self._open_line().live.send_tool_response(function_responses=responses)

    def replied(self, text: str) -> None:
        """Do nothing: the next question contains what was heard."""

    async def heard(self, text: str, *, audio_ms: int) -> None:
        """Do nothing: the next question contains what was heard."""

    async def stop(self) -> None:
        """Close the connection, because the protocol has no stop message."""
        if self._line is not None and self._line.is_asked:
            await self.close()

    async def renew(self) -> None:
        await self.open()

    async def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            with translated(*_ODD_ANSWER):
                await line.close()

    def _open_line(self) -> _Line:
        if self._line is None:
            raise SessionLost("the session is not open")
        return self._line

    async def _connect(self) -> None:
        line = _Line(self._on_ending)
        with translated(*_ODD_ANSWER):
            try:
                async with asyncio.timeout(OPEN_WITHIN_S):
                    await line.open(self._client, self._endpoint.connection.model, self._configuration())
            except BaseException:  # including cancellation
                await line.close()
                raise
        await self.close()
        self._line = line

    def _configuration(self) -> types.LiveConnectConfig:
        declared = [
            types.FunctionDeclaration(
                name=spec.wire_name, description=spec.description, parameters_json_schema=spec.schema
            )
            for spec in self._tools
        ]
        voice = types.PrebuiltVoiceConfig(voice_name=self._endpoint.voice)
        return types.LiveConnectConfig(
            response_modalities=[types.Modality.AUDIO],
            speech_config=types.SpeechConfig(voice_config=types.VoiceConfig(prebuilt_voice_config=voice)),
            system_instruction=self._instructions or None,
            tools=[types.Tool(function_declarations=declared)] if declared else None,
            output_audio_transcription=types.AudioTranscriptionConfig(),
            # Otherwise an audio session ends after 15 minutes, even if idle.
            context_window_compression=types.ContextWindowCompressionConfig(sliding_window=types.SlidingWindow()),
            history_config=None
            if self._speaks_at_once
            else types.HistoryConfig(initial_history_in_client_content=True),
        )


def _client(connection: Connection) -> genai.Client:
    url = connection.base_url
    client = genai.Client(api_key=connection.key, http_options=types.HttpOptions(base_url=url) if url else None)
    if url is not None and url.startswith("http://"):
        # The SDK turns every address into wss://, but a local proxy has no certificate.
        api: Any = client._api_client
        api._websocket_base_url = lambda _options=None: "ws" + url.removeprefix("http").rstrip("/")
        api._websocket_ssl_ctx = {}
    return client


def _content(message: Message) -> types.Content:
    return types.Content(
        role="model" if message.role == "assistant" else "user", parts=[types.Part(text=message.content)]
    )


def _given(message: Mapping[str, Any]) -> Iterator[Given]:
    # Words first, because they identify the sound.
    if words := value_at(message, "serverContent", "outputTranscription", "text", kind=str):
        yield SpokenWords(words)
    for part in value_at(message, "serverContent", "modelTurn", "parts", kind=list):
        if sound := pcm_of(value_at(part, "inlineData", "data", kind=str)):
            yield SpokenSound(sound)
    for call in value_at(message, "toolCall", "functionCalls", kind=list):
        arguments = arguments_of(value_at(call, kind=dict).get("args") or {})
        yield Call(value_at(call, "id", kind=str), value_at(call, "name", kind=str), arguments)
