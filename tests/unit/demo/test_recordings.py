from __future__ import annotations

import contextlib
import struct
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import wavfile

from demo.recordings import RATE_HZ, pcm16, read_recording, resample, samples_of
from glyphoxa.adapters.wav import write_wav
from glyphoxa.domain.errors import InvalidInput, NotFound
from tests.support.proof import n_examples


def tone(seconds: float, rate: int, hz: float = 440.0) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hz * np.arange(int(seconds * rate)) / rate)


def loudest_hz(samples: np.ndarray) -> float:
    spectrum = np.abs(np.fft.rfft(samples))
    return float(np.fft.rfftfreq(len(samples), 1 / RATE_HZ)[spectrum.argmax()])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "a path with spaces"
    folder.mkdir()
    return folder / "line.wav"


def test_what_an_ear_takes_is_passed_on_unchanged(path: Path) -> None:
    pcm = pcm16(tone(0.3, RATE_HZ).astype(np.float32))
    write_wav(path, pcm, rate_hz=RATE_HZ)
    recording = read_recording(path)
    assert recording.duration_ms == 300
    assert np.abs(samples_of(recording.pcm) - samples_of(pcm)).max() < 2 / 32768


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 24_000, 44_100, 48_000, 96_000])
def test_any_common_sample_rate_keeps_its_length_and_its_pitch(path: Path, rate: int) -> None:
    wavfile.write(path, rate, tone(1.0, rate).astype(np.float32))
    recording = read_recording(path)
    assert recording.duration_ms == pytest.approx(1000, abs=1)
    assert loudest_hz(samples_of(recording.pcm)) == pytest.approx(440, abs=2)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.float32, np.float64])
def test_any_sample_format_has_the_same_loudness(path: Path, kind: type) -> None:
    samples = tone(0.5, RATE_HZ)
    if kind is np.uint8:
        samples = samples * 127 + 128
    elif np.issubdtype(kind, np.integer):
        samples = samples * np.iinfo(kind).max
    wavfile.write(path, RATE_HZ, samples.astype(kind))
    assert np.abs(samples_of(read_recording(path).pcm)).max() == pytest.approx(0.5, abs=0.01)


def test_24_bit_samples_are_read(path: Path) -> None:
    values = (tone(0.2, RATE_HZ) * (2**23 - 1)).astype(np.int32)
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(3)
        out.setframerate(RATE_HZ)
        out.writeframes(b"".join(struct.pack("<i", v)[:3] for v in values.tolist()))
    assert np.abs(samples_of(read_recording(path).pcm)).max() == pytest.approx(0.5, abs=0.01)


def test_stereo_becomes_the_mean_of_its_channels(path: Path) -> None:
    left = tone(0.5, RATE_HZ)
    wavfile.write(path, RATE_HZ, np.stack([left, np.zeros_like(left)], axis=1).astype(np.float32))
    assert np.abs(samples_of(read_recording(path).pcm)).max() == pytest.approx(0.25, abs=0.01)


def test_silence_and_noise_are_recordings_like_any_other(path: Path) -> None:
    wavfile.write(path, RATE_HZ, np.zeros(RATE_HZ, np.int16))
    assert set(read_recording(path).pcm) == {0}
    music = sum(tone(1.0, RATE_HZ, hz) for hz in (220.0, 277.2, 329.6)) / 3
    wavfile.write(path, RATE_HZ, (music + np.random.default_rng(0).normal(0, 0.1, RATE_HZ)).astype(np.float32))
    assert read_recording(path).duration_ms == 1000


def test_louder_than_full_scale_is_clipped_not_wrapped(path: Path) -> None:
    wavfile.write(path, RATE_HZ, np.full(1600, 3.0, np.float32))
    assert samples_of(read_recording(path).pcm).min() > 0.99


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(NotFound, match=r"no recording .*line\.wav; valid: a RIFF/WAVE"):
        read_recording(path)


def header(rate: int = RATE_HZ, channels: int = 1, bits: int = 16, data: bytes = b"", form: int = 1) -> bytes:
    block = channels * bits // 8
    fmt = struct.pack("<HHIIHH", form, channels, rate, (rate * block) % 2**32, block, bits)
    body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", r"is empty \(0 bytes\)"),
        (b"RIFF", "not a valid WAV file"),
        (b"ID3\x04 this is an mp3, really", "not a valid WAV file"),
        (b"OggS" + bytes(60), "not a valid WAV file"),
        (header()[:30], "not a valid WAV file"),
        (header(), "holds no samples"),
        (header(rate=0, data=bytes(320)), "sample rate of 0 Hz|not a valid WAV file"),
        (header(rate=1_000, data=bytes(320)), "sample rate of 1000 Hz"),
        (header(rate=400_000, data=bytes(320)), "sample rate of 400000 Hz"),
        (header(channels=0, data=bytes(320)), "not a valid WAV file|holds no samples"),
        (header(form=0x55, data=bytes(320)), "not a valid WAV file"),
        (header(form=3, bits=32, data=struct.pack("<f", float("nan")) * 200), "not numbers"),
        (header(rate=4_000, bits=8, data=bytes(4_000 * 601)), "lasts 601 s"),
    ],
)
def test_a_file_that_cannot_be_used_says_which_and_why_and_what_is_valid(path: Path, content: bytes, why: str) -> None:
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=rf"recording .*line\.wav .*({why}).*; valid: a RIFF/WAVE"):
        read_recording(path)


def test_a_folder_is_not_a_recording(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a file"):
        read_recording(tmp_path)


@settings(max_examples=n_examples(200))
@given(at=st.integers(0, 59), byte=st.integers(0, 255), cut=st.integers(0, 120))
def test_a_damaged_header_is_refused_or_read_never_a_crash(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, cut: int
) -> None:
    content = bytearray(header(data=bytes(640)))
    if at < len(content):
        content[at] = byte
    path = tmp_path_factory.mktemp("damaged") / "line.wav"
    path.write_bytes(bytes(content[: len(content) - cut]))
    with contextlib.suppress(InvalidInput):
        read_recording(path)


def test_resampling_nothing_is_nothing() -> None:
    assert len(resample(np.zeros(0, np.float32), from_hz=48_000, to_hz=RATE_HZ)) == 0
