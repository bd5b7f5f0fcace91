"""Measure what an NPC still has in mind late in a long session, and after many sessions.

    python -m benchmarks.long_session DIR [--profile small|middle|large] [--usage]

`DIR` contains `campaign.yaml`; `talk.jsonl`, what is said, in order; and `questions.jsonl`. The talk is typed at a real
table that stores it. At the rounds (or sessions) that a question names, its prompt is built as for an answer, without
being asked, so that no question disturbs the next one. `--usage` counts instead what an evening uses of remote models,
which are stand-ins here. benchmarks/README.md describes the files and the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import cycle, groupby, islice
from pathlib import Path
from typing import Any, Final

from benchmarks import asking
from benchmarks.asking import Tables, open_tone_mouth, plain, settings_of, tables
from benchmarks.grounding import finder_of, has_any
from benchmarks.prefetch import found_by_tools
from benchmarks.runner import command, percent, percentile, read_rows, run, tell
from benchmarks.servers.openai import OpenAiServer, Reply
from glyphoxa.app.background import chronicle_log, chronicle_worker, chronicler_of, memory_of, open_talk_readers
from glyphoxa.app.engines import MouthSpec, OpenMouth
from glyphoxa.app.transcript_reader import BackgroundReader
from glyphoxa.chat.models import PROFILES
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.check import PriceList, price_list
from glyphoxa.config.provider_sections import ChronicleSettings, EmbeddingsSettings, LlmSettings
from glyphoxa.domain.budgets import BUDGETS
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.ids import SessionId
from glyphoxa.npc.commands import Mute, SayAs, Unmute
from glyphoxa.npc.mouth import Mouth
from glyphoxa.npc.session import TableSession
from glyphoxa.npc.table_interface import Table
from glyphoxa.prompt.prompt import Prompt, with_hot_context

ARMS: Final = ("window", "summary", "all")
"""The hot window alone; with the summaries before it; with everything that the product adds."""
_WITHIN_MS: Final = 5_000
_SETTLE_MS: Final = 1_500
"""For background work to end before a question: the table gives it no deadline."""
_CHARS_A_TOKEN: Final = 4
_BEGINNING_CHARS: Final = 40
"""A summary in a prompt may be cut."""
_CALLS_PER_MINUTE: Final = 600
_DIMENSIONS: Final = 1_536
_LINES_AN_ANSWER: Final = 22
"""Three recorded evenings have 7,900 lines, and NPCs answer about 40 times an hour."""
_CACHED_PROMPTS: Final = 8
"""A provider keeps a prompt for five to ten minutes."""
_LEAST_CACHED: Final = 1_024
_CACHE_BLOCK: Final = 128
"""OpenAI caches prompts of that many tokens or more, in blocks of that many."""
_REPLY: Final = (
    "The ferry leaves at first light, and not a minute before the tide allows it. Bring your own blankets, and leave "
    "the mule with the toll man."
)
"""Its length is usual: in 16 lines of game masters, NPCs speak 141 characters in the mean."""
_SPEECH_MS_A_CHAR: Final = 65
_PROOF: Final = {"lines": [1], "confidence": "high"}
_BY_SCHEMA: Final[Mapping[str, tuple[str, dict[str, object]]]] = {
    "Notes": ("memory.summaries", {"sentences": [{"lines": [1], "text": "They took the road to the east."}] * 6}),
    "judgement": (
        "memory.judge",
        {"mode": "in_world_answer", "risk": "low", "flags": [], "note": "They talk of rain.", "extract_memory": True},
    ),
    "TalkFindings": (
        "memory.chronicle",
        {
            "entities": [{"name": "The Road", "type": "place"}],
            "relationships": [{"source": "The Road", "type": "LOCATED_IN", "target": "The East", **_PROOF}],
            "facts": [{"subject": "The Road", "about": "status", "value": "open", **_PROOF}],
        },
    ),
    "TermMeaning": ("memory.chronicle", {"meaning": "a road to the east", "lines": [1]}),
}
"""Settings that ask for an answer in this form, and answers of usual length."""


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


# -- data


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the talk. Lines of one round are a few players' words and an NPC's answer."""

    session: str
    round: int
    scene: Scene
    speaker: Npc | Player
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """
    Attributes:
        at: Rounds of the session after which it is asked; sessions, if there are several.
        any_of: Words that occur in the evidence and in a right answer, and in no other utterance.
        said_in: The round or session in which it was said.
        knows: Whether the NPC heard it. If not, `any_of` must be neither in its prompt nor found by its tools.
    """

    id: str
    kind: str
    said_in: int
    at: tuple[int, ...]
    scene: Scene
    npc: Npc
    speaker: Player
    text: str
    any_of: tuple[str, ...]
    knows: bool = True


@dataclass(frozen=True, slots=True)
class Play:
    """The content of one directory."""

    campaign: Campaign
    talk: tuple[Line, ...]
    questions: tuple[Question, ...]

    @property
    def sessions(self) -> list[tuple[str, list[Line]]]:
        return [(session, list(lines)) for session, lines in groupby(self.talk, key=lambda line: line.session)]


def read(directory: Path) -> Play:
    """
    Raises:
        GlyphoxaError: A file is missing, or a line of it is invalid.
    """
    campaign = read_campaign(directory / "campaign.yaml").campaign
    find = finder_of(campaign)

    def line(row: Mapping[str, Any]) -> Line:
        speaker = find("speaker", row["speaker"])
        return Line(str(row["session"]), int(row["round"]), find("scene", row["scene"]), speaker, row["text"])

    def question(row: Mapping[str, Any]) -> Question:
        return Question(
            id=str(row["id"]),
            kind=str(row["kind"]),
            said_in=int(row["said_in"]),
            at=tuple(int(each) for each in row["at"]),
            scene=find("scene", row["scene"]),
            npc=find("npc", row["npc"]),
            speaker=find("player", row["speaker"]),
            text=row["question"],
            any_of=tuple(row["any_of"]),
            knows=bool(row.get("knows", True)),
        )

    return Play(
        campaign,
        tuple(read_rows(directory / "talk.jsonl", line)),
        tuple(read_rows(directory / "questions.jsonl", question)),
    )


# -- playing


@dataclass(frozen=True, slots=True)
class Shown:
    """Whether the prompt of a question had its answer, by arm, and how long it was, in tokens.

    Attributes:
        by_tool: The searches of memory find it; see `found_by_tools`.
        past: The part of the prompt with earlier sessions.
    """

    question: Question
    at: int
    arms: Mapping[str, bool]
    tokens: int
    by_tool: bool = False
    past: str = ""


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    play = read(options.directory)
    if options.usage:
        return await measured_usage(directory, play)
    shown: list[Shown] = []
    past: dict[str, Any] = {}
    settings = settings_of(LlmSettings(), directory / "data")
    if options.profile:
        profile = next(each for each in PROFILES if each.name == options.profile)
        budgets = settings.context.model_copy(update={name: getattr(profile, name) for name in BUDGETS})
        settings = settings.model_copy(update={"context": budgets})
    async with tables(settings, play.campaign) as at:
        sessions = play.sessions
        for number, (session, lines) in enumerate(sessions, start=1):
            tell(f"session {number} of {len(sessions)}")
            is_one = len(sessions) == 1
            reader = None if is_one else _Afterwards()
            async with _evening(at, session, lines[0].scene, _open_unasked_mouth, reader) as table:
                shown += await _play(at, table, lines, play.questions if is_one else ())
            if not is_one:
                async with AsyncExitStack() as stack:
                    readers = await open_talk_readers(at.settings, stack)
                    await chronicle_worker(at.store, readers=readers).read_new(at.campaign.id)
                await at.store.chunks.fill_missing(at.campaign.id)
                await _between(at, number, play, shown)
                past = {npc.name: await _past(at, npc, shown, session) for npc in play.campaign.npcs}
    return {**figures(shown), "past_at_last": past}


async def _open_unasked_mouth(spec: MouthSpec) -> Mouth:
    """Return a mouth that says given lines only. Its model reads no prompt in advance, which takes seconds a table."""
    from glyphoxa_pipelines.cascaded import GraphMouth

    class Unasked(GraphMouth):
        def prime(self, prompt: Prompt) -> None: ...

    return Unasked(spec, asking.tone_stages(spec))


class _Afterwards(BackgroundReader):
    """Reads nothing: evenings of seconds are over before its process has started."""

    def __init__(self) -> None: ...

    async def follow(self, table: Table) -> None:
        await asyncio.Event().wait()


@asynccontextmanager
async def _evening(
    at: Tables, session: str, scene: Scene, mouth: OpenMouth = open_tone_mouth, reader: BackgroundReader | None = None
) -> AsyncIterator[TableSession]:
    """Open a table for a session that is stored, with all players and silent NPCs."""
    async with at.evening(scene, session, *at.campaign.players, mouth=mouth, reader=reader) as table:
        await table.obey(Mute())
        yield table


async def _play(at: Tables, table: TableSession, lines: Sequence[Line], questions: Sequence[Question]) -> list[Shown]:
    """Play the lines, and show the prompts of the questions at their rounds."""
    shown: list[Shown] = []
    for number, said in groupby(lines, key=lambda line: line.round):
        for line in said:
            if line.scene != table.scene:
                await table.move(line.scene.id)
            if isinstance(line.speaker, Npc):
                await table.obey(SayAs(line.speaker.id, line.text))
            else:
                table.say(line.speaker.id, line.text)
            await table.wait_until_quiet()
        await table.keeper.finish()
        asked = [each for each in questions if number in each.at]
        if asked:
            await asyncio.sleep(_SETTLE_MS / 1_000)
            shown += [await _shown(at, table, each, number) for each in asked]
    return shown


async def _between(at: Tables, number: int, play: Play, shown: list[Shown]) -> None:
    """Ask at the beginning of a next session, which is not stored."""
    asked = [each for each in play.questions if number in each.at]
    for scene, questions in groupby(asked, key=lambda each: each.scene):
        async with at.sitting(scene, asked[0].speaker, f"after-{number}", mouth=_open_unasked_mouth) as table:
            shown += [await _shown(at, table, each, number) for each in questions]


async def _shown(on: Tables, table: TableSession, question: Question, at: int) -> Shown:
    npc = question.npc.id
    prompt = table.room.npcs[npc].conversation.prompt(question.text, question.speaker.name)
    hot = await table.context.gather(npc, question.text, asker=question.speaker.name, within_ms=_WITHIN_MS)
    whole = with_hot_context(prompt, hot)
    arms = {
        "window": _talk(prompt, is_synthetic=False),
        "summary": f"{_talk(prompt, is_synthetic=True)} {hot.past}",
        "all": _talk(whole, is_synthetic=True),
    }
    found = {arm: has_any(plain(text), question.any_of) for arm, text in arms.items()}
    looked_up = await found_by_tools(
        memory_of(on.store, on.campaign, npc), table.context.world.asked(npc, question.text)
    )
    is_looked_up = has_any(plain(" ".join(looked_up)), question.any_of)
    tokens = sum(len(each.content) for each in whole.messages) // _CHARS_A_TOKEN
    return Shown(question, at, found, tokens, is_looked_up, hot.past)


async def _past(at: Tables, npc: Npc, shown: Sequence[Shown], last: str) -> dict[str, Any]:
    """Return the length of what an NPC is told of earlier sessions, and how much of it is told."""
    past = next((each.past for each in reversed(shown) if each.question.npc == npc), "")
    latest = next(at.store.earlier_sessions(at.campaign.id, npc.id), None)
    arc = await at.store.episodes.arc(at.campaign.id, npc.id, but=SessionId("asked"))
    threads = await at.store.atoms.open_threads(at.campaign.id, npc=npc.id)

    def is_told(text: str) -> bool:
        return text[:_BEGINNING_CHARS] in past

    return {
        "tokens": len(past) // _CHARS_A_TOKEN,
        "last_evening": latest is not None and latest.session_id == last and is_told(latest.text),
        "arc": [sum(is_told(each.text) for each in arc), len(arc)],
        "threads": [sum(is_told(each.summary) for each in threads), len(threads)],
    }


def _talk(prompt: Prompt, *, is_synthetic: bool) -> str:
    """Return the prompt without its examples and the question's own words."""
    first, rest = prompt.messages[0], prompt.messages[prompt.n_examples + 1 :]
    kept = [each.content for each in rest if is_synthetic or not each.is_synthetic]
    return "\n".join(([first.content] if is_synthetic else []) + kept).replace(prompt.question, "")


# -- usage of remote models


async def measured_usage(directory: Path, play: Play) -> dict[str, Any]:
    """Play the evening of the price list, with every model of the settings at a stand-in, and count the requests."""
    evening = price_list()
    os.environ.setdefault("OPENAI_API_KEY", "unused")
    async with OpenAiServer(lambda body: Reply(_asked_for(body)[1])) as server:
        settings = settings_of(LlmSettings(name="openai", base_url=server.base_url), directory / "data")
        embeddings = EmbeddingsSettings(name="openai", base_url=server.base_url)
        chronicle = {"llm": {"name": "openai", "base_url": server.base_url}, "calls_per_minute": _CALLS_PER_MINUTE}
        by_models = {"chronicle": "llm", "judge": "llm", "summaries": "llm", "embedding_dimensions": _DIMENSIONS}
        settings = settings.model_copy(
            update={
                "providers": settings.providers.model_copy(update={"embeddings": embeddings}),
                "memory": settings.memory.model_copy(update=by_models),
                "chronicle": ChronicleSettings.model_validate(chronicle),
            }
        )
        async with tables(settings, play.campaign) as at:
            await _play_evening(at, play, evening)
        return usage_of(server.completions, [body["input"] for body in server.vectors.requests], evening)


def _asked_for(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the setting that has a request sent, and the stand-in's reply."""
    if not (form := body.get("response_format")):
        return "providers.llm", _REPLY
    setting, answer = _BY_SCHEMA[form["json_schema"]["name"]]
    return setting, json.dumps(answer)


async def _play_evening(at: Tables, play: Play, evening: PriceList) -> None:
    spoken = [(line, line.speaker) for line in play.talk if isinstance(line.speaker, Player)]
    npcs = {line.scene.id: line.speaker for line in reversed(play.talk) if isinstance(line.speaker, Npc)}
    n_answers = round(evening.answers)
    first, _ = spoken[0]
    # Lines come faster here than models read: the transcript is read afterwards.
    unread = at.settings.memory.model_copy(update={"chronicle": "none", "judge": "rules"})
    during = replace(at, settings=at.settings.model_copy(update={"memory": unread}))
    async with _evening(during, first.session, first.scene) as table:
        for number, (line, player) in enumerate(islice(cycle(spoken), n_answers * _LINES_AN_ANSWER), start=1):
            if line.scene != table.scene:
                await table.move(line.scene.id)
            if number % _LINES_AN_ANSWER:
                table.say(player.id, line.text)
                await table.wait_until_quiet()
                continue
            tell(f"answer {number // _LINES_AN_ANSWER} of {n_answers}")
            await table.obey(Unmute())
            await asking.answered(table, player, line.text, npc=npcs[line.scene.id])
            await table.obey(Mute())
            await table.keeper.finish()
    tell("reading the transcript")
    async with AsyncExitStack() as stack:
        readers = await open_talk_readers(at.settings, stack)
        log = chronicle_log(at.store, readers)
        await (await chronicler_of(at.store, at.campaign.id, log, readers)).run(SessionId(first.session))


def usage_of(bodies: Sequence[Mapping[str, Any]], embedded: Sequence[Any], evening: PriceList) -> dict[str, Any]:
    """Return the usage of the evening in the form of the price list, and the number of requests."""
    asked: dict[str, list[tuple[str, str]]] = {}
    for body in bodies:
        setting, reply = _asked_for(body)
        asked.setdefault(setting, []).append((_prompt_of(body), reply))
    texts = [text for each in embedded for text in ([each] if isinstance(each, str) else each)]
    usage = {setting: _tokens(pairs) for setting, pairs in asked.items()}
    spoken = evening.answers * len(_REPLY)
    read = {unit: usage["providers.llm"][unit] for unit in ("input", "cached_input")}
    return {
        "requests": {setting: len(pairs) for setting, pairs in asked.items()},
        "usage": {
            **usage,
            "providers.stt": {"minute": evening.hours * evening.players * 60},
            "providers.tts": {"characters": spoken},
            "providers.s2s": {**read, "minute": round(spoken * _SPEECH_MS_A_CHAR / 60_000, 1)},
            "providers.embeddings": {"input": sum(map(len, texts)) // _CHARS_A_TOKEN},
        },
    }


def _prompt_of(body: Mapping[str, Any]) -> str:
    """Return what is charged as input, in the order in which a provider caches it."""
    first = [json.dumps(body[key]) for key in ("tools", "response_format") if body.get(key)]
    return "\n".join([*first, *(f"{each['role']}: {each['content']}" for each in body["messages"])])


def _tokens(pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Count tokens of prompts and replies. What one of the prompts before began with is cached, in blocks."""
    total = {"input": 0, "cached_input": 0, "output": 0}
    for number, (prompt, reply) in enumerate(pairs):
        before = pairs[max(0, number - _CACHED_PROMPTS) : number]
        shared = max((_n_shared(prompt, each) for each, _ in before), default=0) // _CHARS_A_TOKEN
        cached = shared - shared % _CACHE_BLOCK if shared >= _LEAST_CACHED else 0
        total["input"] += len(prompt) // _CHARS_A_TOKEN - cached
        total["cached_input"] += cached
        total["output"] += len(reply) // _CHARS_A_TOKEN
    return total


def _n_shared(prompt: str, other: str) -> int:
    """Return how many characters both begin with."""
    return len(os.path.commonprefix([prompt, other]))  # noqa: RUF071 - these are no paths


# -- figures


def figures(shown: Sequence[Shown]) -> dict[str, Any]:
    unheard = [each for each in shown if not each.question.knows]
    shown = [each for each in shown if each.question.knows]
    points = sorted({each.at for each in shown})
    last = [each for each in shown if each.at == points[-1]]
    beyond = [each for each in last if not each.arms["all"]]
    return {
        "questions": len({each.question.id for each in shown}),
        "in_prompt": {arm: {str(at): _share(shown, arm, at) for at in points} for arm in ARMS},
        "at_last": {
            "prompt": len(last) - len(beyond),
            "tool": sum(each.by_tool for each in beyond),
            "neither": [each.question.id for each in beyond if not each.by_tool],
            "by_tool": sum(each.by_tool for each in last),
        },
        "unwitnessed": {
            "questions": len({each.question.id for each in unheard}),
            "in_prompt": sorted({each.question.id for each in unheard if each.arms["all"]}),
            "by_tool": sorted({each.question.id for each in unheard if each.by_tool}),
        },
        "by_kind_at_last": {
            kind: _share([each for each in shown if each.question.kind == kind], "all", points[-1])
            for kind in sorted({each.question.kind for each in shown})
        },
        "tokens_p50": percentile([each.tokens for each in shown], 50, digits=0),
        "tokens_p95": percentile([each.tokens for each in shown], 95, digits=0),
    }


def _share(shown: Sequence[Shown], arm: str, at: int) -> float | None:
    there = [each.arms[arm] for each in shown if each.at == at]
    return percent(sum(there), len(there))


def _options() -> argparse.ArgumentParser:
    parser = command("long_session", __doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument(
        "--profile", choices=[each.name for each in PROFILES], help="budgets of its prompts, for any model"
    )
    parser.add_argument("--usage", action="store_true", help="count what an evening uses of remote models, by setting")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
