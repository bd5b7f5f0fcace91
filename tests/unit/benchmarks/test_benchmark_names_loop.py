import json
from pathlib import Path

import pytest

from benchmarks import names_loop
from benchmarks.names import Pair


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    content = {
        "names": "Eldrinax\tnpc\nPhandalin\tlocation\n",
        "pairs": "Finland\tPhandalin\tmonday\nthe elder\tEldrinax\tmonday\nFinland\tPhandalin\ttuesday\n"
        "finland's\tPhandalin\ttuesday\nthe elder\tEldrinax\ttuesday\nfin lent\tPhandalin\ttuesday\n",
        "clean": "I asked the elder about the iron.\nEldrinax lives in Phandalin.\n",
    }
    arguments: list[str] = []
    for name, text in content.items():
        (tmp_path / name).write_text(text)
        arguments += [f"--{name}", str(tmp_path / name)]
    return arguments


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert names_loop.main(arguments) == 0
    figures: dict[str, object] = json.loads(capsys.readouterr().out)
    return figures


def test_what_was_confirmed_after_one_session_is_right_in_the_next(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    figures = run(capsys, *files)
    assert (figures["sessions"], figures["mentions"], figures["seen_before"]) == (2, 6, [0, 50])
    assert figures["recall"] == [0, 75] and figures["recall_without"] == [0, 0]
    assert figures["later_recall"] == 75
    assert figures["false_per_1000_words"] == 0


def test_the_dm_heeds_the_warning_about_ordinary_words(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *files)["refused"] == 1


def test_the_same_seed_draws_the_same_sessions() -> None:
    pairs = [Pair(f"form {n}", f"name {n % 7}", n) for n in range(40)]
    first = names_loop.drawn(pairs, n_sessions=3, n_mentions=20, seed=4)
    assert first == names_loop.drawn(pairs, n_sessions=3, n_mentions=20, seed=4)
    assert [len(session) for session in first] == [20, 20, 20]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--pairs", "/no/such/file"], "/no/such/file: No such file"),
        (["--spoken", "test", "--setting", "deafening"], "no transcripts"),
        (["--in-order", "1000000"], "--in-order 1000000: there are"),
    ],
)
def test_what_cannot_be_played_is_told_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert names_loop.main(arguments) == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1
