"""A network of one machine, in which every look-up of a name and every packet to anywhere else is seen.

    with packets() as seen:      # in a process of its own, which has no other network from then on
        ...
    seen.names, seen.addresses

All addresses there are lead back to this machine, so that whoever would talk to the world tries it and is seen, and
nobody is heard.
"""

from __future__ import annotations

import ctypes
import fcntl
import ipaddress
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

NOT_PERMITTED = 77
"""Exit status of a process that may not have a network of its own."""
HERE = "10.9.9.9"
"""This machine, under an address that a browser's sound may be sent to."""

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCSIFFLAGS, _IFF_UP_AND_RUNNING = 0x8914, 0x41
_ETH_P_ALL, _OUTGOING = 0x0003, 4
_RTM_NEWADDR, _RTM_NEWROUTE, _NEW_AND_ACKNOWLEDGED = 20, 24, 0x405
_DNS = 53


class NotPermitted(Exception):
    """This process may not have a network of its own."""


@dataclass
class Seen:
    """
    Attributes:
        names: That somebody has looked up.
        addresses: Outside this machine, to which somebody has sent a packet, as address:port.
    """

    names: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)

    def note(self, packet: bytes) -> None:
        found = _destination(packet)
        if found is None:
            return
        address, port, payload = found
        if port == _DNS and (name := _name_asked(payload)):
            self.names.add(name)
        elif not address.is_loopback and str(address) != HERE:
            self.addresses.add(f"{address}:{port}")


@contextmanager
def packets() -> Iterator[Seen]:
    """
    Raises:
        NotPermitted: The machine does not permit it.
    """
    _leave_the_network()
    seen, ends = Seen(), threading.Event()
    try:
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(_ETH_P_ALL))
    except PermissionError as error:
        raise NotPermitted(f"packets cannot be watched: {error}") from None
    tap.settimeout(0.1)

    def watch() -> None:
        while True:
            try:
                packet, (_, _, kind, *_) = tap.recvfrom(65_535)
            except TimeoutError:
                if ends.is_set():
                    return
                continue
            if kind == _OUTGOING:
                seen.note(packet)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        ends.set()
        watching.join()
        tap.close()


def _leave_the_network() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWNET):
        if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
            raise NotPermitted(f"unshare: {os.strerror(ctypes.get_errno())}")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    try:
        _let_all_addresses_lead_here()
    except OSError as error:
        raise NotPermitted(f"the loopback device cannot be set up: {error}") from None


def _let_all_addresses_lead_here() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP_AND_RUNNING))
    lo = socket.if_nametoindex("lo")
    here = socket.inet_aton(HERE)
    device = _attribute(4, struct.pack("=I", lo))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        address = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, lo) + _attribute(1, here) + _attribute(2, here)
        _ask(netlink, _RTM_NEWADDR, address)
        for family in (socket.AF_INET, socket.AF_INET6):
            # ip route add local default dev lo table local
            route = struct.pack("=BBBBBBBBI", family, 0, 0, 0, 255, 3, 254, 2, 0) + device
            try:
                _ask(netlink, _RTM_NEWROUTE, route)
            except OSError:
                if family == socket.AF_INET:
                    raise  # without IPv6 nothing can be sent by it


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value


def _ask(netlink: socket.socket, kind: int, message: bytes) -> None:
    netlink.send(struct.pack("=IHHII", 16 + len(message), kind, _NEW_AND_ACKNOWLEDGED, 1, 0) + message)
    [failure] = struct.unpack_from("=i", netlink.recv(4096), 16)
    if failure:
        raise OSError(-failure, os.strerror(-failure))


def _destination(packet: bytes) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int, bytes] | None:
    """Where to, which port, and what for; of UDP and TCP. Of others the port is 0."""
    if packet[0] >> 4 == 4:
        address, protocol, body = ipaddress.ip_address(packet[16:20]), packet[9], packet[4 * (packet[0] & 15) :]
    elif packet[0] >> 4 == 6:
        address, protocol, body = ipaddress.ip_address(packet[24:40]), packet[6], packet[40:]
        if protocol == socket.IPPROTO_ICMPV6:
            return None  # the kernel's own, when a device comes up
    else:
        return None
    if protocol not in (socket.IPPROTO_UDP, socket.IPPROTO_TCP):
        return None if protocol == socket.IPPROTO_ICMP else (address, 0, b"")
    header = 8 if protocol == socket.IPPROTO_UDP else 4 * (body[12] >> 4) + 2
    return address, int.from_bytes(body[2:4]), body[header:]


def _name_asked(query: bytes) -> str:
    """
    >>> _name_asked(bytes(12) + b"\\x04vale\\x07example\\x00")
    'vale.example'
    """
    labels, at = [], 12
    while at < len(query) and query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode(errors="replace"))
        at += 1 + query[at]
    return ".".join(labels)
