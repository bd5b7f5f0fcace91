"""Offers that are odd in one way each: what a strange browser or a hostile hand sends."""

from __future__ import annotations

from collections.abc import Iterator

_CANDIDATES = (
    "a=candidate:",
    "a=candidate:1 1 udp 1 example.com 9 typ host",
    "a=candidate:1 1 tcp 1 127.0.0.1 9 typ host",
    "a=candidate:1 1 udp -5 127.0.0.1 99999 typ host",
    "a=candidate:1 9 udp 5 127.0.0.1 9 typ srflx raddr x rport y",
    "a=candidate:1 1 udp 1 255.255.255.255 9 typ host",
    "a=candidate:1 1 udp 1 ::1 9 typ host",
    "a=candidate:1 1 udp x 127.0.0.1 0 typ host",
)
_MORE_LINES = (
    "a=ssrc:99999999999 cname:x",
    "a=ssrc:x y",
    "a=extmap:x",
    "a=rtcp:x",
    "a=rtcp-fb:x y",
    "a=fmtp:111 x=y",
    "a=msid:",
    "a=mid:é",
    "a=\x00\x00",
    "a=ice-options:",
    "a=" + "x" * 40_000,
)
_OTHER_LINES = (
    ("a=setup:", "a=setup:holdconn"),
    ("a=setup:", "a=setup:x"),
    ("a=setup:", ""),
    ("a=fingerprint:", "a=fingerprint:sha-256 ZZ:11"),
    ("a=fingerprint:", "a=fingerprint:md5000 00:11"),
    ("a=fingerprint:", "a=fingerprint:sha-256"),
    ("a=fingerprint:", ""),
    ("a=ice-ufrag:", ""),
    ("a=ice-ufrag:", "a=ice-ufrag:" + "u" * 30_000),
    ("a=rtcp-mux", ""),
    ("a=rtpmap:", ""),
    ("a=candidate:", ""),
    ("a=mid:", ""),
    ("a=mid:", "a=mid:same"),
    ("a=group:", ""),
    ("a=group:", "a=group:BUNDLE 7 8 9"),
    ("a=sctp-port:", "a=sctp-port:x"),
    ("a=sctp-port:", "a=sctp-port:0"),
    ("a=max-message-size:", "a=max-message-size:x"),
    ("o=", "o="),
    ("c=", "c=IN IP6 x"),
    ("m=audio", "m=audio"),
    ("m=audio", "m=audio x y z"),
    ("m=audio", "m=audio 0 UDP/TLS/RTP/SAVPF 96"),
    ("m=audio", "m=audiox 9 UDP/TLS/RTP/SAVPF 96"),
    ("m=application", "m=application 0 UDP/DTLS/SCTP webrtc-datachannel"),
    ("m=application", "m=application 9 UDP/BFCP *"),
    ("m=application", "m=text 9 UDP/DTLS/SCTP webrtc-datachannel"),
)


def odd_offers(sdp: str) -> Iterator[tuple[str, str]]:
    """Each with the name of what is odd.

    Args:
        sdp: An offer of audio and a data channel, in this order.
    """
    lines = sdp.split("\r\n")[:-1]
    starts = [n for n, line in enumerate(lines) if line.startswith("m=")]
    head, audio, data = lines[: starts[0]], lines[starts[0] : starts[1]], lines[starts[1] :]

    def with_lines(beginning: str, other: str) -> list[str]:
        changed = [other if line.startswith(beginning) else line for line in lines]
        return [line for line in changed if line]

    def again(part: list[str], mid: str) -> list[str]:
        return [f"a=mid:{mid}" if line.startswith("a=mid:") else line for line in part]

    def join(some: list[str]) -> str:
        return "\r\n".join(some) + "\r\n"

    yield "the data channel first", join([*head, *data, *audio])
    yield "no data channel", join([*head, *audio])
    yield "audio twice under one mid", join([*head, *audio, *audio])
    yield "audio twice", join([*head, *audio, *again(audio, "77"), *data])
    yield "two data channels", join([*head, *audio, *data, *again(data, "99")])
    video = [line.replace("m=audio", "m=video") for line in again(audio, "78")]
    yield "pictures with codecs of sound", join([*head, *audio, *video])
    yield "many media", join([*head, *(line for n in range(60) for line in again(audio, str(n)))])
    yield "one line", "m=audio 9 UDP/TLS/RTP/SAVPF 96\r\n"
    yield "other line ends", "\n".join(lines)
    for direction in ("sendonly", "recvonly", "inactive"):
        yield direction, sdp.replace("a=sendrecv", f"a={direction}")
    for candidate in _CANDIDATES:
        others = [line for line in lines if not line.startswith("a=candidate:")]
        yield candidate, join([*others[: starts[0]], others[starts[0]], candidate, *others[starts[0] + 1 :]])
    for line in _MORE_LINES:
        yield line[:30], join([*head, *audio, line, *data])
    for beginning, other in _OTHER_LINES:
        yield f"{beginning} is {other[:30] or 'missing'}", join(with_lines(beginning, other))
    flood = [f"a=candidate:{n} 1 udp {n} 127.0.0.1 {n + 1_000} typ host" for n in range(800)]
    yield "many candidates", join([*head, *audio, *flood, *data])
