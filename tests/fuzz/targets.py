"""Readers of bytes that anybody may have written, each with the words that it has a rule for.

A reader swallows the refusal that it documents. Whatever else it raises is a finding.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from glyphoxa.adapters.postgres.world.bundle import BUNDLED
from glyphoxa.adapters.postgres.world.campaigns import check_document
from glyphoxa.chat.asker import QuestionLimits
from glyphoxa.chat.questions import Unparseable, parsed, validated
from glyphoxa.chronicle.effects import effects_of
from glyphoxa.chronicle.llm_extractor import KnownBefore, Merging, TalkFindings, TalkQuestion, question_about
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.talk import KnownEntity, SceneTalk
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import read_settings
from glyphoxa.dm.campaign_bundle import BundleReader, BundleWriter, Row
from glyphoxa.dm.import_review import cleaned, digest_of
from glyphoxa.dm.source_world import ImportKind
from glyphoxa.domain.errors import Corrupt, InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.language.words import applied, composed
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry
from glyphoxa.npc.second_look import CorrectedTranscript, Span, declared_in, verified
from glyphoxa.plugins.imports.csv_tables import read_csv_tables
from glyphoxa.plugins.imports.files import open_source
from glyphoxa.plugins.imports.html_text import html_text
from glyphoxa.plugins.imports.readers import read_source
from glyphoxa.transcript.spool_files import record, utterance_of
from glyphoxa.web.page_socket import PageMessage, _line_in
from glyphoxa.web.requests import first_problem
from glyphoxa.world.encoding import decode
from glyphoxa.world.event_log import Cause, WorldEvent, replay
from glyphoxa_pipelines.webrtc import check_offer
from tests.support.foundry import write_leveldb
from tests.support.talk import a_stretch

CORPUS: Final = Path(__file__).parent / "corpus"
_COMPACTED: Final = Path(__file__).parents[1] / "data" / "foundry" / "actors"


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """A reader of hostile bytes.

    Attributes:
        name: Also that of its directory of seeds.
        feed: Takes the bytes and a scratch file.
        words: Words that a change inserts.
    """

    name: str
    feed: Callable[[bytes, Path], None]
    words: tuple[bytes, ...]


_JSON = (
    *(b'"', b"{", b"[" * 3_000, b'{"a":' * 2_000, b"9" * 5_000, b"1e999", b"NaN", b"null", b"true", b"-1", b"0"),
    *(b"\\ud800", b"\\u0000", b"```json\n"),
)
_YAML = (
    *(b"&a ", b"*a", b"<<: ", b"!!python/object:os.system ", b"? ", b"- ", b"[", b"{", b"\t", b"\n---\n", b": ", b"~"),
    *(
        b"9" * 30,
        b".nan",
        b"2026-02-30",
        b"0x1F",
        b"\xc2\x85",
        b"-1",
        b"1e400",
        b".inf",
        b"~nobody/x",
        b"http://[",
        b"null",
    ),
)
_MARKDOWN = (b"---\n", b"[[", b"]]", b"%%", b"> [!secret]\n", b":::secret\n", b"```", b"- " * 900, *_YAML[:4])
_LEVELDB = (b"\xff" * 9 + b"\x01", b"\x80" * 9, b"\x00" * 8, b"\xff\xff\xff\xff\x0f", b"\xf4\xff\xff", b"!actors!")
_HTML = (
    b"<",
    b">",
    b"&#0;",
    b"&#x110000;",
    b"<section class='secret'>",
    b"</section>",
    b"<table><tr><td>",
    b"<div>" * 900,
)
_CSV = (
    *(b",", b";", b'"', b'""', b"\r", b"\r\n", b"\n\n", b"\t", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"x" * 140_000),
    *(b"name", b"type", b"npc", b"known_by", b"hidden", b"yes", b"Grimjaw"),
)


def _page_message(data: bytes, scratch: Path) -> None:
    text = data.decode("utf-8", "replace")
    try:
        PageMessage.model_validate_json(text)
    except ValidationError as error:
        assert first_problem(error)
    _line_in(text)


def _sdp_offer(data: bytes, scratch: Path) -> None:
    with suppress(InvalidInput):
        check_offer(data.decode("utf-8", "replace"))


def _from_file(read: Callable[[Path], object]) -> Callable[[bytes, Path], None]:
    def feed(data: bytes, scratch: Path) -> None:
        scratch.write_bytes(data)
        with suppress(InvalidInput):
            read(scratch)

    return feed


def _spool_record(data: bytes, scratch: Path) -> None:
    """Anything but a whole record is None, and what was read is written again as it was."""
    utterance_of(data)
    # With a header that is right, so that the payload is looked at, too.
    told = utterance_of(b"%08x %08x %s\n" % (len(data), zlib.crc32(data), data))
    if told is not None:
        assert utterance_of(record(told)) is not None


def _csv_tables(data: bytes, scratch: Path) -> None:
    scratch.write_bytes(data)
    with suppress(InvalidInput), open_source(scratch) as files:
        read_csv_tables(files)


ODO = KnownEntity(EntityId("odo"), "npc", "Odo Fennimore", ("Odo",))
LINES = ("Odo Fennimore brews ale at the Saltmere.", "He serves Countess Marrin.", "I promise to find the bell.")
MISHEARD, DOUBTED = "so we asked elder nacks about iron holt", (Span(12, 23), Span(30, 39))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A stretch of talk, what the rules found in it, and what a model is asked about it."""

    talk: SceneTalk
    question: TalkQuestion
    known: KnownBefore


def _llm_answer(data: bytes, scratch: Path) -> None:
    """The chronicle and the second look keep only what they were shown."""
    text = data.decode("utf-8", "replace")
    with suppress(Unparseable):
        _remembered(validated(TalkFindings, parsed(text)))
    with suppress(Unparseable):
        _looked_at(validated(CorrectedTranscript, parsed(text)))


def _remembered(answer: TalkFindings) -> None:
    asked = _asked()
    found = Merging(asked.question, asked.known).merge(answer)
    shown = {line.utterance.id for line in asked.question.lines}
    for each in (*found.entities, *found.relations, *found.facts):
        assert each.evidence, each
        assert shown.issuperset(each.evidence), each
    effects_of(found, asked.talk, [ODO])


def _looked_at(answer: CorrectedTranscript) -> None:
    text, declared = answer.corrected_text, declared_in(answer)
    edits = verified(MISHEARD, text, declared, doubtful=DOUBTED, gazetteer=_misheard())
    composed(MISHEARD, (), edits)
    # Words that nobody doubted stay.
    assert applied(MISHEARD, edits).startswith("so we asked "), edits


@cache
def _asked() -> _Asked:
    talk = a_stretch(*LINES)
    question = question_about(talk, QuestionLimits(10_000))
    assert question is not None
    rules = RulesExtractor("en")
    found = rules.find(talk, [ODO])
    return _Asked(talk, question, KnownBefore([ODO], rules.names, found))


@cache
def _misheard() -> Gazetteer:
    names = ("Eldrinax", "Ironhold", "Grimjaw")
    return Gazetteer.build([Entry(name, EntityId(name)) for name in names])


BY_DM = Cause("dm", 1)


def _bundle_file(data: bytes, scratch: Path) -> None:
    tables: dict[str, list[Row]] = {}
    reader = BundleReader(BytesIO(data), tables=BUNDLED)
    try:
        for table, _at, row in reader.rows():
            tables.setdefault(table, []).append(row)
    except InvalidInput:
        return
    # What was read can be written, and is the same.
    file = BytesIO()
    writer = BundleWriter(file, reader.campaign, with_secrets=True)
    try:
        for table in reader.n_rows:
            writer.put(table, tables.get(table, ()))
    except UnicodeEncodeError:
        return  # half a character: no database holds one
    writer.finish()
    file.seek(0)
    again = BundleReader(file, tables=BUNDLED)
    assert [row for _, _, row in again.rows()] == [row for rows in tables.values() for row in rows]
    assert (again.campaign, again.n_rows) == (reader.campaign, reader.n_rows)
    with suppress(InvalidInput):
        BundleWriter(BytesIO(), reader.campaign, with_secrets=False).put(
            "x", [row for rows in tables.values() for row in rows]
        )
    for row in tables.get("campaign_documents", ()):
        if isinstance(document := row.get("document"), dict):
            with suppress(InvalidInput):
                check_document(document, reader.campaign.id)
    with suppress(Corrupt, KeyError, TypeError, ValueError, InvalidInput):
        replay(_events(reader.campaign.id, tables.get("world_events", ())))


def _events(campaign: CampaignId, rows: Sequence[Row]) -> list[WorldEvent]:
    """Raises: Corrupt."""
    return [
        decode(campaign, seq, BY_DM, str(row.get("event_type")), json.dumps(row.get("payload")))
        for seq, row in enumerate(rows, start=1)
    ]


def _feed_zip(data: bytes, scratch: Path) -> None:
    scratch.write_bytes(data)
    with suppress(InvalidInput), open_source(scratch) as files:
        for name in files.names:
            assert not name.startswith("/") and ".." not in name.split("/")
            with suppress(InvalidInput):
                assert files.read(name) == b"".join(files.lines(name))


def _feed_html(data: bytes, scratch: Path) -> None:
    text = html_text(data.decode("utf-8", "replace"))
    assert isinstance(text.visible, str) and isinstance(text.hidden, str)


def _feed_leveldb(data: bytes, scratch: Path) -> None:
    world = scratch.with_name("world-of-leveldb")
    if not world.exists():
        shutil.copytree(_COMPACTED, world / "actors")
    (world / "actors" / "000005.ldb").write_bytes(data)
    _read("foundry", world)


def _feed_log(data: bytes, scratch: Path) -> None:
    world = scratch.with_name("world-of-log")
    if not world.exists():
        write_leveldb(world / "journal", {})
    (world / "journal" / "000003.log").write_bytes(data)
    _read("foundry", world)


def _as(kind: ImportKind, suffix: str) -> Callable[[bytes, Path], None]:
    def feed(data: bytes, scratch: Path) -> None:
        path = scratch.with_suffix(suffix)
        path.write_bytes(data)
        _read(kind, path)

    return feed


def _read(kind: ImportKind, path: Path) -> None:
    try:
        world = read_source(kind, path)
    except InvalidInput as error:
        assert "\n" not in str(error)
        return
    for document in cleaned(world).documents:
        assert document.name and document.type and document.key
        digest_of(document)


TARGETS = (
    FuzzTarget("page_message", _page_message, (*_JSON, b'{"id":' * 2_000)),
    FuzzTarget(
        "sdp_offer", _sdp_offer, (b"\r\n", b"m=audio", b"m=video 9 x 0", b"a=", b"a=group:BUNDLE ", b"9" * 5_000)
    ),
    FuzzTarget("campaign_yaml", _from_file(read_campaign), _YAML),
    FuzzTarget("settings_yaml", _from_file(read_settings), _YAML),
    FuzzTarget("spool_record", _spool_record, (*_JSON, b"}", b"9" * 40)),
    FuzzTarget(
        "llm_answer", _llm_answer, (*_JSON, b'"lines": [', b'"facts": ', *b"Odo Saltmere Eldrinax PARENT_OF".split())
    ),
    FuzzTarget("bundle_file", _bundle_file, (*_JSON, b"9" * 18, b'"id"', b'"tables": {', b'"seq": 2', b'"retract"')),
    FuzzTarget("csv_tables", _csv_tables, _CSV),
    FuzzTarget("import_zip", _feed_zip, (b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04", b"../", b"\0\0", b"\xff" * 4)),
    FuzzTarget("import_html", _feed_html, _HTML),
    FuzzTarget("import_leveldb", _feed_leveldb, _LEVELDB),
    FuzzTarget("import_log", _feed_log, _LEVELDB),
    FuzzTarget("import_foundry", _as("foundry", ".json"), (*_JSON, b'"pages": [', b'"ownership": {', b'"_id"')),
    FuzzTarget(
        "import_roll20", _as("roll20", ".json"), (*_JSON, b'"handouts": [', b'"gmnotes": "', b'"inplayerjournals"')
    ),
    FuzzTarget("import_card", _as("card", ".json"), (*_JSON, b'"entries": [', b'"data": {', b"{{user}}:", b"<START>")),
    FuzzTarget("import_card_png", _as("card", ".png"), (b"tEXt", b"zTXt", b"iTXt", b"chara\0", b"\xff" * 4, b"IEND")),
    FuzzTarget("import_markdown", _as("markdown", ".md"), _MARKDOWN),
)
