import gzip
import json
from pathlib import Path

import pytest

from benchmarks import names
from glyphoxa.domain.errors import InvalidInput


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    content = {
        "names": "Eldrinax\tnpc\nIronhold\tlocation\nPhandalin\tlocation\n",
        "pairs": "elder nacks\tEldrinax\niron hold\tIronhold\nFinland\tPhandalin\nsomething else\tEldrinax\n",
        "clean": "I asked the elder about the iron.\nEldrinax lives in Ironhold.\n\n",
        "learn": "Finland\tPhandalin\n",
    }
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in content}


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, float]:
    assert names.main([str(argument) for argument in arguments]) == 0
    figures: dict[str, float] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return figures


def given_files(files: dict[str, Path]) -> list[str | Path]:
    return ["--names", files["names"], "--pairs", files["pairs"], "--clean", files["clean"]]


def test_the_last_line_holds_the_figures(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    figures = run(capsys, *given_files(files))
    assert (figures["recall"], figures["wrong"], figures["false_per_1000_words"], figures["names"]) == (50, 0, 0, 3)
    assert figures["p99_us"] >= figures["p50_us"] > 0


def test_confirmed_forms_raise_recall(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *given_files(files), "--learn", files["learn"])["recall"] == 75


def test_on_our_own_set_names_are_found_and_speech_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """The gate on false corrections per 1,000 words of clean speech."""
    shipped = run(capsys)
    assert shipped["false_per_1000_words"] == 0
    assert shipped["recall"] >= 88
    assert shipped["wrong"] <= 1


def test_the_documents_algorithm_damages_our_own_clean_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--arm", "documents")["false_per_1000_words"] > 30


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("pairs", b"elder nacks\tEldrinax\nno tab here\n", "line 2"),
        ("pairs", b"", "no line"),
        ("names", b"Eldrinax\tnpc\n\xff\xfe\tnpc\n", "line 2: not UTF-8"),
    ],
)
def test_a_bad_file_is_one_clear_error(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str], name: str, content: bytes, complaint: str
) -> None:
    files[name].write_bytes(content)
    assert names.main([*map(str, given_files(files)), "--learn", str(files["learn"])]) == 1
    error = capsys.readouterr().err
    assert str(files[name]) in error
    assert complaint in error
    assert len(error.splitlines()) == 1


def test_a_learned_pair_of_an_unknown_name_is_left_out_and_said(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files["learn"].write_text("Finland\tPhandelin\n", encoding="utf-8")
    assert names.main([*map(str, given_files(files)), "--learn", str(files["learn"])]) == 0
    told = capsys.readouterr()
    assert f"{files['learn']}, line 1: left out" in told.err
    assert "did you mean 'Phandalin'?" in told.err
    assert json.loads(told.out.splitlines()[-1])["pairs"] > 0


def test_a_missing_file_is_named(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    files["clean"].unlink()
    assert names.main([str(argument) for argument in given_files(files)]) == 1
    assert f"{files['clean']}: No such file" in capsys.readouterr().err


# -- spoken names


@pytest.fixture
def spoken(tmp_path: Path) -> Path:
    (tmp_path / "names.tsv").write_text(
        "name\ttype\tsplit\torigin\tarticle\tshort\nIronhold\tlocation\ttune\town\t\t\nGrimjaw\tnpc\ttune\town\t\t\n"
    )
    (tmp_path / "sentences.tsv").write_text(
        "a\ttune\theart\tIronhold@11-19\tWe ride to Ironhold.\nb\ttune\theart\t\tWe ride.\n"
        "c\ttune\theart\tGrimjaw@8-15\tThat is Grimjaw's axe.\n"
    )
    heard = "a\t0\t90 90 90 40 30\tWe ride to iron hold.\nb\t0\t90 90\tWe rode.\nc\t0\t\tThat is Grimjaw's axe.\n"
    (tmp_path / "heard-tiny.tsv.gz").write_bytes(gzip.compress(heard.encode()))
    return tmp_path


def test_spoken_names_are_counted_before_and_after_correction(spoken: Path) -> None:
    figures = names.spoken_figures(spoken, "tune", "shipped")
    assert (figures["names"], figures["mentions"]) == (2, 2)
    assert (figures["names_right_raw"], figures["names_right"], figures["harmed"]) == (50, 100, 0)
    assert (figures["wrong_name"], figures["false_per_1000_words"]) == (0, 0)
    assert figures["wer_raw"] == pytest.approx(30) and figures["wer"] == pytest.approx(10)
    assert list(figures["settings"]) == ["tiny"]


def test_confidences_belong_to_the_words_between_spaces() -> None:
    words = names.heard_words("Ask Hall.", "98 31")
    assert [(word.start, word.end, word.confidence) for word in words] == [(0, 3, 0.98), (4, 9, 0.31)]


def test_spoken_row_with_other_columns_is_refused_with_its_place(spoken: Path) -> None:
    (spoken / "sentences.tsv").write_text("a\ttune\n")
    with pytest.raises(InvalidInput, match=r"sentences\.tsv:1: 2 columns, expected 5"):
        names.spoken_figures(spoken, "tune", "shipped")


def test_the_spoken_set_is_large_and_no_name_is_in_both_halves() -> None:
    rows = [line.split("\t") for line in (names.SPOKEN / "sentences.tsv").read_text("utf-8").splitlines()]
    halves = dict(line.split("\t")[0:3:2] for line in (names.SPOKEN / "names.tsv").read_text("utf-8").splitlines()[1:])
    assert len({row[0] for row in rows}) == len(rows) >= 2_000
    assert 0.3 < sum(not row[3] for row in rows) / len(rows) < 0.4
    spoken_of = [(name.rpartition("@")[0], row[1]) for row in rows for name in filter(None, row[3].split(";"))]
    assert all(halves[name] == half for name, half in spoken_of)
