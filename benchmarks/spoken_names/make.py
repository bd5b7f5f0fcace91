"""Makes the spoken set of names, in three steps that can each be run again.

    python -m benchmarks.spoken_names.make sentences
    python -m benchmarks.spoken_names.make speak --audio DIR
    python -m benchmarks.spoken_names.make transcribe --audio DIR [--setting tiny ...] [--base DIR]
    python -m benchmarks.spoken_names.make pairs

`speak` needs packages that are no dependencies of this project, in an environment of its own (see
`voices.NEEDS`). The sound stays in DIR; only text is kept with the project. The base model is not
one that Glyphoxa ships: the setting `base` is made only where `--base` names its directory.
"""

from __future__ import annotations

import argparse
import sys
import wave
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.spoken_names.dataset import (
    HERE,
    Heard,
    Sentence,
    SpokenName,
    heard_path,
    read_heard,
    read_names,
    read_sentences,
    write_heard,
    write_sentences,
)
from benchmarks.spoken_names.pairs import write_pairs
from benchmarks.spoken_names.sentences import (
    glossary_for,
    sentences_with_names,
    sentences_without_names,
    template_lines,
    to_be_spoken,
    word_lists,
)
from benchmarks.spoken_names.voices import NEEDS, RATE_HZ, VOICES, recording, voices, with_noise
from glyphoxa.adapters.local.whisper import Transcription, Whisper
from glyphoxa.domain.errors import GlyphoxaError, NotFound


@dataclass(frozen=True, slots=True)
class Setting:
    """How the local recogniser listens.

    Attributes:
        snr_db: Noise is added that far below the speech; None for the quiet room alone.
    """

    name: str
    model: str = "tiny.en"
    with_glossary: bool = False
    snr_db: float | None = None


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("tiny"),
        Setting("tiny-glossary", with_glossary=True),
        Setting("tiny-noise", snr_db=10.0),
        Setting("base", model="base"),
    )
}


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    try:
        if options.step == "sentences":
            make_sentences()
        elif options.step == "speak":
            speak_all(options.audio)
        elif options.step == "transcribe":
            for name in options.setting or ("tiny", "tiny-glossary", "tiny-noise"):
                transcribe_all(SETTINGS[name], options.audio, options.base if name == "base" else options.tiny)
        else:
            write_pairs(HERE)
    except ModuleNotFoundError as error:
        print(f"error: {error.name or error} is not installed here; needed: pip install {NEEDS}", file=sys.stderr)
        return 2
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def make_sentences() -> None:
    named = sentences_with_names(read_names(), template_lines(HERE / "with-names.txt"), VOICES)
    plain = sentences_without_names(template_lines(HERE / "without-names.txt"), word_lists(HERE / "words.tsv"), VOICES)
    write_sentences(HERE / "sentences.tsv", [*named, *plain])
    print(f"{len(named)} sentences with names, {len(plain)} without", file=sys.stderr)


def speak_all(audio: Path) -> None:
    voice = voices()
    audio.mkdir(parents=True, exist_ok=True)
    for sentence in read_sentences():
        path = _wav(audio, sentence)
        if not path.is_file():
            _write_wav(path, recording(to_be_spoken(sentence), voice(sentence.voice), _seed(sentence)))


def transcribe_all(setting: Setting, audio: Path, model: Path | None) -> None:
    """Goes on where it was stopped: delete the file to begin anew. In the order of the ids, which is none."""
    if model is None:
        raise NotFound(f"setting {setting.name}: where is the model? --base DIR")
    names, path = read_names(), heard_path(setting.name)
    sentences = {sentence.id: sentence for sentence in read_sentences()}
    done = read_heard(path) if path.is_file() else {}
    heard = {key: each for key, each in done.items() if key in sentences}
    whisper = Whisper(model, threads=1)
    for key in sorted(sentences.keys() - heard.keys()):
        heard[key] = _transcribed(whisper, setting, sentences[key], names, _read_wav(_wav(audio, sentences[key])))
        if len(heard) % 100 == 0 or len(heard) == len(sentences):
            write_heard(path, (heard[each] for each in sorted(heard)))
            print(f"{setting.name}: {len(heard)} of {len(sentences)}", file=sys.stderr, flush=True)


def _transcribed(
    whisper: Whisper,
    setting: Setting,
    sentence: Sentence,
    names: Iterable[SpokenName],
    samples: npt.NDArray[np.int16],
) -> Heard:
    glossary, is_hinted = None, False
    if setting.with_glossary:
        told, is_hinted = glossary_for(sentence, names)
        glossary = f"Names: {', '.join(told)}."
    if setting.snr_db is not None:
        samples = with_noise(samples, setting.snr_db, _seed(sentence) + 1)
    result = whisper.transcribe(samples, glossary)
    text = " ".join(result.text.split())
    return Heard(sentence.id, text, is_hinted, _confidences(result, text))


def _confidences(result: Transcription, text: str) -> tuple[int, ...]:
    """Percent for each word between spaces; nothing when the recogniser told none for one of them."""
    words = [word for word in getattr(result, "words", ()) if word.confidence is not None]
    if result.text != text:
        return ()
    found: list[int] = []
    end = 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        inside = [each.confidence for each in words if each.start < end and each.end > start]
        if not inside:
            return ()
        found.append(round(100 * min(inside)))
    return tuple(found)


def _wav(audio: Path, sentence: Sentence) -> Path:
    return audio / f"{sentence.id}-{sentence.voice}.wav"


def _seed(sentence: Sentence) -> int:
    return zlib.crc32(sentence.id.encode())


def _write_wav(path: Path, samples: npt.NDArray[np.int16]) -> None:
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE_HZ)
        out.writeframes(samples.astype("<i2").tobytes())


def _read_wav(path: Path) -> npt.NDArray[np.int16]:
    try:
        with wave.open(str(path), "rb") as sound:
            return np.frombuffer(sound.readframes(sound.getnframes()), "<i2").astype(np.int16)
    except FileNotFoundError as error:
        raise NotFound(f"{path}: no such recording; the step `speak` makes it") from error


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spoken_names.make", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("sentences", help="write sentences.tsv from the names and templates")
    speak = steps.add_parser("speak", help="speak every sentence once")
    speak.add_argument("--audio", type=Path, required=True, metavar="DIR")
    transcribe = steps.add_parser("transcribe", help="write heard-SETTING.tsv.gz")
    transcribe.add_argument("--audio", type=Path, required=True, metavar="DIR")
    transcribe.add_argument("--setting", choices=list(SETTINGS), action="append")
    tiny = Path.home() / ".cache" / "glyphoxa" / "models" / "whisper-tiny.en"
    transcribe.add_argument("--tiny", type=Path, default=tiny, metavar="DIR", help="whisper tiny.en (%(default)s)")
    transcribe.add_argument("--base", type=Path, metavar="DIR", help="whisper base, in CTranslate2's format")
    steps.add_parser("pairs", help="derive wrong forms and clean sentences from the transcripts")
    return parser


if __name__ == "__main__":
    sys.exit(main())
