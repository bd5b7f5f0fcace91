"""Addresses that `glyphoxa serve` prints, on machines with several networks: each case has a network of its own."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

from tests.support.programs import program

LOCAL_NETWORK = "ip link add wlan0 type veth peer name away; ip addr add 192.168.1.20/24 dev wlan0"
UP = "ip link set wlan0 up; ip link set away up; ip route add default via 192.168.1.1"
DOCKER = "ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up"
VPN = "ip link add wg0 type veth peer name far; ip addr add 10.8.0.2/24 dev wg0; ip link set wg0 up; ip link set far up"
FULL_TUNNEL = f"{VPN}; ip route add 0.0.0.0/1 dev wg0; ip route add 128.0.0.0/1 dev wg0"
IPV6 = "ip addr add 2001:db8:5::20/64 dev wlan0 nodad; ip route add default via 2001:db8:5::1 dev wlan0"
PROGRAM = """
import json, sys
from glyphoxa.web.serving import bind, reached_hosts, url_of
with bind(sys.argv[1], 7860) as listener:
    print(json.dumps([url_of(listener, scheme="https", host=host) for host in reached_hosts(listener)]))
"""


def reached(host: str, *networks: str) -> list[str]:
    """The addresses for players, on a machine with these networks."""
    program("ip", package="iproute2")
    alone = ["unshare", "--map-root-user", "--net", "sh", "-ec"]
    if subprocess.run([*alone, "ip link add b0 type bridge"], capture_output=True, check=False).returncode:
        pytest.skip("this process may not have a network of its own")
    ours = shlex.join([sys.executable, "-c", PROGRAM, host])
    done = subprocess.run([*alone, "; ".join(["ip link set lo up", *networks, ours])], capture_output=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("host", "networks", "expected"),
    [
        ("0.0.0.0", (), []),
        ("::", (), []),
        ("127.0.0.1", (LOCAL_NETWORK, UP), []),
        ("0.0.0.0", (LOCAL_NETWORK, UP), ["192.168.1.20"]),
        ("192.168.1.20", (LOCAL_NETWORK, UP, DOCKER), ["192.168.1.20"]),
        ("0.0.0.0", (DOCKER, LOCAL_NETWORK, UP), ["192.168.1.20", "172.17.0.1"]),
        ("0.0.0.0", (LOCAL_NETWORK, UP, VPN), ["192.168.1.20", "10.8.0.2"]),
        ("0.0.0.0", (LOCAL_NETWORK, UP, FULL_TUNNEL), ["10.8.0.2", "192.168.1.20"]),
        ("0.0.0.0", (LOCAL_NETWORK, "ip link set wlan0 up"), ["192.168.1.20"]),
        ("::", (LOCAL_NETWORK, UP), ["192.168.1.20"]),
        ("::", (LOCAL_NETWORK, UP, IPV6), ["192.168.1.20", "[2001:db8:5::20]"]),
    ],
    ids=[
        "no network",
        "no network, IPv6",
        "this machine only",
        "one network",
        "one address",
        "Docker",
        "VPN",
        "VPN for everything",
        "no router",
        "IPv6 socket without IPv6",
        "both",
    ],
)
def test_address_on_the_way_out_is_printed_first(host: str, networks: tuple[str, ...], expected: list[str]) -> None:
    assert reached(host, *networks) == [f"https://{address}:7860/" for address in expected]
