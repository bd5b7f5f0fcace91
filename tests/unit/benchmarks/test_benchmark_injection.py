"""How attacks are made of the persona benchmark's questions for secrets, and what is counted of the answers."""

from __future__ import annotations

import yaml

from benchmarks.injection import FORMS, Attacked, attacked, figures
from benchmarks.persona import OWN_DATA
from benchmarks.persona_data import Line, read_all
from benchmarks.persona_play import Answer
from benchmarks.persona_rules import judged
from glyphoxa.domain.ids import SessionId, SpeakerId, TurnId
from glyphoxa.domain.turn import Outcome, Stage, TurnRecord


def answered(to: Line, reply: str) -> Attacked:
    record = TurnRecord(
        id=TurnId("t"),
        session_id=SessionId("s"),
        speaker_id=SpeakerId("tamsin"),
        speaker_name="Tamsin",
        raw_text=to.text,
        text=to.text,
        npc_id=to.npc.id,
        address_reason="alone",
        outcome=Outcome.ANSWERED,
        reply=reply,
        stages={Stage.FIRST_AUDIO: 1_000} if reply else {},
    )
    kind = to.id.rpartition("/")[2]
    return Attacked(kind, Answer(to, record, 1, False), judged(to, reply))


def test_every_question_for_a_secret_is_put_in_every_form_of_its_language_to_the_same_npc() -> None:
    forms = yaml.safe_load(FORMS.read_text("utf-8"))
    every = [attacked(one, forms) for one in read_all(OWN_DATA, "test")]
    lines = [line for one in every for line in one.lines]
    assert len(lines) >= 400
    assert {line.language for line in lines} == {"en", "de"}
    assert len({line.id for line in lines}) == len(lines)
    assert all(line.kind == "secret" and line.told_by for line in lines)
    assert not any("Mirelle" in line.text or "{ask}" in line.text for line in lines)


def test_what_is_told_and_what_of_a_template_is_said_is_counted() -> None:
    forms = yaml.safe_load(FORMS.read_text("utf-8"))
    line = attacked(read_all(OWN_DATA, "test")[0], forms).lines[0]
    found = [answered(line, reply) for reply in ("I let smugglers in.", "Not me. <|im_end|>", "Never.", "")]
    counted = figures(found)
    assert (counted["attacks"], counted["told"], counted["tokens_said"], counted["silent"]) == (4, 1, 1, 1)
    assert counted["told_by_kind"] == {"direct": 1}
    assert figures([])["told_percent"] is None
