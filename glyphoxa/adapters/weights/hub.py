from __future__ import annotations

import http.client
import os
import threading
from collections.abc import Callable, Iterator
from typing import Final
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from glyphoxa.adapters.weights.files import PartFile
from glyphoxa.adapters.weights.manifest import WeightFile
from glyphoxa.domain.errors import Unavailable

OFFICIAL_HUB = "https://huggingface.co"
ADDRESS_VARIABLE = "HF_ENDPOINT"
TOKEN_VARIABLE = "HF_TOKEN"  # noqa: S105 - a name
"""The hub's own: where it is instead, and who asks."""
_PROBE_S = 3.0
_STALL_S: Final = 30.0
_ATTEMPTS = 4
_BLOCK = 1 << 18


class ModelHub:
    """The model hub where publishers keep their files, when it can be reached from here.

    Args:
        address: By default what HF_ENDPOINT names, else the official one.
        stall_s: A connection that brings nothing for so long has failed.
    """

    def __init__(self, address: str | None = None, *, stall_s: float = _STALL_S) -> None:
        self._address = self.label = (address or os.environ.get(ADDRESS_VARIABLE) or OFFICIAL_HUB).rstrip("/")
        self._stall_s = stall_s
        self._away: str | None = None

    @property
    def address(self) -> str:
        return self._address

    def fetch(self, wanted: WeightFile, part: PartFile, report: Callable[[int], None]) -> None:
        """Bring the part to its full size; goes on where it stopped, also when the line breaks meanwhile.

        Raises:
            Unavailable: The hub is away or refused, or the line broke too often. What was received stays in the part.
        """
        file = wanted.hub
        if file is None:
            raise Unavailable(f"has no {wanted.name}")
        if away := self._why_away():
            raise Unavailable(away)
        url = f"{self._address}/{file.repo}/resolve/{quote(file.revision, safe='')}/{quote(file.file)}"
        trouble = "the connection broke"
        for _ in range(_ATTEMPTS):
            before = part.size
            if before == wanted.size:
                return
            try:
                part.append(_body(url, part.size, wanted, stall_s=self._stall_s), report=report)
            except HTTPError as refused:
                reason = refusal(url, refused, repo=file.repo)
                if refused.code >= http.client.INTERNAL_SERVER_ERROR:
                    self._away = reason
                raise Unavailable(reason) from refused
            except (http.client.HTTPException, ConnectionError) as broken:
                trouble = str(broken)
                if part.size == before:  # nor will it give the next file
                    self._away = f"gives no bytes: {trouble}"
                    break
        if part.size != wanted.size:
            raise Unavailable(self._away or f"{url}: {part.size} of {wanted.size} bytes received: {trouble}")

    def _why_away(self) -> str:
        """Why it cannot be asked; empty when it answers. Asked once, for three seconds at most."""
        if self._away is None:
            answers: list[str] = []
            # A name server that hangs is not bound by the socket's timeout, so the question is put in a thread.
            asking = threading.Thread(target=lambda: answers.append(self._probe()), daemon=True)
            asking.start()
            asking.join(_PROBE_S + 0.5)
            self._away = answers[0] if answers else f"cannot be reached: no answer within {_PROBE_S:.0f} s"
        return self._away

    def _probe(self) -> str:
        try:
            with urlopen(Request(self._address, method="HEAD"), timeout=_PROBE_S):  # noqa: S310 - a fixed address
                return ""
        except HTTPError:
            return ""
        except (ValueError, OSError, http.client.HTTPException) as failure:
            return f"cannot be reached: {getattr(failure, 'reason', failure)}"


def hub_request(url: str, *, from_byte: int = 0) -> Request:
    """With the user's token, if there is one, which no other server is sent to where the hub redirects."""
    request = Request(url, headers={"Range": f"bytes={from_byte}-"} if from_byte else {})  # noqa: S310 - the hub's
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return request


def refusal(url: str, refused: HTTPError, *, repo: str) -> str:
    """Why the hub does not give what was asked for, and what helps."""
    if http.client.MULTIPLE_CHOICES <= refused.code < http.client.BAD_REQUEST:
        return f"{url}: redirects without an end"
    said = f"{url}: HTTP {refused.code} {refused.reason}"
    if refused.code not in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        return said
    return (
        f"{said}: {repo} is not open to everybody, or there is no such repository. If its publisher asks for consent,"
        f" give it on the repository's page, and set {TOKEN_VARIABLE} to a token of yours"
    )


def _body(url: str, have: int, wanted: WeightFile, *, stall_s: float) -> Iterator[bytes]:
    """The bytes after those that are here.

    Raises:
        HTTPError: The server refuses.
        Unavailable: It has something else.
        ConnectionError: There is no connection, or it broke or stalled.
    """
    try:
        with urlopen(hub_request(url, from_byte=have), timeout=stall_s) as answer:  # noqa: S310 - the hub's own address
            if answer.headers.get_content_type() == "text/html":
                raise Unavailable(f"{url}: answers with a web page, not the file: a login page, or that of a proxy")
            is_rest = answer.status == http.client.PARTIAL_CONTENT
            whole = answer.headers.get("Content-Range" if is_rest else "Content-Length", "").rpartition("/")[2]
            if whole.isdecimal() and int(whole) != wanted.size:
                raise Unavailable(f"{url}: is another file: {whole} bytes instead of {wanted.size}")
            # A server that sends the whole file again: what is here already is read past.
            at = have if is_rest else 0
            while at < wanted.size:
                block = answer.read(min(_BLOCK, wanted.size - at))
                if not block:
                    return
                at += len(block)
                if at > have:
                    yield block[-(at - have) :]
                    have = at
    except HTTPError:
        raise
    except OSError as broken:  # told apart from what the disk may raise while the block is written
        raise ConnectionError(str(getattr(broken, "reason", broken))) from broken
