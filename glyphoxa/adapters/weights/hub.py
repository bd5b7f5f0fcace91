from __future__ import annotations

import http.client
import os
import threading
from collections.abc import Iterator
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from glyphoxa.adapters.weights.files import PartFile
from glyphoxa.adapters.weights.manifest import WeightFile
from glyphoxa.adapters.weights.progress import Progress
from glyphoxa.domain.errors import Unavailable

OFFICIAL_HUB = "https://huggingface.co"
ADDRESS_VARIABLE = "HF_ENDPOINT"
TOKEN_VARIABLE = "HF_TOKEN"  # noqa: S105 - a name
"""The hub's own: where it is instead, and who asks."""
_PROBE_S = 3.0
_STALL_S = 30.0
_ATTEMPTS = 4
_BLOCK = 1 << 18


class ModelHub:
    """The model hub where publishers keep their files, when it can be reached from here.

    Args:
        address: By default what HF_ENDPOINT names, else the official one.
    """

    def __init__(self, address: str | None = None) -> None:
        self._address = self.label = (address or os.environ.get(ADDRESS_VARIABLE) or OFFICIAL_HUB).rstrip("/")
        self._reachable: bool | None = None

    @property
    def address(self) -> str:
        return self._address

    def is_reachable(self) -> bool:
        """Asked once, for three seconds at most."""
        if self._reachable is None:
            answers: list[bool] = []
            # A name server that hangs is not bound by the socket's timeout, so the question is put in a thread.
            asking = threading.Thread(target=lambda: answers.append(self._answers()), daemon=True)
            asking.start()
            asking.join(_PROBE_S + 0.5)
            self._reachable = any(answers)
        return self._reachable

    def offers(self, wanted: WeightFile) -> bool:
        return wanted.hub is not None and self.is_reachable()

    def fetch(self, wanted: WeightFile, part: PartFile, progress: Progress) -> None:
        """Bring the part to its full size; goes on where it stopped, also when the line breaks meanwhile.

        Raises:
            Unavailable: The hub refused, or the line broke too often. What was received stays in the part.
        """
        file = wanted.hub
        if file is None:
            raise Unavailable(f"{wanted.name}: is not on the hub")
        part.forget_pieces()
        if part.size > wanted.size:
            part.discard()
        url = f"{self._address}/{file.repo}/resolve/{quote(file.revision, safe='')}/{quote(file.file)}"
        trouble: Exception = EOFError("the line broke")
        for _ in range(_ATTEMPTS):
            before = part.size
            if before == wanted.size:
                return
            progress.begin(part.label, size=wanted.size, have=before)
            try:
                part.append(_body(url, part, wanted), advance=progress.advance)
            except HTTPError as refused:
                raise Unavailable(refusal(url, refused, repo=file.repo)) from refused
            except (URLError, http.client.HTTPException, TimeoutError, ConnectionError) as broken:
                trouble = broken
        if part.size != wanted.size:
            raise Unavailable(f"{url}: {part.size} of {wanted.size} bytes received: {trouble}") from trouble

    def _answers(self) -> bool:
        try:
            with urlopen(Request(self._address, method="HEAD"), timeout=_PROBE_S):  # noqa: S310 - a fixed address
                return True
        except HTTPError:
            return True
        except (URLError, OSError, http.client.HTTPException):
            return False


def hub_request(url: str, *, from_byte: int = 0) -> Request:
    """With the user's token, if there is one, which no other server is sent to where the hub redirects."""
    request = Request(url, headers={"Range": f"bytes={from_byte}-"} if from_byte else {})  # noqa: S310 - the hub's
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return request


def refusal(url: str, refused: HTTPError, *, repo: str) -> str:
    """Why the hub does not give what was asked for, and what helps."""
    said = f"{url}: HTTP {refused.code} {refused.reason}"
    if refused.code not in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        return said
    return (
        f"{said}: {repo} is not open to everybody, or there is no such repository. If its publisher asks for consent,"
        f" give it on the repository's page, and set {TOKEN_VARIABLE} to a token of yours"
    )


def _body(url: str, part: PartFile, wanted: WeightFile) -> Iterator[bytes]:
    have = part.size
    with urlopen(hub_request(url, from_byte=have), timeout=_STALL_S) as answer:  # noqa: S310 - the hub's own address
        if have and answer.status != http.client.PARTIAL_CONTENT:
            # It sends the whole file again: what is there already is read past.
            _skip(answer, have)
        received = have
        while received < wanted.size:
            block = _read(answer, min(_BLOCK, wanted.size - received))
            if not block:
                return
            received += len(block)
            yield block


def _skip(answer: http.client.HTTPResponse, size: int) -> None:
    while size > 0:
        block = _read(answer, min(_BLOCK, size))
        if not block:
            raise ConnectionError("the answer is shorter than what was received before")
        size -= len(block)


def _read(answer: http.client.HTTPResponse, most: int) -> bytes:
    try:
        return answer.read(most)
    except OSError as broken:  # told apart from what the disk may raise while the block is written
        raise ConnectionError(str(broken)) from broken
