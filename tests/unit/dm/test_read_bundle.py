"""A bundle is checked before any database is asked."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from io import BufferedReader, BytesIO, RawIOBase

import pytest

from glyphoxa.dm.campaign_bundle import BundleReader, BundleWriter
from glyphoxa.domain.errors import InvalidInput
from tests.fuzz.targets import CORPUS

TEXT = (CORPUS / "bundle_file" / "town.json").read_text("utf-8")
TABLES = json.loads(TEXT)["tables"]


def _written_again(text: str) -> str:
    reader, tables = BundleReader(BytesIO(text.encode()), tables=TABLES), {}
    for table, _at, row in reader.rows():
        tables.setdefault(table, []).append(row)
    file = BytesIO()
    writer = BundleWriter(file, reader.campaign, with_secrets=True)
    for table in reader.n_rows:
        writer.put(table, tables.get(table, ()))
    writer.finish()
    return file.getvalue().decode()


def test_bundle_is_written_as_it_was_read() -> None:
    text = _written_again(TEXT)
    assert text.startswith('{\n "format": "glyphoxa-campaign",\n "version": 2,\n "campaign": {')
    assert _written_again(text) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "^this is not a bundle: a bundle is a JSON object"),
        ('{"items": [1, 2]}', "^this is not a bundle"),
        ('{"format": "other"}', "^this is not a bundle"),
        ('{"format": "glyphoxa-campaign", "version": 9, "future": []}', "^version is 9: .* install a newer Glyphoxa$"),
        ('{"format": "glyphoxa-campaign", "version": true}', "^version is true: this release reads versions 1 to 2$"),
        ('{"format": "glyphoxa-campaign", "tabels": {}}', "'tabels', which is unknown: did you mean 'tables'"),
        ('{"format": "glyphoxa-campaign", "version": 2}', "^the bundle has no 'campaign'"),
        ('{"tables": {"entity": []}}', "^tables.entity is not a table of a bundle"),
        ("entities:\n  - name: x", "^before its tables: .* a campaign file \\(YAML\\) is loaded with"),
        (TEXT[:-2] + "x", "^after tables.world_events.* Additional data found|Unexpected symbol"),
        (TEXT.replace('"ordinal": 1', f'"ordinal": {"9" * 5_000}', 1), "^.*a bundle is one whole JSON object"),
        (TEXT.replace('"ordinal": 1', f'"ordinal": {"[" * 500}', 1), "^the nesting is too deep"),
        (TEXT.replace('"ordinal": 1', '"ordinal": 1e999', 1), "^it contains 1E[+]999: numbers must be finite$"),
        (TEXT.replace('"ordinal": 1', '"ordinal": NaN', 1), "Unexpected symbol 'N'"),
        (TEXT.replace('"ordinal": 1', '"ordinal": 1, "ordinal": 1', 1), "^an object has the key 'ordinal' twice$"),
    ],
)
def test_damaged_bundle_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        _written_again(text)


def test_number_larger_than_64_bits_is_kept() -> None:
    text = TEXT.replace('"ordinal": 1', f'"ordinal": {10**30}', 1)
    assert str(10**30) in _written_again(text)


class _Lines(RawIOBase):
    """A file that is never there as a whole."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines, self._left = lines, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._left = self._left or next(self._lines, b"")
        piece, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


def test_bundle_is_read_in_memory_that_does_not_grow_with_it() -> None:
    def lines() -> Iterator[bytes]:
        yield TEXT[: TEXT.index('"session_entries": [')].encode() + b'"session_entries": [{}'
        for n in range(5_000):
            yield (",\n" + json.dumps({"id": n + 1, "text": f"word {n} " * 40})).encode()
        yield b']}, "version": 1}'

    reader = BundleReader(BufferedReader(_Lines(lines())), tables=TABLES)
    tracemalloc.start()
    n_rows = sum(1 for _ in reader.rows())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_rows == 5_002
    assert peak < 400_000  # of 3 MB
