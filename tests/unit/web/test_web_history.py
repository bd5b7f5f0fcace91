"""What a page that is opened, or loaded again, in the middle of something is shown."""

from __future__ import annotations

from glyphoxa.domain.ids import PlayerId
from glyphoxa.web.events import Json
from glyphoxa.web.hub import LENGTH, History

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


def test_the_sentences_of_an_answer_that_is_being_heard_are_there_and_in_order() -> None:
    first, second = speaks("t1", "Aye."), speaks("t1", "It is sharp.")
    assert after(said("u1", "tamsin"), thinks("t1"), first, second)[1:] == [first, second]


def test_who_thinks_is_there_until_the_first_sound_or_the_end_of_the_turn() -> None:
    assert after(thinks("t1"), thinks("t2", "odwina")) == [thinks("t1"), thinks("t2", "odwina")]
    assert thinks("t1") not in after(thinks("t1"), over("t1", reply=None))


def test_what_was_heard_is_there_once_also_between_its_end_and_the_disk() -> None:
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


def test_of_what_a_player_is_saying_the_latest_words_are_there_until_they_are_an_utterance() -> None:
    started: Json = {"type": "speech_started", "player": "tamsin"}
    words = [{"type": "partial", "player": "tamsin", "text": text} for text in ("Good", "Good evening")]
    ended: Json = {"type": "turn_ended", "player": "tamsin"}
    assert after(started, *words) == [started, words[-1]]
    assert after(started, *words, ended) == [ended]
    assert after(started, *words, ended, said("u1", "tamsin")) == [said("u1", "tamsin")]
    assert after(started, *words, {"type": "nothing_said", "player": "tamsin"}) == []


def test_words_that_are_known_better_later_are_there_as_they_are_known_now() -> None:
    better = {**said("u1", "tamsin"), "type": "revised", "spans": ["better"]}
    assert after(said("u1", "tamsin"), better) == [{**better, "type": "utterance"}]


def test_what_is_retracted_is_not_there_until_it_is_given_back() -> None:
    retracted: Json = {"type": "retracted", "id": "u1", "is_retracted": True}
    lines = (said("u1", "tamsin"), said("u2", "bran"))
    assert after(*lines, retracted) == [said("u2", "bran")]
    assert after(*lines, retracted, {**retracted, "is_retracted": False}) == list(lines)


def test_who_still_gets_ready_is_there_until_all_are() -> None:
    getting_ready = [{"type": "getting_ready", "npcs": names} for names in (["Mira", "Osk"], ["Osk"], [])]
    assert after(*getting_ready[:2]) == [getting_ready[1]]
    assert after(*getting_ready) == []


def test_the_past_is_bounded_and_what_goes_on_does_not_fall_out_of_it() -> None:
    messages = after(thinks("t1"), *(said(f"u{n}", "tamsin") for n in range(LENGTH + 5)))
    assert len(messages) == LENGTH + 1
    assert messages[-1] == thinks("t1")


def test_a_whisper_is_shown_to_the_player_whom_it_is_for_and_to_no_other() -> None:
    history = History()
    whisper = {"type": "whisper", "to": TAMSIN, "text": "The cup is poisoned.", "at_ms": 1}
    history.take(whisper)
    assert (history.messages(TAMSIN), history.messages(PlayerId("bran"))) == ([whisper], [])
