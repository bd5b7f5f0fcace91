from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.utterance import HeardWord
from glyphoxa.memory.spool import Cursor, Spool
from tests.support.builders import an_utterance


def ids(spool: Spool, after: Cursor | None = None) -> list[str]:
    return [str(item.utterance.id) for item in spool.pending(after)]


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.spool"))


def test_what_was_appended_is_there_for_the_next_process_as_it_was(tmp_path: Path) -> None:
    said = an_utterance('She said "Ægir\n\u2028 is — back"; \0 \U0001f409')
    with Spool(tmp_path) as spool:
        spool.append(said)
    with Spool(tmp_path) as spool:
        assert [item.utterance for item in spool.pending()] == [said]


def test_what_the_recogniser_knew_of_each_word_is_not_written(tmp_path: Path) -> None:
    said = an_utterance("ask Grimjaw")
    with Spool(tmp_path) as spool:
        spool.append(replace(said, words=(HeardWord(0, 3, 0.9, 0, 100), HeardWord(4, 11, 0.3, 100, 400))))
    with Spool(tmp_path) as spool:
        assert [item.utterance for item in spool.pending()] == [said]
    assert b"words" not in segments(tmp_path)[0].read_bytes()


def test_whether_it_was_typed_is_written_and_records_of_before_are_speech(tmp_path: Path) -> None:
    said, typed = an_utterance("ask Grimjaw"), replace(an_utterance("ask him", id="u2"), typed=True)
    with Spool(tmp_path) as spool:
        for utterance in (said, typed):
            spool.append(utterance)
    segment = segments(tmp_path)[0]
    first, second = segment.read_bytes().splitlines()
    payload = first[18:].replace(b',"typed":false', b"")
    segment.write_bytes(b"%08x %08x %s\n%s\n" % (len(payload), zlib.crc32(payload), payload, second))
    with Spool(tmp_path) as spool:
        assert [item.utterance for item in spool.pending()] == [said, typed]


def test_what_is_acknowledged_does_not_come_back(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        for n in range(3):
            spool.append(an_utterance("line", id=f"u{n}"))
        spool.acknowledge(spool.pending()[1].end)
        assert ids(spool) == ["u2"]
    with Spool(tmp_path) as spool:
        assert ids(spool) == ["u2"]


def test_a_second_process_is_refused_and_told_why(tmp_path: Path) -> None:
    with Spool(tmp_path), pytest.raises(InvalidInput, match="used by another running Glyphoxa"):
        Spool(tmp_path)
    Spool(tmp_path).close()


def test_full_segments_are_deleted_when_all_of_them_is_acknowledged(tmp_path: Path) -> None:
    with Spool(tmp_path, segment_bytes=1_000) as spool:
        for n in range(30):
            spool.append(an_utterance("x" * 200, id=f"u{n}"))
        assert len(segments(tmp_path)) > 3
        assert ids(spool) == [f"u{n}" for n in range(30)]
        spool.acknowledge(spool.pending()[-1].end)
        assert len(segments(tmp_path)) == 1
        assert ids(spool) == []


def test_a_full_spool_refuses_with_an_alarm_and_keeps_what_it_has(tmp_path: Path) -> None:
    alarms: list[str] = []
    with Spool(tmp_path, max_bytes=10_000, alarm=alarms.append) as spool:
        kept = 0
        with pytest.raises(Unavailable, match="is full"):
            while True:
                spool.append(an_utterance("x" * 300, id=f"u{kept}"))
                kept += 1
        assert [alarm.split(" is ")[1].split(" ")[0] for alarm in alarms] == ["half", "full"]
        assert ids(spool) == [f"u{n}" for n in range(kept)]
        spool.acknowledge(spool.pending()[-1].end)
        spool.append(an_utterance("room again", id="after"))
        assert ids(spool) == ["after"]


def test_a_full_disk_loses_nothing_that_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alarms: list[str] = []
    with Spool(tmp_path, alarm=alarms.append) as spool:
        spool.append(an_utterance("before", id="u1"))
        real = os.fsync

        def full(_handle: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(Unavailable, match="No space left"):
            spool.append(an_utterance("lost, and we say so", id="u2"))
        monkeypatch.setattr(os, "fsync", real)
        spool.append(an_utterance("after", id="u3"))
        assert ids(spool) == ["u1", "u3"]
        assert len(alarms) == 1
    with Spool(tmp_path) as spool:
        assert ids(spool) == ["u1", "u3"]


def test_a_damaged_record_is_set_aside_and_its_neighbours_are_kept(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        for n in range(3):
            spool.append(an_utterance(f"line {n}", id=f"u{n}"))
    content = segments(tmp_path)[0].read_bytes()
    segments(tmp_path)[0].write_bytes(content.replace(b"line 1", b"lone 1"))
    with Spool(tmp_path) as spool:
        assert ids(spool) == ["u0", "u2"]
        assert ids(spool) == ["u0", "u2"]
    assert (tmp_path / "damaged").read_bytes().count(b"\n") == 1


def test_a_damaged_cursor_repeats_and_loses_nothing(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.append(an_utterance("line"))
        spool.acknowledge(spool.pending()[0].end)
    (tmp_path / "acknowledged").write_text("nonsense")
    with Spool(tmp_path) as spool:
        assert ids(spool) == ["u1"]


def test_a_record_after_lost_acknowledged_bytes_is_not_taken_for_acknowledged(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        for n in range(3):
            spool.append(an_utterance("line", id=f"u{n}"))
        spool.acknowledge(spool.pending()[-1].end)
    os.truncate(segments(tmp_path)[0], 0)
    for expected in (["new"], ["new", "newer"]):
        with Spool(tmp_path) as spool:
            spool.append(an_utterance("line", id=expected[-1]))
            assert ids(spool) == expected


WRITER = """
import sys
from pathlib import Path
from glyphoxa.memory.spool import Spool
from tests.support.builders import an_utterance
with Spool(Path(sys.argv[1])) as spool:
    for n in range(1_000_000):
        spool.append(an_utterance("said aloud", id=f"u{n}"))
        print(n, flush=True)
"""


def test_everything_a_killed_process_was_told_is_kept_is_there(tmp_path: Path) -> None:
    """R-246: kill -9 in the middle of writing."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    for _ in range(50):
        writer.stdout.readline()
    writer.kill()
    rest = writer.communicate()[0].split()
    told = int(rest[-1]) if rest else 49
    with Spool(tmp_path) as spool:
        found = ids(spool)
    assert found[: told + 1] == [f"u{n}" for n in range(told + 1)]
    assert len(found) <= told + 2


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 400)),
        st.tuples(st.just("drain"), st.integers(1, 10)),
        # A drain whose acknowledgement never reached the disk: the log has it, the cursor does not.
        st.tuples(st.just("drain unnoticed"), st.integers(1, 10)),
        st.tuples(st.just("die"), st.integers(0, 300)),
    ),
    max_size=40,
)


@given(actions=ACTIONS)
@settings(max_examples=60)
def test_every_kept_utterance_reaches_the_log_once_whatever_happens(actions: list[tuple[str, int]]) -> None:
    """A death leaves any part of an unfinished record behind the last one that was kept."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        spool = Spool(directory, segment_bytes=2_000)
        kept: list[str] = []
        log: dict[str, None] = {}  # idempotent by utterance id, as the real one
        try:
            for action, n in actions:
                match action:
                    case "append":
                        spool.append(an_utterance("x" * n, id=f"u{len(kept)}"))
                        kept.append(f"u{len(kept)}")
                    case "drain" | "drain unnoticed":
                        batch = spool.pending(limit=n)
                        log.update(dict.fromkeys(str(item.utterance.id) for item in batch))
                        if batch and action == "drain":
                            spool.acknowledge(batch[-1].end)
                    case _:
                        size = segments(directory)[-1].stat().st_size
                        spool.append(an_utterance("never acknowledged", id="torn"))
                        spool.close()
                        last = segments(directory)[-1]
                        whole = last.stat().st_size
                        start = size if size < whole else 0  # it may have begun a segment
                        os.truncate(last, min(whole - 1, start + n))
                        spool = Spool(directory, segment_bytes=2_000)
            log.update(dict.fromkeys(ids(spool)))
        finally:
            spool.close()
        assert list(log) == kept
