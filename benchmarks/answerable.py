"""Fit and measure the model that decides whether an NPC of a small model may answer a question.

    python -m benchmarks.answerable DIR ... [--out FILE]

Each `DIR` holds a world as `benchmarks.grounding` or `benchmarks.persona` has it. The questions are asked in their
scene as at a table, but no language model is asked: the prompt's contents become the signs of
`glyphoxa.judgement.small_model.PromptRepair.signs`. An NPC may answer what it knows, and what asks for nothing that it
must have been told: small talk, the lines of a persona set except about others and secrets, and requests, orders,
trade, greetings and opinions. `lines.tsv` has more lines, `free` or `unknown`, dealt out to the worlds of their
language. A logistic regression with a penalty on the squares of its weights is fitted. The figures are of
cross-validation: each world is judged by weights fitted to the others. `--out` writes the weights. The result is the
same each time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

from benchmarks.asking import Tables, open_tone_mouth, settings_of, tables
from benchmarks.grounding import Asked, Question, called, read, utterances
from benchmarks.labelled import DATA, Example, cross_validated, fitted, read_columns, write_weights
from benchmarks.runner import command, percent, run, tell
from glyphoxa.app.engines import MouthSpec
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.provider_sections import LlmSettings
from glyphoxa.judgement.small_model import NotKnown, PromptRepair
from glyphoxa.npc.mouth import Mouth
from glyphoxa.prompt import gather

PENALTY: Final = 1.0
"""Chosen by cross-validation from 0.3 to 3."""
LINES: Final = DATA / "grounding" / "lines.tsv"
_KINDS: Final = {"free": "smalltalk", "unknown": "invented"}
"""The kind of question by the label of a line."""
THRESHOLDS: Final = (-1.5, -1.0, -0.65, -0.5, -0.25, 0.0)
_FREE: Final = ("greeting", "self", "trade", "price", "place", "smalltalk")
"""Kinds of lines of a persona set that an NPC may answer as it likes."""
_NOBODY: Final = LlmSettings(name="openai-compatible", model="small-1b", base_url="http://127.0.0.1:9/v1")
"""A small model that is not there, so that its NPCs are prepared, and say nothing."""
_PATIENCE_MS: Final = 10_000


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    vars(gather)["PromptRepair"] = _Recorded
    worlds = [_world(each) for each in options.directory]
    lines = [_dealt(worlds, number) for number in range(len(worlds))]
    found: list[tuple[int, Question, Example]] = []
    for number, world in enumerate(worlds):
        tell(f"reading {options.directory[number]}")
        questions = sorted([*world.questions, *lines[number]], key=_seat)
        async with tables(settings_of(_NOBODY, directory / f"{number}"), world.campaign, utterances(world)) as at:
            for seat, (_, together) in enumerate(groupby(questions, key=_seat)):
                for question, signs in await _signs(at, list(together), f"{seat}"):
                    found.append((number, question, Example(signs, _may_answer(question))))
    _, _, examples = zip(*found, strict=True)
    fit = partial(fitted, penalty=PENALTY)
    if options.out is not None:
        write_weights(options.out, fit(examples))
    every = {sign for example in examples for sign in example.signs}
    groups = sorted({sign.split(":")[0] for sign in every if ": " in sign})
    without = {name: _judged(found, partial(_is_no, name)) for name in groups}
    judged = _judged(found, lambda _: True)
    return {
        "questions": len(found),
        "worlds": len(worlds),
        **{f"below {least}": _called_unknown(judged, least) for least in THRESHOLDS},
        "auroc": _auroc(judged),
        **{f"auroc without {name}": _auroc(of) for name, of in without.items()},
        "auroc without words": _auroc(_judged(found, lambda sign: ": " in sign)),
    }


def _is_no(group: str, sign: str) -> bool:
    return not sign.startswith(f"{group}: ")


class _Recorded(PromptRepair):
    """Keeps the signs of the last question, and declares nothing unknown."""

    signs_seen: ClassVar[list[frozenset[str]]] = []

    def not_known(self) -> NotKnown:
        self.signs_seen.append(self.signs)
        return NotKnown()


def _dealt(worlds: Sequence[Asked], number: int) -> Iterator[Question]:
    """Yield every n-th line of the language, where n is the number of worlds in it, said to each NPC in turn."""
    world = worlds[number]
    alike = [n for n, one in enumerate(worlds) if one.campaign.language == world.campaign.language]
    lines = read_columns(LINES, _labelled, valid=f"a language, {' or '.join(_KINDS)}, a line")
    own = [columns for columns in lines if columns[0] == world.campaign.language]
    npcs = list({question.npc.id: question for question in world.questions}.values())
    for n, (_, label, text) in enumerate(own[alike.index(number) :: len(alike)]):
        one = npcs[n % len(npcs)]
        yield replace(one, id=f"line-{n}", text=text, knows=False, any_of=(), none_of=(), kind=_KINDS[label])


def _labelled(columns: list[str]) -> list[str] | None:
    return columns if len(columns) == len(("language", "label", "line")) and columns[1] in _KINDS else None


_Found: TypeAlias = Sequence[tuple[int, Question, Example]]
_Odds: TypeAlias = Sequence[tuple[Question, float]]


def _judged(found: _Found, is_read: Callable[[str], bool]) -> _Odds:
    """Return the log odds of each question by weights that were fitted to other worlds, and to these signs."""
    worlds, questions, examples = zip(*found, strict=True)
    read = [Example(frozenset(filter(is_read, one.signs)), one.is_wanted) for one in examples]
    odds = cross_validated(read, worlds, partial(fitted, penalty=PENALTY))
    return list(zip(questions, odds, strict=True))


def _called_unknown(judged: _Odds, least: float) -> dict[str, float | None]:
    of = {
        "unknown_percent": [score for one, score in judged if not _may_answer(one)],
        "known_percent": [score for one, score in judged if one.knows],
        "smalltalk_percent": [score for one, score in judged if one.kind == "smalltalk"],
    }
    return {name: percent(sum(score < least for score in scores), len(scores)) for name, scores in of.items()}


def _auroc(judged: _Odds) -> float | None:
    wanted, others = ([score for one, score in judged if _may_answer(one) is side] for side in (True, False))
    pairs = [(one > other) + (one == other) / 2 for one in wanted for other in others]
    return round(sum(pairs) / len(pairs), 3) if pairs else None


def _may_answer(question: Question) -> bool:
    return question.knows or question.kind == "smalltalk"


def _seat(question: Question) -> tuple[str, str]:
    return question.scene.id, question.speaker.name


async def _signs(at: Tables, questions: Sequence[Question], number: str) -> list[tuple[Question, frozenset[str]]]:
    """Return the signs of each question, without those that touch a secret: these are not judged."""
    specs: list[MouthSpec] = []

    async def open_mouth(spec: MouthSpec) -> Mouth:
        specs.append(spec)
        return await open_tone_mouth(spec)

    one, found = questions[0], []
    async with at.sitting(one.scene, one.speaker, number, mouth=open_mouth):
        for each in questions:
            _Recorded.signs_seen.clear()
            npc, line = each.npc.id, called(each)
            await specs[0].context.gather(npc, line, asker=each.speaker.name, within_ms=_PATIENCE_MS)
            found += [(each, signs) for signs in _Recorded.signs_seen[-1:]]
    return found


def _world(directory: Path) -> Asked:
    if (directory / "questions.jsonl").exists():
        return read(directory)
    campaign = read_campaign(directory / "campaign.yaml").campaign
    return Asked(campaign, (), tuple(_lines(directory, Asked(campaign, (), ()))))


def _lines(directory: Path, world: Asked) -> Iterator[Question]:
    npcs = {npc.name: npc for npc in world.campaign.npcs}
    for half in ("tune", "test"):
        for line in (directory / f"{half}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            npc = npcs[row["npc"]]
            if row["kind"] in _FREE:
                scene = next(scene for scene in world.campaign.scenes if npc.id in scene.npcs)
                alone = replace(scene, npcs=(npc.id,))
                yield Question(
                    row["id"], alone, npc, world.campaign.players[0], row["line"], False, (), (), "smalltalk"
                )


def _options() -> argparse.ArgumentParser:
    parser = command("answerable", __doc__)
    parser.add_argument("directory", type=Path, metavar="DIR", nargs="+")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the weights to this file")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
