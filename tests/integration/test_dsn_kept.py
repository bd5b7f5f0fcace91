"""A DSN holds a password: no piece of it stands in anything that the product says."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loguru import logger

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.cli.main import main
from glyphoxa.domain.errors import InvalidInput, Unavailable
from tests.support.proof import n_examples

_PIECE = 4
_SPECIAL = "#/?@[%"
# Letters that no message is made of, so that a piece found is a piece shown.
PASSWORDS = st.builds(
    lambda before, special, after: before + special + after,
    st.text(f"QXZJK{_SPECIAL}:=]&", min_size=4, max_size=12),
    st.sampled_from("#/?@["),
    st.text(f"QXZJK{_SPECIAL}:=]&", min_size=4, max_size=12),
)

VERBS = (
    ("config", "check", "SETTINGS"),
    ("serve", "--config", "SETTINGS", "--port", "0", "--campaign", "no-such-file.yaml"),
    ("campaign", "list", "--config", "SETTINGS"),
    ("campaign", "calendar", "--config", "SETTINGS"),
    ("facts", "review", "--config", "SETTINGS"),
    ("show", "entities", "--config", "SETTINGS"),
    ("show", "sessions", "--config", "SETTINGS"),
    ("recall", "Who?", "--npc", "Mira", "--config", "SETTINGS"),
    ("show", "turns", "--config", "SETTINGS"),
    ("show", "said", "--config", "SETTINGS"),
    ("models", "voices", "--config", "SETTINGS"),
    ("names", "list", "--config", "SETTINGS"),
    ("worker", "reindex", "--config", "SETTINGS"),
)


@contextmanager
def everything_said() -> Iterator[io.StringIO]:
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        sink = logger.add(said, level="TRACE", backtrace=True, diagnose=True)
        try:
            yield said
        finally:
            with suppress(ValueError):  # a verb configures the log again
                logger.remove(sink)


def shown_pieces(password: str, said: str) -> set[str]:
    pieces = {password[at : at + _PIECE] for at in range(len(password) - _PIECE + 1)}
    return {piece for piece in pieces if piece in said}


def a_file(directory: str, content: str) -> str:
    path = Path(directory, "settings.yaml")
    path.write_text(content)
    return str(path)


def said_by(verb: tuple[str, ...], file: str) -> tuple[int, str]:
    with everything_said() as said:
        code = main([file if word == "SETTINGS" else word for word in verb])
    return code, said.getvalue()


@settings(max_examples=n_examples(25))
@given(PASSWORDS, st.sampled_from(VERBS))
def test_no_verb_shows_a_piece_of_a_password_that_is_not_encoded(password: str, verb: tuple[str, ...]) -> None:
    dsn = f"postgresql://keeper:{password}@127.0.0.1:1/vale"
    with tempfile.TemporaryDirectory() as directory:
        for written in (json.dumps(dsn), dsn):
            file = a_file(directory, f"memory:\n  postgres_dsn: {written}\n")
            code, said = said_by(verb, file)
            assert shown_pieces(password, said) == set()
            assert "Traceback" not in said
            assert "keeper" not in said
            assert code == 1


@settings(max_examples=8)
@given(PASSWORDS, st.sampled_from([verb for verb in VERBS if verb[0] not in ("config", "serve", "worker", "models")]))
def test_no_verb_shows_a_piece_of_a_password_that_no_server_takes(password: str, verb: tuple[str, ...]) -> None:
    encoded = quote(password, safe="")
    with tempfile.TemporaryDirectory() as directory:
        file = a_file(directory, f'memory:\n  postgres_dsn: "postgresql://keeper:{encoded}@127.0.0.1:1/vale"\n')
        code, said = said_by(verb, file)
    assert shown_pieces(password, said) | shown_pieces(encoded, said) == set()
    assert "the database is away" in said
    assert "keeper" not in said
    assert code == 1


def test_config_check_says_what_is_wrong_with_a_dsn_and_shows_the_host_of_a_right_one(tmp_path: Path) -> None:
    wrong = a_file(str(tmp_path), "memory:\n  postgres_dsn: postgresql://keeper:QX/JZ@127.0.0.1/vale\n")
    code, said = said_by(("config", "check", "SETTINGS"), wrong)
    assert code == 1
    assert said.startswith(f"glyphoxa: {wrong}:2: memory.postgres_dsn: is not of the form")
    assert "%2F for /" in said
    right = a_file(str(tmp_path), "memory:\n  postgres_dsn: postgresql://keeper:QX%2FJZ@127.0.0.1/vale\n")
    _, said = said_by(("config", "check", "SETTINGS"), right)
    assert "PostgreSQL at 127.0.0.1/vale" in said
    assert "keeper" not in said


@pytest.mark.parametrize(
    "written",
    [
        "memory: postgresql://keeper:QXZJ@127.0.0.1/vale",
        "memory: {postgresql://keeper:QXZJ@127.0.0.1/vale: 1}",
        "memory: {postgres_dsn: [postgresql://keeper:QXZJ@127.0.0.1/vale]}",
        "postgresql://keeper:QXZJ@127.0.0.1/vale",
        "memory: {embedding_dimensions: postgresql://keeper:QXZJ@127.0.0.1/vale}",
        "memory: {postgres_dsn: postgresql://keeper:QXZJ}@127.0.0.1/vale}",
        "memory: {postgres_dsn: postgresql://keeper:Q,QXZJ@127.0.0.1/vale}",
        "memory:\n  postgres_dsn: postgresql://keeper:Q #QXZJ@127.0.0.1/vale",
        "memory:\n  postgres_dsn: postgresql://keeper:Q: QXZJ@127.0.0.1/vale",
    ],
)
def test_one_that_stands_in_the_wrong_place_is_not_shown_either(tmp_path: Path, written: str) -> None:
    code, said = said_by(("config", "check", "SETTINGS"), a_file(str(tmp_path), written))
    assert code == 1
    assert "QXZJ" not in said


async def test_a_database_is_not_opened_by_a_dsn_with_two_readings() -> None:
    with pytest.raises(InvalidInput, match=r"memory\.postgres_dsn is not of the form") as refused:
        await Database("postgresql://keeper:QXZJ#@127.0.0.1/vale").open()
    assert "QXZJ" not in str(refused.value)


async def test_parameters_that_no_client_takes_are_told_without_the_dsn() -> None:
    with pytest.raises(InvalidInput, match=r"cannot connect to 127\.0\.0\.1/vale") as refused:
        await Database("postgresql://keeper:QXZJ@127.0.0.1/vale?sslmode=KXQZ").open()
    assert not any(secret in str(refused.value) for secret in ("QXZJ", "KXQZ", "keeper"))


async def test_a_server_that_does_not_know_the_user_is_told_without_it(dsn: str) -> None:
    with everything_said() as said, pytest.raises(InvalidInput, match="the user is unknown") as refused:
        await Database(dsn.replace("//postgres@", "//keeper:QXZJ@").replace("user=postgres", "user=keeper")).open()
    assert not any(secret in said.getvalue() + str(refused.value) for secret in ("keeper", "QXZJ"))


async def test_a_database_that_is_gone_is_told_as_such(dsn: str) -> None:
    host = dsn.partition("?")[2]
    with pytest.raises(InvalidInput, match="there is no such database"):
        await Database(f"postgresql://postgres:QXZJ@/no_such?{host}").open()


async def test_an_error_of_the_network_names_the_address_and_not_the_user() -> None:
    with everything_said() as said, pytest.raises(Unavailable, match=r"away: .*127\.0\.0\.1") as away:
        await Database("postgresql://keeper:QXZJ@127.0.0.1:1/vale").open()
    assert not any(secret in said.getvalue() + str(away.value) for secret in ("keeper", "QXZJ"))
