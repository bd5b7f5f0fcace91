"""Whether a recogniser uses the names it is told to expect, how many help, and what choosing them costs.

    python -m benchmarks.hints [--lines 40]

The same sound goes through the local recogniser with and without names: lines of the spoken set's tuning half in the
voices of this project, each with one name, and such without any; the demo's recorded players. The glossaries have 20 to
100 names, the line's own in the first place, in the last, or not at all. The last line printed is a JSON object:

- `lines`, `clean_lines`; `without` and each of `with`: `right` (lines whose name is written right), `wer` (percent of
  the words besides the name), `clean_wer` (of the lines without a name), `p50_ms` of a transcript. `tokens` of the
  prompt (median): the recogniser leaves out what is behind the 200th.
- `demo`: names written right, of `names`, `without` hints and `with` those of a table that has just been opened.
- `ranking`: milliseconds, best of five, for a campaign of 10,000 names: `first` takes them all, `update` takes them
  again after one has changed, `choice` makes the list anew after somebody spoke.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein
from scipy.signal import resample_poly
from tokenizers import Tokenizer

from benchmarks.spoken_names.dataset import Sentence, read_names, read_sentences
from benchmarks.turn import positive
from demo.script import read_evening
from glyphoxa.adapters.audio.wav import read_recording
from glyphoxa.adapters.local.hibari_voice import HibariVoice, load_engine
from glyphoxa.adapters.local.whisper import Whisper
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import EntityId
from glyphoxa.names.hints import Hints
from glyphoxa.speech.names.biasing import ContextualBiasing
from glyphoxa.speech.names.campaign_entries import entries_of
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer

DEMO = Path(__file__).resolve().parents[1] / "demo"
SIZES = (20, 40, 60, 100)
PLACES = ("first", "last", "absent")
_WORD = re.compile(r"[^\W_]+")
_SYLLABLES = ("ka", "vel", "tho", "rin", "dra", "mor", "eth", "zu", "qua", "sil")

Sound = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Line:
    """`name` is empty where none is said."""

    text: str
    name: str
    sound: Sound


def words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text.replace("'s", "").replace("\u2019s", ""))]


def is_written(name: str, text: str) -> bool:
    return f" {' '.join(words(name))} " in f" {' '.join(words(text))} "


def errors_beside(name: str, said: str, heard: str) -> tuple[int, int]:
    """Wrong words that are not the name's, and how many words besides it were said."""
    spoken, of_name = words(said), words(name)
    wrong = [
        edit for edit in Levenshtein.editops(spoken, words(heard)) if _word_at(spoken, edit.src_pos) not in of_name
    ]
    return len(wrong), sum(word not in of_name for word in spoken)


def _word_at(spoken: Sequence[str], at: int) -> str:
    return spoken[min(at, len(spoken) - 1)]


class Bench:
    def __init__(self, whisper: Whisper, lines: Sequence[Line], clean: Sequence[Line]) -> None:
        self._whisper = whisper
        self._lines = lines
        self._clean = clean

    def measure(self, glossary_for: Callable[[Line], str]) -> dict[str, Any]:
        right = wrong = said = 0
        times_ms: list[float] = []
        for line in self._lines:
            began = perf_counter()
            heard = self._whisper.transcribe(line.sound, glossary_for(line)).text
            times_ms.append((perf_counter() - began) * 1_000)
            right += is_written(line.name, heard)
            errors, n = errors_beside(line.name, line.text, heard)
            wrong, said = wrong + errors, said + n
        clean_wrong = clean_said = 0
        for line in self._clean:
            errors, n = errors_beside("", line.text, self._whisper.transcribe(line.sound, glossary_for(line)).text)
            clean_wrong, clean_said = clean_wrong + errors, clean_said + n
        return {
            "right": right,
            "wer": round(100 * wrong / max(1, said), 1),
            "clean_wer": round(100 * clean_wrong / max(1, clean_said), 1),
            "p50_ms": round(median(times_ms)),
        }


def glossary(names: Sequence[str]) -> str:
    return f"Names: {', '.join(names)}." if names else ""


def with_others(name: str, others: Sequence[str], size: int, place: str) -> list[str]:
    own = set(words(name))
    decoys = [other for other in others if not own & set(words(other))]
    match place:
        case "first":
            return [name, *decoys[: size - 1]]
        case "last":
            return [*decoys[: size - 1], name]
        case _:
            return decoys[:size]


def chosen(sentences: Sequence[Sentence], n: int) -> list[Sentence]:
    """Spread over the set, each name once."""
    by_name = {each.mentions[0].name if each.mentions else each.text: each for each in sentences}
    spread = list(by_name.values())
    return [spread[at * len(spread) // n] for at in range(min(n, len(spread)))]


def spoken(engine: Any, sentences: Sequence[Sentence]) -> Iterator[Line]:
    for each in sentences:
        preset = each.voice.removeprefix("hibari-")
        pcm = np.concatenate(list(HibariVoice(engine, preset).synthesise(each.text))).astype(np.float32)
        quiet = np.zeros(9_600, dtype=np.float32)
        sound = np.concatenate([quiet, resample_poly(pcm, 2, 3), quiet]).clip(-32_768, 32_767).astype(np.int16)
        yield Line(each.text, each.mentions[0].name if each.mentions else "", sound)


def demo(whisper: Whisper) -> dict[str, int]:
    campaign = read_campaign(DEMO / "campaign.yaml").campaign
    hints = Hints(campaign, Gazetteer.build(entries_of(campaign), language=campaign.language), now_ms=lambda: 0)
    hints.scene_is(campaign.scenes[0])
    counts = {"names": 0, "without": 0, "with": 0}
    for session in read_evening(DEMO / "evening.yaml").sessions:
        for line in (line for part in session.parts for line in part.lines):
            sound = np.frombuffer(read_recording(DEMO / line.wav).pcm, dtype=np.int16)
            for key, prompt in (("without", ""), ("with", hints.glossary())):
                heard = whisper.transcribe(sound, prompt).text
                counts[key] += sum(is_written(name, heard) for name in line.names)
            counts["names"] += len(line.names)
    return counts


def ranking(n_names: int = 10_000) -> dict[str, float]:
    made = random.Random(3)
    names = {f"{''.join(made.choices(_SYLLABLES, k=4))}{n}".title() for n in range(n_names)}
    entries = [Entry(name, EntityId(name), "npc") for name in sorted(names)]
    before = Gazetteer.build(entries)
    after = before.with_entry(Entry("Vaelith", EntityId("v"), "npc"))
    times: dict[str, list[float]] = {"first": [], "update": [], "choice": []}

    def timed(what: str, do: Callable[[], object]) -> None:
        began = perf_counter()
        do()
        times[what].append((perf_counter() - began) * 1_000)

    for _ in range(5):
        expectation = ContextualBiasing()
        timed("first", lambda: expectation.names_are(before))  # noqa: B023 - called at once
        expectation.scene_is(entry.entity_id for entry in entries[:30])
        for n, entry in enumerate(entries[::25]):
            expectation.said(entry.entity_id, n * 20_000)
        timed("choice", lambda: expectation.keyterms(8_000_000))  # noqa: B023
        timed("update", lambda: expectation.names_are(after))  # noqa: B023
    return {"names": n_names, **{what: round(min(each), 2) for what, each in times.items()}}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hints", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--lines", type=positive, default=40, help="lines with a name; half as many have none (default 40)"
    )
    asked = parser.parse_args(argv)
    try:
        print(json.dumps(measured(max(2, asked.lines))))
    except GlyphoxaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def measured(n_lines: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"ranking": ranking()}
    said = [each for each in read_sentences() if each.split == "tune" and each.voice.startswith("hibari-")]
    weights = WeightStore().path("whisper-tiny.en")
    engine, whisper = load_engine(), Whisper(weights)
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    lines = list(spoken(engine, chosen([each for each in said if len(each.mentions) == 1], n_lines)))
    clean = list(spoken(engine, chosen([each for each in said if not each.mentions], n_lines // 2)))
    others = [each.name for each in read_names() if each.split == "tune"]
    random.Random(7).shuffle(others)
    bench = Bench(whisper, lines, clean)
    figures |= {"lines": len(lines), "clean_lines": len(clean), "demo": demo(whisper)}
    figures["without"] = bench.measure(lambda line: "")
    print(f"without names: {figures['without']}", file=sys.stderr)
    figures["with"] = []
    for size in SIZES:
        for place in PLACES:

            def prompt(line: Line, size: int = size, place: str = place) -> str:
                return glossary(with_others(line.name, others, size, place))

            tokens = round(median(len(tokenizer.encode(prompt(line)).ids) for line in lines))
            figures["with"].append({"names": size, "place": place, "tokens": tokens, **bench.measure(prompt)})
            print(figures["with"][-1], file=sys.stderr)
    return figures


if __name__ == "__main__":
    sys.exit(main())
