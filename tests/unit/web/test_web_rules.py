from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.events import Degraded, MemoryChanged, MemoryHealth, TableEvent, Trouble, TurnFinished
from glyphoxa.domain.heard import Correction
from glyphoxa.domain.turn_record import AssembledPrompt, Outcome, Stage, Unaddressed
from glyphoxa.web.events import event_json, marked
from glyphoxa.web.requests import in_words, is_allowed_host, is_same_origin
from glyphoxa.web.seats import NotNow
from glyphoxa_pipelines.webrtc import bundle_candidates, reveal_candidates
from tests.support.builders import a_turn_record
from tests.support.web_table import CAMPAIGN, CORRECTION, GRIMJAW, HEARD, RAW, SECRET


def _turn_json(stages: dict[Stage, int]) -> dict[str, object]:
    prompt = AssembledPrompt(text=SECRET)
    turn = a_turn_record(Outcome.NOT_ADDRESSED, stages=stages, prompt=prompt, unaddressed=Unaddressed.NO_NAME)
    return event_json(TurnFinished(turn), CAMPAIGN)


def test_a_corrected_name_is_marked_with_what_was_heard() -> None:
    assert marked(HEARD, RAW, [CORRECTION]) == [
        {"text": "Good evening "},
        {"text": "Grimjaw", "raw": "grim jaw", "why": "sounds like Grimjaw"},
        {"text": ", how is my blade?"},
    ]


def test_text_that_the_corrections_do_not_explain_is_shown_unmarked() -> None:
    assert marked("Something else.", RAW, [CORRECTION]) == [{"text": "Something else."}]
    assert marked(HEARD, RAW, [CORRECTION, CORRECTION]) == [{"text": HEARD}]


@given(st.lists(st.tuples(st.text(), st.text(), st.text())), st.text())
def test_the_marked_spans_always_read_as_the_text(parts: list[tuple[str, str, str]], rest: str) -> None:
    raw = text = ""
    corrections = []
    for kept, before, after in parts:
        start = len(raw + kept)
        corrections.append(Correction(start, start + len(before), before, after, 1.0, "phonetic", ""))
        raw, text = raw + kept + before, text + kept + after
    spans = marked(text + rest, raw + rest, corrections)
    assert "".join(span["text"] for span in spans) == text + rest


def test_waterfall_starts_at_end_of_speech_without_the_reply() -> None:
    stages = {Stage.AUDIO_END: 9_000, Stage.FIRST_AUDIO: 1_900, Stage.SPEECH_END: 1_000, Stage.TURN_END: 1_480}
    assert _turn_json(stages)["bars"] == [
        {"stage": "turn_end", "from_ms": 0, "to_ms": 480},
        {"stage": "first_audio", "from_ms": 480, "to_ms": 900},
    ]


def test_simultaneous_stages_keep_their_order() -> None:
    stages = {Stage.TURN_END: 5, Stage.ADDRESSED: 5, Stage.CORRECTED: 5, Stage.SPEECH_END: 5}
    assert [bar["stage"] for bar in _turn_json(stages)["bars"]] == ["corrected", "addressed", "turn_end"]


def test_a_turn_without_stages_has_no_waterfall() -> None:
    assert _turn_json({})["bars"] == []


def test_prompt_is_never_sent_to_a_page() -> None:
    assert SECRET not in str(_turn_json({}))


def test_a_page_is_told_in_one_word_why_no_npc_was_meant() -> None:
    assert _turn_json({})["unaddressed"] == "no_name"


RAW_TROUBLE = "postgresql://gm:hunter2@10.0.0.7/glyphoxa: 401 Unauthorized"


@pytest.mark.parametrize(
    "event",
    [
        Degraded(RAW_TROUBLE, 1, Trouble.RESTARTED, GRIMJAW.id),
        MemoryChanged(MemoryHealth("degraded", 7, RAW_TROUBLE), 1),
        TurnFinished(
            a_turn_record(
                Outcome.FAILED, prompt=AssembledPrompt(omitted=(f"recall: {RAW_TROUBLE}",)), error=RAW_TROUBLE
            )
        ),
    ],
)
def test_provider_and_database_errors_are_never_sent_to_a_page(event: TableEvent) -> None:
    told = str(event_json(event, CAMPAIGN))
    assert not any(piece in told for piece in ("hunter2", "10.0.0.7", "401"))


def test_refused_page_gets_the_tables_reason_only() -> None:
    assert in_words(NotNow("the table is closing")) == "the table is closing"
    assert in_words(InvalidInput("the id of a line is too short")) == "the id of a line is too short"
    assert in_words(Unavailable(RAW_TROUBLE)) == "something the table needs is unavailable; see the DM's log"


def test_turn_lists_omitted_parts_and_broken_answer() -> None:
    prompt = AssembledPrompt(omitted=("recall: database away", "facts: late"))
    told = event_json(TurnFinished(a_turn_record(prompt=prompt, error="the line broke")), CAMPAIGN)
    assert (told["omitted"], told["broke_off"], told["player"]) == (["recall", "facts"], True, "tamsin")


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:8080", "192.168.4.2:80", "table.lan:80"])
def test_safe_hosts_are_served(host: str) -> None:
    assert is_allowed_host(host, allowed={"table.lan"})


@pytest.mark.parametrize("host", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[oops"])
def test_other_hosts_are_not_served(host: str) -> None:
    assert not is_allowed_host(host, allowed={"table.lan"})


def test_an_origin_is_ours_only_when_scheme_host_and_port_are() -> None:
    assert is_same_origin("http://localhost:80", "localhost:80")
    assert not is_same_origin("file://localhost:80", "localhost:80")
    assert not is_same_origin("null", "localhost:80")
    assert not is_same_origin("http://localhost", "localhost:80")


def test_media_of_a_bundle_have_the_candidates_of_the_first_medium() -> None:
    audio = ["m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=candidate:1 1 udp 1 192.0.2.7 50000 typ host", "a=mid:0"]
    data = ["m=application 9 UDP/DTLS/SCTP x", "a=candidate:1 1 udp 1 192.0.2.7 50001 typ host", "a=mid:1"]
    sdp = "\r\n".join(["v=0", "a=group:BUNDLE 0 1", *audio, *data, ""])
    bundled = bundle_candidates(sdp).splitlines()
    assert bundled[:5] == ["v=0", "a=group:BUNDLE 0 1", *audio]
    assert sorted(bundled[5:]) == sorted([data[0], audio[1], data[2]])
    apart = sdp.replace("a=group:BUNDLE 0 1\r\n", "")
    assert bundle_candidates(apart) == apart


def test_candidates_of_a_bundle_stay_if_its_first_medium_has_none() -> None:
    other = "m=application 9 UDP/DTLS/SCTP x\r\na=candidate:1 1 udp 1 192.0.2.7 50001 typ host\r\n"
    sdp = f"v=0\r\na=group:BUNDLE 1\r\nm=audio 0 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n{other}"
    assert bundle_candidates(sdp) == sdp


def test_hidden_candidates_are_replaced_by_where_the_request_came_from() -> None:
    hidden = "a=candidate:1 1 udp 2113937151 9f0c.local 50000 typ host generation 0"
    sdp = f"v=0\r\n{hidden}\r\na=mid:0\r\n"
    assert "udp 2113937151 192.0.2.7 50000 typ host" in reveal_candidates(sdp, "192.0.2.7", own_addresses=["10.1.1.1"])
    on_this_machine = reveal_candidates(sdp, "127.0.0.1", own_addresses=["10.1.1.1", "fd00::2"])
    assert on_this_machine.count("50000 typ host") == 2
    assert ".local" not in on_this_machine
    assert reveal_candidates(sdp, "", own_addresses=[]) == sdp
