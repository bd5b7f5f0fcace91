"""The recall benchmarks run whole on a small table's talk, on a database of their own."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.benchmark_runs import figures_of
from tests.support.proof import proof_only

pytestmark = proof_only

INVENTED = ("--embeddings", "invented")
FIGURES = {"questions", "r5", "r10", "r20", "mrr", "hit10"}
TIMES = {"p50_ms", "p95_ms"}
ARMS = {"and", "or", "bm25", "dense", "rrf", "convex", "full", "lexical"}
ARMS |= {"no-neighbours", "no-speaker"}
TALK = {
    "fen": (
        ("Merle", "The ferryman wants three silver for the crossing."),
        ("Tamsin", "Three? Last spring my brother paid one."),
        ("Merle", "He says the water is high and the rope is old."),
        ("Tamsin", "I dreamt of a drowned bell last night."),
        ("Merle", "There is a bell under the fen, my grandmother told me so."),
        ("Tamsin", "Did she say who sank it?"),
        ("Merle", "The monks did, when the plague came."),
        ("Tamsin", "Then we should leave it where it is."),
        ("Merle", "My lantern has gone out again."),
        ("Tamsin", "Take mine, I can see in the dark."),
        ("Merle", "Is that a heron or a man?"),
        ("Tamsin", "It is old Wystan, the eel catcher."),
        ("Merle", "He owes me a knife with a bone handle."),
    ),
    "mine": (
        ("Piers", "Captain Orla has closed the lower gallery."),
        ("Agnes", "Because of the gas?"),
        ("Piers", "Because of the knocking. Nobody works there now."),
        ("Agnes", "My uncle heard it before he vanished."),
        ("Piers", "When was that?"),
        ("Agnes", "Two winters ago, on the night of the first snow."),
        ("Piers", "I have his helmet here, it hung at the shaft."),
        ("Agnes", "There is a mark on it, a hand with six fingers."),
        ("Piers", "I saw the same mark on the seal of the guild."),
        ("Agnes", "Then the guild knows what is down there."),
        ("Piers", "Brother Hew keeps the guild's books."),
        ("Agnes", "He drinks at the Green Kettle every evening."),
        ("Piers", "I will buy him a beer and ask."),
    ),
}
QUESTIONS = (
    ("fen", "Who sank the bell?", "single-hop", ["fen:6"]),
    ("fen", "How much does the ferryman want for the crossing?", "single-hop", ["fen:0"]),
    ("fen", "What does Wystan owe Merle?", "multi-hop", ["fen:11; fen:12"]),
    ("mine", "When did the uncle of Agnes vanish?", "temporal", ["mine:5", "mine:3"]),
    ("mine", "Where is the mark with six fingers?", "multi-hop", ["mine:7", "mine:8"]),
    ("mine", "Who keeps the books of the guild?", "single-hop", ["mine:10"]),
    ("mine", "What is the moon made of?", "single-hop", ["mine:99"]),
)


def small_data(directory: Path) -> Path:
    data = directory / "data"
    data.mkdir()
    turns = [
        {"campaign": name, "session": f"s0{n // 8}", "turn": n % 8, "id": f"{name}:{n}", "speaker": speaker}
        | {"text": text, "at": None if name == "mine" else f"2024-03-0{1 + n // 8}T19:{n:02d}:00Z"}
        for name, said in TALK.items()
        for n, (speaker, text) in enumerate(said)
    ]
    questions = [
        {"id": f"q{n}", "campaign": name, "question": text, "category": category, "evidence": evidence}
        for n, (name, text, category, evidence) in enumerate(QUESTIONS)
    ]
    for file, lines in (("turns", turns), ("questions", questions)):
        (data / f"{file}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return data


def test_every_arm_answers_every_question(reachable_dir: Path) -> None:
    data = small_data(reachable_dir)
    lines = data / "lines.jsonl"
    figures = figures_of(*("recall", data, "--arm", "all", "--per-question", lines, *INVENTED), temporary=reachable_dir)
    assert {*FIGURES, *TIMES, "lexical_p50_ms", "lexical_p95_ms", "load_s", "arms", "by_category"} <= set(figures)
    assert (figures["questions"], figures["turns"]) == (6, 26)
    assert (figures["without_evidence"], figures["evidence_dropped"]) == (1, 1)
    assert set(figures["by_category"]) == {"single-hop", "multi-hop", "temporal"}
    assert set(figures["arms"]) >= ARMS
    for name, arm in figures["arms"].items():
        assert {*FIGURES, *TIMES, "by_category", "vs_full"} <= set(arm), name
        assert 0 <= arm["r5"] <= arm["r10"] <= arm["r20"] <= 100, name
    assert figures["arms"]["full"]["vs_full"]["diff"] == figures["arms"]["full"]["vs_full"]["hit10"]["high"] == 0
    assert figures["arms"]["bm25"]["hit10"] > 60 and figures["hit10"] > 60
    written = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    assert len(written) == 6 * len(figures["arms"])
    assert next(line["evidence"] for line in written if line["id"] == "q2") == ["fen:11", "fen:12"]
    assert {path.name for path in reachable_dir.iterdir()} == {"data"}


def test_prefetch_covers_questions_before_the_final_transcript(reachable_dir: Path) -> None:
    data = small_data(reachable_dir)
    # What is near only in spelling is not about the question: words alone decide.
    options = ("--budget-tokens", "300", "--embeddings", "none")
    figures = figures_of("prefetch", data, *options, temporary=reachable_dir)
    assert {"coverage", "coverage_before_final", "tokens_mean", "partial_p50_ms", "partial_p99_ms"} <= set(figures)
    assert set(figures["by_category"]) == {"single-hop", "multi-hop", "temporal"}
    assert 0 < figures["coverage_before_final"] <= 100 and figures["coverage"] > 60
    assert 0 < figures["tokens_mean"] <= figures["tokens_max"] <= 300
