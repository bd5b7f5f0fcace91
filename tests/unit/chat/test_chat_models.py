"""Which chat models a machine can hold a table with follows from what one of them does on it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.adapters.weights.store import own_manifest
from glyphoxa.chat.models import (
    CHAT_MODELS,
    OPENS_WITHIN_S,
    SPOKEN_TOKENS_PER_S,
    WITHIN_S,
    ChatModel,
    Machine,
    Measured,
    best,
    hub_name,
    judged,
    wrong_gguf_name,
)
from glyphoxa.cli.setup import told

TWO_CORES = Measured(billions=1.54, bytes=1_117_320_768, reads_per_s=50, speaks_per_s=22)
ROOMY = Machine(free_bytes=64_000_000_000)
ONE, SEVEN = (
    ChatModel("a/b/one.gguf", 1.54, 1_117_320_768, 28_672, "MIT"),
    ChatModel("a/b/seven.gguf", 7.0, 4_400_000_000, 131_072, "MIT"),
)


def test_the_measured_model_is_judged_by_what_was_measured() -> None:
    verdict = judged(ONE, TWO_CORES, ROOMY)
    assert verdict.speaks_per_s == 22
    assert verdict.first_clause_s == pytest.approx(50 / 50 + 8 / 22)
    assert verdict.against == ()


def test_a_larger_one_reads_by_its_parameters_and_speaks_by_its_bytes() -> None:
    verdict = judged(SEVEN, TWO_CORES, ROOMY)
    assert verdict.opens_s == pytest.approx(900 / (50 * 1.54 / 7))
    assert verdict.speaks_per_s == pytest.approx(22 * 1_117_320_768 / 4_400_000_000)
    assert [why.split(",")[0] for why in verdict.against] == [
        "first words after 6.0 s",
        "82 s to read each NPC the first time",
    ]
    assert verdict.first_clause_s > WITHIN_S
    assert verdict.opens_s > OPENS_WITHIN_S


def test_words_that_come_more_slowly_than_they_are_said_hold_no_table() -> None:
    slow = replace(TWO_CORES, reads_per_s=10_000, speaks_per_s=SPOKEN_TOKENS_PER_S - 0.1)
    assert judged(ONE, slow, ROOMY).against == ("4.9 tokens a second are slower than speech",)


def test_what_does_not_fit_says_how_much_it_needs_and_each_npc_counts() -> None:
    fits = Machine(free_bytes=judged(ONE, TWO_CORES, replace(ROOMY, n_npcs=2)).bytes, n_npcs=2)
    assert judged(ONE, TWO_CORES, fits).against == ()
    [why] = judged(ONE, TWO_CORES, replace(fits, n_npcs=9)).against
    assert why == "needs 2.9 GB of memory, 2.5 GB are free"


def test_best_model_is_the_largest_one_that_is_fast_enough() -> None:
    quick = replace(TWO_CORES, reads_per_s=500, speaks_per_s=100)
    both = [judged(one, quick, ROOMY) for one in (ONE, SEVEN)]
    found = best(both)
    assert found is not None
    assert found.model == SEVEN
    assert best([judged(SEVEN, TWO_CORES, ROOMY)]) is None


def test_every_listed_model_can_be_fetched_by_its_name_and_has_its_licence() -> None:
    for model in CHAT_MODELS:
        assert model.name in own_manifest() or (hub_name(model.name) and not wrong_gguf_name(model.name))
        assert model.licence
        assert 1 <= model.billions <= 8.1
        assert 3.5 < 8 * model.bytes / (model.billions * 1e9) < 6.5  # bits a parameter of Q4_K_M


def test_what_is_said_names_the_settings_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    told("x.gguf", TWO_CORES, ROOMY, [judged(one, TWO_CORES, ROOMY) for one in (ONE, SEVEN)])
    said = capsys.readouterr().out
    assert "x.gguf reads 50 tokens per second here and generates 22." in said
    assert "no: first words after 6.0 s, more than 2.5" in said
    assert said.endswith("  providers: {llm: {name: local, model: a/b/one.gguf}}\n")
    told("x.gguf", TWO_CORES, ROOMY, [judged(SEVEN, TWO_CORES, ROOMY)])
    assert "No model answers within 2.5 s here" in capsys.readouterr().out
