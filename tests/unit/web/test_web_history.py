"""The content of a page that is opened, or loaded again, in the middle of something."""

from __future__ import annotations

from glyphoxa.domain.ids import PlayerId
from glyphoxa.web.events import HISTORY_LENGTH, History, Json

TAMSIN = PlayerId("tamsin")


def thinks(turn: str, npc: str = "grimjaw") -> Json:
    return {"type": "npc_thinks", "npc": npc, "turn": turn}


def speaks(turn: str, text: str, npc: str = "grimjaw") -> Json:
    return {"type": "npc_speaks", "npc": npc, "turn": turn, "text": text}


def silent(turn: str, npc: str = "grimjaw") -> Json:
    return {"type": "npc_silent", "npc": npc, "turn": turn}


def over(turn: str, *, reply: str | None) -> Json:
    return {"type": "turn", "id": turn, "reply": reply}


def said(utterance: str, speaker: str, kind: str = "player") -> Json:
    return {"type": "utterance", "id": utterance, "speaker": {"id": speaker, "kind": kind}, "spans": []}


def after(*messages: Json) -> list[Json]:
    history = History()
    for message in messages:
        history.take(message)
    return history.messages(TAMSIN)


def test_sentences_of_a_playing_answer_are_kept_in_order() -> None:
    first, second = speaks("t1", "Aye."), speaks("t1", "It is sharp.")
    assert after(said("u1", "tamsin"), thinks("t1"), first, second)[1:] == [first, second]


def test_thinking_npc_is_listed_until_first_audio_or_turn_end() -> None:
    assert after(thinks("t1"), thinks("t2", "odwina")) == [thinks("t1"), thinks("t2", "odwina")]
    assert thinks("t1") not in after(thinks("t1"), over("t1", reply=None))


def test_heard_answer_is_listed_once_before_it_is_stored() -> None:
    ended = [thinks("t1"), speaks("t1", "Aye."), silent("t1"), over("t1", reply="u2")]
    assert after(*ended) == [over("t1", reply="u2"), speaks("t1", "Aye."), silent("t1")]
    assert after(*ended, said("u2", "grimjaw", "npc")) == [over("t1", reply="u2"), said("u2", "grimjaw", "npc")]


def test_an_answer_that_began_before_the_one_before_it_was_on_disk_stays() -> None:
    messages = after(
        speaks("t1", "Aye."),
        silent("t1"),
        over("t1", reply="u2"),
        speaks("t2", "No."),
        said("u2", "grimjaw", "npc"),
    )
    assert messages[-1] == speaks("t2", "No.")
    assert speaks("t1", "Aye.") not in messages


def test_an_answer_of_which_nothing_was_heard_leaves_nothing() -> None:
    assert after(speaks("t1", "Aye."), silent("t1"), over("t1", reply=None)) == [over("t1", reply=None)]


def test_latest_partial_is_kept_until_its_utterance() -> None:
    started: Json = {"type": "speech_started", "player": "tamsin"}
    words = [{"type": "partial", "player": "tamsin", "text": text} for text in ("Good", "Good evening")]
    ended: Json = {"type": "turn_ended", "player": "tamsin"}
    assert after(started, *words) == [started, words[-1]]
    assert after(started, *words, ended) == [ended]
    assert after(started, *words, ended, said("u1", "tamsin")) == [said("u1", "tamsin")]
    assert after(started, *words, {"type": "nothing_said", "player": "tamsin"}) == []


def test_history_shows_the_latest_revision() -> None:
    better = {**said("u1", "tamsin"), "type": "revised", "spans": ["better"]}
    assert after(said("u1", "tamsin"), better) == [{**better, "type": "utterance"}]


def test_retracted_line_is_absent_until_restored() -> None:
    retracted: Json = {"type": "retracted", "id": "u1", "is_retracted": True}
    lines = (said("u1", "tamsin"), said("u2", "bran"))
    assert after(*lines, retracted) == [said("u2", "bran")]
    assert after(*lines, retracted, {**retracted, "is_retracted": False}) == list(lines)


def test_npcs_in_preparation_are_listed_until_all_are_ready() -> None:
    getting_ready = [{"type": "getting_ready", "npcs": names} for names in (["Mira", "Osk"], ["Osk"], [])]
    assert after(*getting_ready[:2]) == [getting_ready[1]]
    assert after(*getting_ready) == []


def test_history_is_bounded_and_keeps_running_answers() -> None:
    messages = after(thinks("t1"), *(said(f"u{n}", "tamsin") for n in range(HISTORY_LENGTH + 5)))
    assert len(messages) == HISTORY_LENGTH + 1
    assert messages[-1] == thinks("t1")


def test_whisper_is_shown_only_to_its_player() -> None:
    history = History()
    whisper = {"type": "whisper", "to": TAMSIN, "text": "The cup is poisoned.", "at_ms": 1}
    history.take(whisper)
    assert (history.messages(TAMSIN), history.messages(PlayerId("bran"))) == ([whisper], [])
