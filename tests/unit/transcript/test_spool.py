from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.heard import Correction, HeardWord
from glyphoxa.domain.ids import NpcId, SessionId, UtteranceId
from glyphoxa.transcript import spool_files
from glyphoxa.transcript.spool import Spool
from glyphoxa.transcript.spool_files import SpoolPosition
from tests.support.builders import an_utterance
from tests.support.proof import n_examples

_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Thousands of spools die here as processes do, and not as machines: waiting for a disk would only cost time."""


def ids(spool: Spool, after: SpoolPosition | None = None) -> list[str]:
    return [str(item.utterance.id) for item in spool.pending(after)]


def texts(directory: Path) -> list[str]:
    """Return the texts that the next process finds."""
    with Spool(directory) as spool:
        return [item.utterance.text for item in spool.pending()]


def say(spool: Spool, n_utterances: int, text: str = "line") -> None:
    for n in range(n_utterances):
        spool.append(an_utterance(text, id=f"u{n}"))


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.spool"))


def test_what_was_appended_is_there_for_the_next_process_as_it_was(tmp_path: Path) -> None:
    said = an_utterance('She said "Ægir\n\u2028 is — back"; \0 \U0001f409')
    with Spool(tmp_path) as spool:
        spool.append(said)
    with Spool(tmp_path) as spool:
        assert [item.utterance for item in spool.pending()] == [said]


def test_half_a_character_does_not_keep_the_rest_from_being_kept(tmp_path: Path) -> None:
    """A model's text may be cut between the two halves of one."""
    correction = Correction(start=0, end=3, before="a\ud83d", after="ask", score=0.9, stage="phonetic", reason="")
    said = replace(
        an_utterance("ask \ud83d Grimjaw"), corrections=(correction,), witnesses=frozenset({NpcId("b"), NpcId("a")})
    )
    with Spool(tmp_path) as spool:
        spool.append(said)
    with Spool(tmp_path) as spool:
        [kept] = [item.utterance for item in spool.pending()]
    assert kept == replace(
        said,
        text="ask ? Grimjaw",
        raw_text=said.raw_text.replace("\ud83d", "?"),
        corrections=(replace(correction, before="a?"),),
    )


def test_what_the_recogniser_knew_of_each_word_is_not_written(tmp_path: Path) -> None:
    said = an_utterance("ask Grimjaw")
    with Spool(tmp_path) as spool:
        spool.append(replace(said, words=(HeardWord(0, 3, 0.9, 0, 100), HeardWord(4, 11, 0.3, 100, 400))))
    with Spool(tmp_path) as spool:
        assert [item.utterance for item in spool.pending()] == [said]
    assert b"words" not in segments(tmp_path)[0].read_bytes()


def test_whether_it_was_typed_is_written_and_records_of_before_are_speech(tmp_path: Path) -> None:
    said, typed = an_utterance("ask Grimjaw"), an_utterance("ask him", id="u2", typed=True)
    with Spool(tmp_path) as spool:
        for utterance in (said, typed):
            spool.append(utterance)
    segment = segments(tmp_path)[0]
    first, second = segment.read_bytes().splitlines()
    payload = first[18:].replace(b',"typed":false', b"")
    segment.write_bytes(b"%08x %08x %s\n%s\n" % (len(payload), zlib.crc32(payload), payload, second))
    with Spool(tmp_path) as spool:
        assert [item.utterance for item in spool.pending()] == [said, typed]


def test_an_older_place_than_the_acknowledged_one_brings_nothing_back(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        say(spool, 3)
        first, second = (item.end for item in spool.pending(limit=2))
        spool.acknowledge(second)
        spool.acknowledge(first)
        assert ids(spool) == ids(spool, first) == ["u2"]
    with Spool(tmp_path) as spool:
        assert ids(spool) == ["u2"]


HOLDER = """
import sys
from pathlib import Path
from glyphoxa.transcript.spool import Spool
with Spool(Path(sys.argv[1])):
    print("mine", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_and_told_why(tmp_path: Path) -> None:
    """Until the first one ends, however it ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(InvalidInput, match="used by another running Glyphoxa: end that one, or choose another data"):
        Spool(tmp_path)
    holder.kill()
    holder.communicate()
    Spool(tmp_path).close()


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="file/spool cannot be used: Not a directory"):
        Spool(tmp_path / "file" / "spool")


def test_full_segments_are_deleted_when_all_of_them_is_acknowledged(tmp_path: Path) -> None:
    with Spool(tmp_path, segment_bytes=1_000) as spool:
        say(spool, 30, "x" * 200)
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


def test_a_spool_that_the_log_has_caught_up_with_gives_its_alarm_again(tmp_path: Path) -> None:
    alarms: list[str] = []
    with Spool(tmp_path, max_bytes=10_000, segment_bytes=1_000, alarm=alarms.append) as spool:
        for n_alarms in (1, 2):
            while spool.size_bytes <= 8_000:
                spool.append(an_utterance("x" * 300))
            assert len(alarms) == n_alarms
            spool.acknowledge(spool.pending()[-1].end)


def test_a_new_spool_is_for_this_user_alone(tmp_path: Path) -> None:
    Spool(tmp_path / "data" / "spool").close()
    assert (tmp_path / "data" / "spool").stat().st_mode & 0o777 == 0o700
    (tmp_path / "data" / "spool").chmod(0o755)
    Spool(tmp_path / "data" / "spool").close()
    assert (tmp_path / "data" / "spool").stat().st_mode & 0o777 == 0o700, "and one that was open to others"


@contextmanager
def no_file_beyond(n_bytes: int) -> Iterator[None]:
    """Imitate a full disk: a write is cut short, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_write_that_is_cut_short_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    alarms: list[str] = []
    with Spool(tmp_path, alarm=alarms.append) as spool:
        spool.append(an_utterance("before", id="u1"))
        with no_file_beyond(spool.size_bytes + 100):
            for _ in range(2):
                with pytest.raises(Unavailable, match="cannot be written"):
                    spool.append(an_utterance("lost, and we say so", id="u2"))
            assert ids(spool) == ["u1"]
        spool.append(an_utterance("after", id="u3"))
        assert ids(spool) == ["u1", "u3"]
        assert len(alarms) == 2
    with Spool(tmp_path) as spool:
        assert ids(spool) == ["u1", "u3"]


def test_without_a_log_full_segments_shrink_and_are_still_there_for_one(tmp_path: Path) -> None:
    with Spool(tmp_path, segment_bytes=10_000) as spool:
        for n in range(200):
            spool.append(an_utterance("The forge is cold, and nobody has been here for days.", id=f"u{n}"))
            spool.shrink()
        sizes = [path.stat().st_size for path in tmp_path.glob("*.gz")]
        assert len(sizes) >= 5
        assert max(sizes) < 10_000 / 4
        assert spool.size_bytes == sum(sizes) + sum(path.stat().st_size for path in segments(tmp_path))
        assert ids(spool) == [f"u{n}" for n in range(200)]
    with Spool(tmp_path, segment_bytes=10_000) as spool:
        spool.append(an_utterance("now", id="u200"))
        assert ids(spool) == [f"u{n}" for n in range(201)]
        tenth = spool.pending(limit=10)[-1].end
        assert ids(spool, tenth)[0] == "u10"
        spool.acknowledge(tenth)
    with Spool(tmp_path) as spool:
        assert ids(spool) == [f"u{n}" for n in range(10, 201)]
        spool.acknowledge(spool.pending()[-1].end)
        assert list(tmp_path.glob("*.gz")) == []


def test_a_process_that_dies_while_it_shrinks_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    with Spool(tmp_path, segment_bytes=1_000) as spool:
        say(spool, 30, "x" * 200)
        first, second = segments(tmp_path)[:2]
        whole = first.read_bytes()
        spool.shrink()
    first.write_bytes(whole)  # the shrunk one had its name, the other was not gone yet
    second.with_suffix(".spool.new").write_bytes(b"half of it")
    with Spool(tmp_path, segment_bytes=1_000) as spool:
        assert ids(spool) == [f"u{n}" for n in range(30)]
    assert list(tmp_path.glob("*.new")) == []


def test_a_disk_that_has_no_room_to_shrink_is_left_in_peace(tmp_path: Path) -> None:
    with Spool(tmp_path, segment_bytes=10_000) as spool:
        for n in range(100):
            spool.append(an_utterance(f"{n**50:x}", id=f"u{n}"))
        with no_file_beyond(500):
            spool.shrink()
        spool.shrink()
        assert list(tmp_path.glob("*.gz")) == list(tmp_path.glob("*.new")) == []
        assert ids(spool) == [f"u{n}" for n in range(100)]


def test_a_damaged_shrunk_segment_is_set_aside_and_the_others_are_kept(tmp_path: Path) -> None:
    with Spool(tmp_path, segment_bytes=1_000) as spool:
        for n in range(10):
            spool.append(an_utterance("x" * 1_000, id=f"u{n}"))
            spool.shrink()
        broken = sorted(tmp_path.glob("*.gz"))[1]
        broken.write_bytes(broken.read_bytes()[:-9])
        found = ids(spool)
        assert found[0] == "u0"
        assert found[-8:] == [f"u{n}" for n in range(2, 10)]
        spool.acknowledge(spool.pending()[-1].end)
    assert [path.name for path in tmp_path.glob("*.damaged")] == ["0000000002.spool.damaged"]


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
        say(spool, 3)
        spool.acknowledge(spool.pending()[-1].end)
    os.truncate(segments(tmp_path)[0], 0)
    for expected in (["new"], ["new", "newer"]):
        with Spool(tmp_path) as spool:
            spool.append(an_utterance("line", id=expected[-1]))
            assert ids(spool) == expected


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 400)),
        # The process dies at any byte of what it was writing, or right behind it.
        st.tuples(st.just("die writing"), st.integers(0, 800)),
        # A write that failed and could not be taken back, and then what stands there is written over.
        st.tuples(st.just("fail"), st.integers(0, 800)),
        st.tuples(st.just("drain"), st.integers(1, 10)),
        # The log has it, and the cursor never reached the disk: an earlier one is there, or half a one, or none.
        st.tuples(st.just("drain unnoticed"), st.integers(1, 10)),
        st.tuples(st.just("tear the cursor"), st.integers(0, 3)),
        st.tuples(st.just("shrink"), st.just(0)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=30,
)


@given(actions=ACTIONS)
@settings(max_examples=n_examples(1_500), derandomize=True, database=None)
def test_every_kept_utterance_reaches_the_log_once_and_in_order_whatever_happens(
    actions: list[tuple[str, int]],
) -> None:
    """Whatever may be left of what nobody was told is kept: it is not there, or it is there in its place."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as name:
        directory = Path(name)

        def reopened() -> Spool:
            return Spool(directory, segment_bytes=2_000, alarm=lambda _text: None)

        spool = reopened()
        kept: list[str] = []
        log: dict[str, None] = {}  # idempotent by utterance id, as the real one
        try:
            for n_action, (action, n) in enumerate(actions):
                said = an_utterance("x" * n, id=f"u{n_action}")
                match action:
                    case "append":
                        spool.append(said)
                        kept.append(said.id)
                    case "die writing":
                        spool.close()
                        tear(directory, spool_files.record(replace(said, id=UtteranceId(f"torn{n_action}")))[:n])
                        spool = reopened()
                    case "fail":
                        tear(directory, spool_files.record(replace(said, id=UtteranceId(f"torn{n_action}")))[:n])
                    case "drain" | "drain unnoticed":
                        batch = spool.pending(limit=n)
                        log.update(dict.fromkeys(str(item.utterance.id) for item in batch))
                        if batch and action == "drain":
                            spool.acknowledge(batch[-1].end)
                    case "tear the cursor":
                        spool.close()
                        if (directory / "acknowledged").exists():
                            os.truncate(directory / "acknowledged", n)
                        spool = reopened()
                    case "shrink":
                        spool.shrink()
                    case _:
                        spool.close()
                        spool = reopened()
            log.update(dict.fromkeys(ids(spool)))
        finally:
            spool.close()
        assert [utterance for utterance in log if not utterance.startswith("torn")] == kept


def tear(directory: Path, written: bytes) -> None:
    with segments(directory)[-1].open("ab") as file:
        file.write(written)


# -- what is just being said


def test_what_was_noted_of_an_utterance_is_appended_once_when_its_end_never_came(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.append(an_utterance("Grimjaw?", id="u1"))
        for heard in ("Aye.", "Aye. Come in."):
            spool.note(an_utterance(heard, id="u2"))
        assert ids(spool) == ["u1"]
    for _ in range(2):
        with Spool(tmp_path) as spool:
            assert [(item.utterance.id, item.utterance.text) for item in spool.pending()] == [
                ("u1", "Grimjaw?"),
                ("u2", "Aye. Come in."),
            ]


def test_what_was_said_to_its_end_takes_the_place_of_what_was_noted_of_it(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.note(an_utterance("Aye.", id="u1"))
        spool.note(an_utterance("No.", id="u2"))
        spool.append(an_utterance("Aye. Come in. Sit.", id="u1"))
    assert texts(tmp_path) == ["Aye. Come in. Sit.", "No."]
    assert not (tmp_path / "under-way").exists()


def test_a_process_that_dies_between_the_end_and_forgetting_what_was_noted_leaves_the_end_once(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.note(an_utterance("Aye.", id="u1"))
        noted = (tmp_path / "under-way").read_bytes()
        spool.append(an_utterance("Aye. Come in.", id="u1"))
    (tmp_path / "under-way").write_bytes(noted + noted[:40])
    assert texts(tmp_path) == ["Aye. Come in."]


def test_a_disk_that_is_full_keeps_what_was_noted_before(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.note(an_utterance("Aye.", id="u1"))
        with no_file_beyond(100), pytest.raises(Unavailable, match="cannot be written"):
            spool.note(an_utterance("Aye. Come in.", id="u1"))
    assert texts(tmp_path) == ["Aye."]


def test_what_cannot_be_forgotten_of_an_utterance_keeps_nobody_from_keeping_its_end(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.note(an_utterance("Aye.", id="u1"))
        (tmp_path / "under-way").unlink()
        (tmp_path / "under-way").mkdir()  # no file that could be taken away
        spool.append(an_utterance("Aye. Come in.", id="u1"))
        assert [item.utterance.text for item in spool.pending()] == ["Aye. Come in."]


def test_what_waits_for_room_is_not_lost_to_what_is_noted_meanwhile(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.note(an_utterance("Aye.", id="u1"))
    with no_file_beyond(10):
        spool = Spool(tmp_path)  # it has no room for what was left
    with spool:
        spool.note(an_utterance("No.", id="u2"))
        spool.append(an_utterance("No. Never.", id="u2"))
    assert texts(tmp_path) == ["No. Never.", "Aye."]


NOTING = """
import sys
from pathlib import Path
from glyphoxa.transcript.spool import Spool
from tests.support.builders import an_utterance
with Spool(Path(sys.argv[1])) as spool:
    for answer in range(1_000_000):
        for n in range(4):
            spool.note(an_utterance(" ".join(f"s{i}" for i in range(n + 1)), id=f"a{answer}"))
            print(f"a{answer}", n, flush=True)
        spool.append(an_utterance("s0 s1 s2 s3 s4", id=f"a{answer}"))
        print(f"a{answer}", 4, flush=True)
"""


@pytest.mark.parametrize("n_told", [1, 3, 5, 17, 101])
def test_a_process_that_is_killed_leaves_each_answer_once_as_far_as_it_was_heard(tmp_path: Path, n_told: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", NOTING, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    )
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(n_told)]
    process.kill()
    told += [line for line in process.stdout.readlines() if line.endswith("\n")]
    process.communicate()
    heard = {answer: int(n) for answer, n in (line.split() for line in told)}
    with Spool(tmp_path) as spool:
        kept = {item.utterance.id: len(item.utterance.text.split()) - 1 for item in spool.pending()}
        assert len(spool.pending()) == len(kept)
    for answer, n in heard.items():  # the last one may have come one step further than we were told
        assert kept[answer] in (n, n + 1) if answer == list(heard)[-1] else kept[answer] == n == 4
    assert len(kept) <= len(heard) + 1


def test_the_latest_of_a_session_is_there_whether_the_log_has_it_or_not(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        other = an_utterance("elsewhere", id="x", session_id=SessionId("another"))
        for n in range(20):
            spool.append(an_utterance("line", id=f"u{n}"))
            spool.append(other)
        spool.append(an_utterance("sent twice", id="u19"))
        spool.acknowledge(spool.pending()[-1].end)
        latest = spool.latest(other.campaign_id, an_utterance("").session_id, limit=3)
        assert [said.id for said in latest] == ["u17", "u18", "u19"]
        assert [said.text for said in latest] == ["line"] * 3


def test_the_latest_of_a_session_are_found_across_a_segment_that_has_just_begun(tmp_path: Path) -> None:
    said = an_utterance("x" * 200)
    with Spool(tmp_path, segment_bytes=1_000) as spool:
        n = 0
        while len(segments(tmp_path)) < 4:
            spool.append(replace(said, id=UtteranceId(f"u{n}")))
            n += 1
        latest = spool.latest(said.campaign_id, said.session_id, limit=2)
        assert [utterance.id for utterance in latest] == [f"u{n - 2}", f"u{n - 1}"]
