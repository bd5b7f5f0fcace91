from __future__ import annotations

import pytest

from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://mira:s3cret@db.example:5432/vale", "db.example/vale"),
        ("postgres://mira:a%23b%2Fc%40d@db.example/vale?sslmode=require", "db.example/vale"),
        ("postgresql://mira@/vale?host=/run/a%20b&port=5433", "/run/a b/vale"),
        ("postgresql://mira@/vale?host=/run/a b&port=5433", "/run/a b/vale"),
        ("postgresql://mira:s3cret@[2001:db8::1]:5432/vale", "[2001:db8::1]/vale"),
        ("postgresql://one:5432,two:5433/vale", "one,two/vale"),
        ("postgresql://db.example?dbname=vale", "db.example/vale"),
        ("postgresql:///vale", "a local socket/vale"),
        ("postgresql://mira:a:b:c@db.example", "db.example"),
    ],
)
def test_dsn_display_has_only_host_and_database(text: str, shown: str) -> None:
    dsn = Dsn.read(text)
    assert dsn.text == text
    assert str(dsn) == shown
    assert "mira" not in repr(dsn)


def test_each_host_of_a_dsn_is_connected_to_alone() -> None:
    dsn = Dsn.read("postgresql://mira:12@one:5432,two/vale?connect_timeout=3&target_session_attrs=read-write")
    rest = "/vale?target_session_attrs=read-write"
    assert dsn.texts == (f"postgresql://mira:12@one:5432{rest}", f"postgresql://mira:12@two{rest}")


@pytest.mark.parametrize("odd", ["#", "/", "?", "@", "[", "]", "%", "%2x", "\n", "@a:1/", "/x?y=", "?host=a&b="])
@pytest.mark.parametrize("part", ["postgresql://mira:se{}cret@db.example:5432/vale", "postgresql://mi{}ra:12@db/vale"])
def test_ambiguous_dsn_is_refused_without_being_shown(part: str, odd: str) -> None:
    with pytest.raises(InvalidInput, match="%23 for #") as refused:
        Dsn.read(part.format(odd))
    assert not any(word in str(refused.value) for word in ("mira", "cret", "vale"))


@pytest.mark.parametrize("text", ["db.example/vale", "mysql://db.example/vale", "none ", ""])
def test_an_address_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="must begin with postgresql://"):
        Dsn.read(text)


def test_server_error_is_stripped_of_user_and_password() -> None:
    dsn = Dsn.read("postgresql://mira:pa%23ss@db.example/vale")
    said = 'too many connections for role "mira" with pa#ss or pa%23ss to "vale"'
    assert dsn.hidden_in(said) == 'too many connections for role "..." with ... or ... to "vale"'


@pytest.mark.parametrize(
    "text",
    [
        " postgresql://mira:s3cret@db.example/vale",
        "postgresql://mira:s3cret@db.example/vale \n",
        "\u00a0postgresql://mira:s3cret@db.example/vale\u200b",
        "'postgresql://mira:s3cret@db.example/vale'",
        "“postgresql://mira:s3cret@db.example/vale”",
        "psql postgresql://mira:s3cret@db.example/vale",
        "psql -d 'postgresql://mira:s3cret@db.example/vale'",
        "export DATABASE_URL=postgresql://mira:s3cret@db.example/vale",
        'DATABASE_URL="postgresql://mira:s3cret@db.example/vale";',
        "jdbc:postgresql://mira:s3cret@db.example/vale",
        "postgresql+asyncpg://mira:s3cret@db.example/vale",
        "<postgresql://mira:s3cret@db.example/vale>",
    ],
)
def test_dsn_is_read_as_it_is_pasted(text: str) -> None:
    assert Dsn.read(text).text == "postgresql://mira:s3cret@db.example/vale"
