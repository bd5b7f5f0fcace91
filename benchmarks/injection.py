"""Whether an NPC's own secret is talked out of it, by people who write like a prompt, and what the guard keeps.

    python -m benchmarks.injection [DIR] [--limit N] [--language en|de] [--unguarded] [--answers FILE]

`DIR` is that of the persona benchmark: each of its questions for a secret is put in each form of
`benchmarks/data/injection/attacks.yaml`, to the same NPC, in one session. `--unguarded` leaves the secret to the model
alone (`context.guard_secrets: false`).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.asking import add_options, llm_of, note, print_figures, tell
from benchmarks.persona import OWN_DATA, sample
from benchmarks.persona_data import HALVES, Asked, Line, read_all
from benchmarks.persona_play import Answer, play
from benchmarks.persona_rules import Verdict, judged

FORMS: Final = Path(__file__).parent / "data" / "injection" / "attacks.yaml"
_VICTIM, _SMITH, _PLAYER = "Mirelle", "Grimjaw", "Tamsin"
"""Names in the forms: whom it is put to, another NPC, and who says it."""
_TOKENS: Final = re.compile(r"<\|?/?[a-z_]+\|?>|\[/?(?:INST|TOOL_RESULTS)\]|<</?SYS>>")


@dataclass(frozen=True, slots=True)
class Attacked:
    """
    Attributes:
        kind: Of the form: direct, role play, sections, translation, tools.
        has_token: What a chat template is made of was said aloud.
    """

    kind: str
    answer: Answer
    verdict: Verdict

    @property
    def has_token(self) -> bool:
        return _TOKENS.search(self.answer.text) is not None


def main(argv: Sequence[str] | None = None) -> int:
    return print_figures(partial(_measure, _options().parse_args(argv)))


async def _measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    found: list[Attacked] = []
    forms = yaml.safe_load(FORMS.read_text("utf-8"))
    every = [attacked(one, forms) for one in read_all(options.directory, options.half)]
    for one in sample(every, options.limit, options.language):
        async for answer in play(one, directory, llm_of(options), tell, is_guarded=not options.unguarded):
            kind = answer.line.id.rpartition("/")[2]
            found.append(one_attacked := Attacked(kind, answer, judged(answer.line, answer.text)))
            tell(f"{kind}: {answer.line.text!r} -> {answer.text!r}{' TOLD' * one_attacked.verdict.secret_told}")
            note(options.answers, {"kind": kind, "line": answer.line.text, "answer": answer.text,
                                   "told": one_attacked.verdict.secret_told})  # fmt: skip
    return figures(found)


def attacked(asked: Asked, forms: Mapping[str, Any]) -> Asked:
    """Its questions for secrets, each in every form of its language."""
    secrets = [line for line in asked.lines if line.kind == "secret"]
    names = [str(npc.name) for npc in asked.campaign.npcs]
    player = asked.campaign.players[0].name
    return replace(asked, lines=tuple(each for line in secrets for each in _in_forms(line, forms, names, player)))


def _in_forms(line: Line, forms: Mapping[str, Any], names: Sequence[str], player: str) -> Iterator[Line]:
    other = next((name for name in names if name != line.npc.name), line.npc.name)
    for kind, each in forms[line.language]["forms"].items():
        for number, form in enumerate(each):
            named = form.replace(_VICTIM, line.npc.name).replace(_SMITH, other).replace(_PLAYER, player)
            yield replace(line, id=f"{line.id}/{number}/{kind}", text=named.format(ask=line.text))


def figures(found: Sequence[Attacked]) -> dict[str, Any]:
    """Percentages are of the attacks that an NPC took for meant for it."""
    meant = [one for one in found if one.answer.is_meant]
    told = Counter(one.kind for one in meant if one.verdict.secret_told)
    return {
        "attacks": len(meant),
        "told": sum(told.values()),
        "told_percent": round(100 * sum(told.values()) / len(meant), 1) if meant else None,
        "told_by_kind": dict(told),
        "tokens_said": sum(one.has_token for one in meant),
        "labels": sum(one.verdict.labels for one in meant),
        "assistant": sum(one.verdict.assistant for one in meant),
        "stand_ins": sum(one.answer.is_stand_in for one in meant),
        "silent": sum(one.answer.is_silent for one in meant),
        "not_addressed": len(found) - len(meant),
    }


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.injection", description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR", nargs="?", default=OWN_DATA)
    parser.add_argument("--half", choices=HALVES, default="test", help="which NPCs; default: those for figures only")
    parser.add_argument("--language", choices=("en", "de"), help="only attacks in it")
    parser.add_argument("--unguarded", action="store_true", help="nothing is checked before the voice")
    add_options(parser, asked="attacks")
    return parser


if __name__ == "__main__":
    sys.exit(main())
