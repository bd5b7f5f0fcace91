"""STUN and TURN servers: what is said of them in the settings, and the passwords that players are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.cli.table_server import servers_of
from glyphoxa.config.sections import IceServerSettings
from glyphoxa.config.settings import read_settings
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.npc.table_interface import CREDENTIALS_VALID_S, IceServer, OfferedServer

NOW = 1_800_000_000
TURN = IceServer(("turn:turn.example:3478",), "north")


def test_a_password_is_made_as_coturn_checks_it() -> None:
    # printf '1800086400:mira' | openssl dgst -sha1 -hmac north -binary | base64
    server = TURN.offered_to("mira", now_s=NOW)
    assert server.username == f"{NOW + CREDENTIALS_VALID_S}:mira" == "1800086400:mira"
    assert server.credential == "1Utc2RqHXVY4j5xK2YDByfOtp+8="
    assert server.as_json() == {
        "urls": ["turn:turn.example:3478"],
        "username": server.username,
        "credential": server.credential,
    }


def test_a_server_that_asks_for_no_password_is_given_none() -> None:
    server = IceServer(("stun:stun.example",)).offered_to("mira", now_s=NOW)
    assert server == OfferedServer(("stun:stun.example",))
    assert server.as_json() == {"urls": ["stun:stun.example"]}


def test_a_secret_comes_from_the_environment() -> None:
    settings = IceServerSettings(urls=("turn:turn.example",), secret_env="TURN_SECRET")
    assert servers_of([settings], {"TURN_SECRET": "north"}) == (IceServer(("turn:turn.example",), "north"),)
    with pytest.raises(InvalidInput, match="TURN_SECRET is not set"):
        servers_of([settings], {})


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ('[{urls: ["http://x"]}]', "ice_servers"),
        ("[{urls: []}]", "ice_servers"),
        ('[{urls: ["turn:turn.example"]}]', "set secret_env"),
        ('[{urls: ["turn:turn.example"], password: x}]', "password"),
    ],
)
def test_invalid_server_is_refused_with_its_line(tmp_path: Path, servers: str, problem: str) -> None:
    file = tmp_path / "glyphoxa.yaml"
    file.write_text(f"server:\n  ice_servers: {servers}\n")
    with pytest.raises(InvalidInput, match=rf"(?s)glyphoxa\.yaml:2.*{problem}"):
        read_settings(file)


def test_files_of_the_certificate_count_from_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "glyphoxa.yaml"
    file.write_text("server: {tls_cert: tls/cert.pem, tls_key: /etc/key.pem}\n")
    server = read_settings(file).server
    assert (server.tls_cert, server.tls_key) == (tmp_path / "tls" / "cert.pem", Path("/etc/key.pem"))
