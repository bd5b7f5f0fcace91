"""Text that only one player types rewrites no name."""

from __future__ import annotations

from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, UtteranceId
from glyphoxa.names.wrong_forms import FormHeard, TypedClaims, Witness, form_of
from tests.support.builders import an_utterance

ELDRINAX, GRIMJAW = EntityId("e-eldrinax"), EntityId("e-grimjaw")


def a_proof(
    utterance: str, *, heard: str = "elder nacks", of: EntityId = ELDRINAX, by: Witness = "spelled"
) -> FormHeard:
    return FormHeard(*form_of(heard), of, "proved", by, "spelled out", UtteranceId(utterance))


def typed(by: str) -> Utterance:
    return an_utterance("E-L-D-R-I-N-A-X", speaker=by, typed=True)


def spoken(by: str) -> Utterance:
    return an_utterance("E-L-D-R-I-N-A-X", speaker=by)


def witnesses(claims: TypedClaims, said: Utterance, *proofs: FormHeard) -> list[tuple[str, str]]:
    return [(proof.utterance, proof.by) for proof in claims.weighed(said, proofs)]


def test_what_is_spoken_counts_at_once() -> None:
    assert witnesses(TypedClaims(), spoken("Kira"), a_proof("u1")) == [("u1", "spelled")]


def test_what_one_player_types_counts_for_nothing_however_often() -> None:
    claims = TypedClaims()
    for utterance in ("u1", "u2", "u3"):
        assert witnesses(claims, typed("Kira"), a_proof(utterance)) == [(utterance, "typed")]


def test_another_player_who_types_or_says_it_bears_out_what_was_typed() -> None:
    for other in (typed("Bran"), spoken("Bran")):
        claims = TypedClaims()
        claims.weighed(typed("Kira"), [a_proof("u1")])
        assert witnesses(claims, other, a_proof("u2", heard="Elder-Nacks", by="said")) == [
            ("u1", "spelled"),
            ("u2", "said"),
        ]
        assert witnesses(claims, typed("Kira"), a_proof("u3")) == [("u3", "spelled")]


def test_another_player_who_says_it_of_another_name_or_form_bears_nothing_out() -> None:
    claims = TypedClaims()
    claims.weighed(typed("Kira"), [a_proof("u1")])
    assert witnesses(claims, typed("Bran"), a_proof("u2", of=GRIMJAW)) == [("u2", "typed")]
    assert witnesses(claims, typed("Bran"), a_proof("u3", heard="elder knacks")) == [("u3", "typed")]


def test_no_number_of_claims_fills_the_memory() -> None:
    claims = TypedClaims(most=2)
    for number in range(10):
        claims.weighed(typed("Kira"), [a_proof(f"u{number}", heard=f"elder nacks {'x' * number}")])
        claims.weighed(typed("Kira"), [a_proof(f"v{number}")])
    assert witnesses(claims, typed("Bran"), a_proof("w")) == [("v8", "spelled"), ("v9", "spelled"), ("w", "spelled")]
