"""`glyphoxa table invite` and `table audit`, as a DM types them, and what `glyphoxa serve` says of its entrance."""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import ifaddr
import pytest
from ifaddr import get_adapters

from glyphoxa.app.engines import read_playable
from glyphoxa.cli.main import main
from glyphoxa.cli.table_server import address_of, entrance_to
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.web.serving import bind

CAMPAIGN = Path(__file__).parents[1] / "support" / "campaign.yaml"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "glyphoxa.yaml"
    file.write_text(f"campaign: {CAMPAIGN}\ndata_dir: {tmp_path / 'data'}\nserver: {{port: 0}}\n")
    return file


def options(**given: object) -> argparse.Namespace:
    nothing = {"public_url": None, "is_open": False, "allow_host": [], "tls_cert": None, "tls_key": None}
    return argparse.Namespace(**{**nothing, "tls_self_signed": False, **given})


def opened(config: Path, host: str = "127.0.0.1", **given: object) -> tuple[str, list[str]]:
    """Open and close the entrance to the campaign's table. Returns where players open it, and what the DM is told."""
    settings = read_settings(config)
    assert settings.campaign is not None
    campaign = read_playable(settings.campaign, settings).campaign
    with bind(host, 0) as listener:
        address = address_of(options(**given), settings, listener)
    with entrance_to(campaign, address, settings) as (entrance, lines):
        assert entrance.is_secure == address.players.startswith("https:")
        return address.players, lines


def players(config: Path) -> list[str]:
    settings = read_settings(config)
    assert settings.campaign is not None
    return [player.id for player in read_playable(settings.campaign, settings).campaign.players]


def test_a_table_tells_a_link_for_each_and_they_are_the_same_tomorrow(config: Path) -> None:
    url, first = opened(config, public_url="https://table.example")
    assert url == "https://table.example/"
    _, second = opened(config, public_url="https://table.example/")
    assert len(first) == len(players(config)) + 3
    assert first[0] != second[0], "the game master's link is good once"
    assert first[1:] == second[1:]
    assert all("https://table.example/join#" in line for line in first[:-1])


def test_the_command_shows_the_links_that_the_table_told(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, told = opened(config, public_url="https://table.example")
    assert main(["table", "invite", "--config", str(config)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert {line.rpartition(" ")[2] for line in shown} == {line.rpartition(" ")[2] for line in told[1:-2]}
    assert main(["table", "invite", "dm", "spectator", "--qr", "--config", str(config)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in shown if ": " in line] == ["dm", "spectator"]
    assert len(shown) > 20, "two codes"


def test_calendar_address_is_shown_on_request(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened(config, public_url="https://table.example")
    assert main(["table", "invite", "--calendar", "--config", str(config)]) == 0
    shown = capsys.readouterr().out.splitlines()
    addresses = [line.partition("calendar: ")[2] for line in shown if line.startswith("  calendar: ")]
    assert len(set(addresses)) == len(players(config))
    assert all(address.startswith("https://table.example/calendar.ics?token=") for address in addresses)


def test_a_revoked_link_is_replaced_and_both_are_in_the_audit(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, told = opened(config)
    player = players(config)[0]
    assert main(["table", "invite", "--revoke", player, "--config", str(config)]) == 0
    shown = capsys.readouterr().out
    assert "/join#" in shown
    assert shown.rpartition(" ")[2].strip() not in "\n".join(told)
    assert main(["table", "audit", "--config", str(config)]) == 0
    log = capsys.readouterr().out
    for words in ("opened", "closed", "revoked", "invited", f"player:{player}"):
        assert words in log


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nobody"], "no player 'nobody' in this campaign"),
        (["--revoke"], "--revoke needs a name"),
    ],
)
def test_a_wrong_name_is_told_the_valid_ones_and_nothing_changes(
    config: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    opened(config)
    assert main(["table", "invite", *arguments, "--config", str(config)]) == 1
    assert problem in capsys.readouterr().err


def test_a_table_that_was_never_opened_has_no_links(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", "invite", "--config", str(config)]) == 1
    assert "has no links yet: open it with `glyphoxa serve`, without --open" in capsys.readouterr().err
    assert main(["table", "audit", "--config", str(config)]) == 0
    assert "by a link yet; with --open, nothing is recorded" in capsys.readouterr().out


# What is said of the address


@pytest.mark.parametrize(("host", "given"), [("0.0.0.0", {}), ("127.0.0.1", {"public_url": "https://table.example/"})])
def test_a_table_without_links_is_for_this_machine_alone(config: Path, host: str, given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="--open admits everybody"):
        opened(config, host, is_open=True, **given)


def test_a_table_without_links_tells_none(config: Path) -> None:
    assert opened(config, is_open=True)[1] == []


def test_other_machines_have_no_microphone_without_https_and_this_is_said(config: Path) -> None:
    _, lines = opened(config, "0.0.0.0")
    assert "WARNING" in lines[-1]
    assert "--tls-self-signed" in lines[-1]


@pytest.mark.parametrize("given", [{}, {"public_url": "http://localhost:7860/"}], ids=["default", "container"])
def test_links_for_this_machine_only_name_the_remedy(
    config: Path, given: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    _, lines = opened(config, **given)
    assert lines[-1].startswith("These links work on this machine only.")
    assert "--host 0.0.0.0 --tls-self-signed" in lines[-1]
    assert "--public-url" in lines[-1]
    assert main(["table", "invite", "--config", str(config)]) == 0
    assert capsys.readouterr().err.strip() == lines[-1]


def test_links_without_a_remark_are_printed_alone(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened(config, public_url="https://table.example")
    assert main(["table", "invite", "--config", str(config)]) == 0
    assert capsys.readouterr().err == ""


def test_other_addresses_of_the_machine_are_named(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker = [ifaddr.Adapter("docker0", "docker0", [ifaddr.IP("172.17.0.1", 16, "docker0")])]
    monkeypatch.setattr(ifaddr, "get_adapters", lambda: [*get_adapters(), *docker])
    _, lines = opened(config, "0.0.0.0", tls_self_signed=True)
    assert "https://172.17.0.1:" in "".join(line for line in lines if "other addresses" in line)


def test_wsl_is_named_with_the_remedy(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "release", lambda: "5.15.153.1-microsoft-standard-WSL2")
    assert any("networkingMode=mirrored" in line for line in opened(config, "0.0.0.0", tls_self_signed=True)[1])
    assert not any("mirrored" in line for line in opened(config)[1])


def test_a_certificate_made_here_is_told_by_its_fingerprint(config: Path) -> None:
    url, lines = opened(config, "0.0.0.0", tls_self_signed=True)
    assert url.startswith("https://")
    assert lines[-1].startswith("the certificate's fingerprint (SHA-256) is ")


def test_a_wrong_public_address_is_refused(config: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a URL"):
        opened(config, public_url="table.example")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("server: {public_url: table.example}\n")
    with pytest.raises(InvalidInput, match="public_url"):
        read_settings(wrong)
    assert Settings().server.public_url is None
