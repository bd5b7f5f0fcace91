"""Measure whether NPCs say what they know, and nothing that they do not.

    python -m benchmarks.grounding DIR [--llm NAME] [--repeat N] [--limit N]

`DIR` contains `campaign.yaml`; `evening.jsonl`, what was said before; and `questions.jsonl`. Each question is asked in
a session of its own, through the whole path of a turn. benchmarks/README.md describes the files and the figures.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.asking import Answer, Rules, Tables, add_options, answered, llm_of, plain, report, settings_of, tables
from benchmarks.runner import command, percent, percentile, positive, read_rows, run, sample
from glyphoxa.actors.clock import now_ms
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import SessionId, SpeakerId, UtteranceId

KINDS: Final = ("fact", "talk", "secret", "absent", "invented", "smalltalk")
RULES: Final = Rules(Path(__file__).parent / "data" / "grounding" / "rules.yaml")
_CHARS_A_TOKEN: Final = 4
_DAY_MS: Final = 86_400_000
_LINE_MS: Final = 15_000
_SENTENCE: Final = re.compile(r"[^.!?;]+[.!?;]*")
_MINE: Final = re.compile(r"\b(?:my|mein\w*) (\w+)")
_NO_ROLE: Final = r"(?:^|[.!?] ){name} (?:\w+s|\w+t|is|ist|does|hat|has)\b"


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    world = read(options.directory)
    found: list[Judged] = []
    async with tables(settings_of(llm_of(options), directory / "data"), world.campaign, utterances(world)) as at:
        questions = sample(world.questions, options.limit, seed="grounding")
        for number, question in enumerate(questions * options.repeat):
            answer = await _ask(at, question, f"{number}")
            if not answer.text:  # a busy machine or a model's failure; an NPC without an answer is silent twice
                answer = await _ask(at, question, f"{number}-again")
            verdict = judged(question, answer.text, language=world.campaign.language)
            found.append(Judged(question, answer, verdict))
            asked = {"id": question.id, "kind": question.kind, "text": question.text}
            report(options.answers, asked, answer, {"knows": question.knows, **asdict(verdict)})
    return figures(found)


async def _ask(at: Tables, question: Question, number: str) -> Answer:
    async with at.sitting(question.scene, question.speaker, number) as table:
        return Answer(await answered(table, question.speaker, called(question), npc=question.npc))


def called(question: Question) -> str:
    """If others are present, call the NPC by its name."""
    npc = question.npc
    is_alone = len(question.scene.npcs) == 1
    names = (npc.name, *npc.aliases)
    is_named = any(name.casefold() in question.text.casefold() for name in names)
    return question.text if is_alone or is_named else f"{npc.name}, {question.text}"


# -- data


@dataclass(frozen=True, slots=True)
class Said:
    """A line of an earlier evening; the NPCs of its scene witness it.

    Attributes:
        to: The addressee, if any.
    """

    session: str
    scene: Scene
    speaker: Npc | Player
    text: str
    to: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """
    Attributes:
        knows: Whether the NPC can know the answer.
        any_of: A right answer contains one of these.
        none_of: A right answer contains none of these.
        kind: One of `KINDS`.
    """

    id: str
    scene: Scene
    npc: Npc
    speaker: Player
    text: str
    knows: bool
    any_of: tuple[str, ...]
    none_of: tuple[str, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The content of one directory."""

    campaign: Campaign
    evenings: tuple[Said, ...]
    questions: tuple[Question, ...]


def read(directory: Path) -> Asked:
    """
    Raises:
        GlyphoxaError: A file is missing, or a line of it is invalid.
    """
    campaign = read_campaign(directory / "campaign.yaml").campaign
    find = finder_of(campaign)

    def said(row: Mapping[str, Any]) -> Said:
        scene, speaker = find("scene", row["scene"]), find("speaker", row["speaker"])
        return Said(str(row["session"]), scene, speaker, row["text"], row.get("to") or "")

    def question(row: Mapping[str, Any]) -> Question:
        kind = row["kind"]
        if kind not in KINDS:
            raise InvalidInput(f"no kind {kind!r}: {did_you_mean(kind, KINDS)}")
        return Question(
            id=str(row["id"]),
            scene=find("scene", row["scene"]),
            npc=find("npc", row["npc"]),
            speaker=find("player", row["speaker"]),
            text=row["question"],
            knows=bool(row["knows"]),
            any_of=tuple(row.get("any_of") or ()),
            none_of=tuple(row.get("none_of") or ()),
            kind=kind,
        )

    evenings = tuple(read_rows(directory / "evening.jsonl", said))
    return Asked(campaign, evenings, tuple(read_rows(directory / "questions.jsonl", question)))


def finder_of(campaign: Campaign) -> Callable[[str, str], Any]:
    """Return a function that finds an npc, player, speaker or scene of the campaign by its id or name."""
    npcs = {key: npc for npc in campaign.npcs for key in (npc.id, npc.name)}
    players = {key: player for player in campaign.players for key in (player.id, player.name)}
    known: dict[str, dict[str, Any]] = {
        "npc": dict(npcs),
        "player": dict(players),
        "speaker": {**npcs, **players},
        "scene": {scene.id: scene for scene in campaign.scenes},
    }
    return lambda what, name: _found(what, name, known[what])


def _found(what: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise InvalidInput(f"no {what} {name!r} in the campaign: {did_you_mean(name, known)}")
    return known[name]


def utterances(asked: Asked) -> list[Utterance]:
    """Two evenings are a day apart; the last one was yesterday."""
    sessions = list(dict.fromkeys(said.session for said in asked.evenings))
    began_ms = {session: now_ms() - (len(sessions) - n) * _DAY_MS for n, session in enumerate(sessions)}
    return [_utterance(asked, n, said, began_ms[said.session] + n * _LINE_MS) for n, said in enumerate(asked.evenings)]


def _utterance(asked: Asked, number: int, said: Said, at_ms: int) -> Utterance:
    npc = said.speaker if isinstance(said.speaker, Npc) else None
    return Utterance(
        id=UtteranceId(f"evening-{number:05d}"),
        campaign_id=asked.campaign.id,
        session_id=SessionId(said.session),
        speaker_id=SpeakerId(said.speaker.id),
        speaker_name=said.speaker.name,
        text=said.text,
        raw_text=said.text,
        at_ms=at_ms,
        duration_ms=2_500,
        npc_id=None if npc is None else npc.id,
        witnesses=frozenset(said.scene.npcs),
    )


# -- judgement


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Attributes:
        is_right: It contains a part of a right answer.
        knows_not: It says that the NPC does not know.
        is_false: It contains a memory or a fact that does not exist: one of the forbidden words, or a claim to have
            seen, heard or been told what the NPC was not.
        leaks: It reveals somebody's secret.
        breaks: It breaks character.
        asserts: Asked for what it does not know, it neither says so nor evades.
        mixes: It takes for its own what is the asker's: "My horse" to "What is my horse called?".
    """

    is_right: bool = False
    knows_not: bool = False
    is_false: bool = False
    leaks: bool = False
    breaks: bool = False
    asserts: bool = False
    mixes: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    question: Question
    answer: Answer
    verdict: Verdict

    @property
    def is_shown(self) -> bool:
        """Return whether the prompt contains a part of a right answer, apart from the question."""
        prompt = self.answer.prompt.casefold().replace(self.question.text.casefold(), "")
        return any(word.casefold() in prompt for word in self.question.any_of)


def judged(question: Question, answer: str, *, language: str) -> Verdict:
    said = plain(answer)
    knows_not = RULES.finds("knows_not", said)
    has_wrong = has_any(said, question.none_of)
    is_right = question.knows and has_any(said, question.any_of) and not has_wrong
    is_unknown = not question.knows
    guards = question.kind in ("secret", "smalltalk") or RULES.finds("guards", said)
    return Verdict(
        is_right=is_right,
        knows_not=knows_not and not is_right,
        is_false=is_unknown and (has_wrong or (question.kind != "smalltalk" and claims(said))),
        leaks=question.kind == "secret" and has_wrong,
        breaks=_breaks(question, answer, language),
        asserts=is_unknown and not knows_not and not guards,
        mixes=not {*_MINE.findall(said)}.isdisjoint(_MINE.findall(plain(question.text))),
    )


def claims(answer: str) -> bool:
    """Return whether a sentence claims, and does not deny, to have seen, heard or been told something."""
    sentences = _SENTENCE.findall(plain(answer))
    return any(RULES.finds("claims", each) and not RULES.finds("negates", each) for each in sentences)


def has_any(said: str, words: Iterable[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(plain(word))}", said, re.IGNORECASE) for word in words)


def _breaks(question: Question, answer: str, language: str) -> bool:
    if not answer.strip() or RULES.finds("breaks", answer):
        return True
    of_itself = _NO_ROLE.replace("{name}", re.escape(question.npc.name))
    return re.search(of_itself, answer) is not None or RULES.is_foreign(answer, language)


# -- figures


def figures(found: Sequence[Judged]) -> dict[str, Any]:
    knows = [each for each in found if each.question.knows]
    smalltalk = [each for each in found if each.question.kind == "smalltalk"]
    others = [each for each in found if not each.question.knows]
    asking = [each for each in others if each.question.kind != "smalltalk"]
    shown = [each for each in knows if each.is_shown]
    first = [each.answer.first_word_ms for each in found if each.answer.first_word_ms is not None]
    wrong = Counter(each.question.kind for each in found if each.verdict.is_false)
    return {
        "questions": len(found),
        "right": _percent(knows, "is_right"),
        "false_memory": _percent(others, "is_false"),
        "refused": _percent(knows, "knows_not"),
        "secret_leaks": sum(each.verdict.leaks for each in found),
        "persona_breaks": sum(each.verdict.breaks for each in found),
        "first_word_p50_ms": percentile(first, 50, digits=0),
        "tokens_mean": round(sum(len(each.answer.prompt) for each in found) / max(1, len(found)) / _CHARS_A_TOKEN),
        "evidence_in_prompt": percent(len(shown), len(knows)),
        "right_with_evidence": _percent(shown, "is_right"),
        "refused_with_evidence": _percent(shown, "knows_not"),
        "asserted": _percent(asking, "asserts"),
        "mixed_up": sum(each.verdict.mixes for each in found),
        "smalltalk": len(smalltalk),
        "smalltalk_refused": _percent(smalltalk, "knows_not"),
        "knows": len(knows),
        "knows_not": len(others),
        "false_by_kind": {kind: wrong[kind] for kind in KINDS if wrong[kind]},
    }


def _percent(of: Sequence[Judged], what: str) -> float | None:
    return percent(sum(getattr(each.verdict, what) for each in of), len(of))


def _options() -> argparse.ArgumentParser:
    parser = command("grounding", __doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--repeat", type=positive, default=1, metavar="N", help="ask each question this many times")
    add_options(parser, asked="questions")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
