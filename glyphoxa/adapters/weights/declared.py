"""What the hub says of a file before it is fetched: its size and its SHA-256."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import urlopen

from pydantic import BaseModel, ValidationError

from glyphoxa.adapters.weights.hub import hub_request, refusal
from glyphoxa.adapters.weights.manifest import HubFile, WeightFile
from glyphoxa.domain.errors import Corrupt, NotFound, Unavailable, did_you_mean

_PATIENCE_S: Final = 20.0
_MOST_PAGES: Final = 50
_NEXT: Final = re.compile(r'<([^>]+)>\s*;\s*rel="next"')


class _Lfs(BaseModel):
    oid: str
    size: int


class _Entry(BaseModel):
    type: str
    path: str
    lfs: _Lfs | None = None


def declared(address: str, wanted: HubFile, *, name: str) -> WeightFile:
    """What the hub keeps by that name now; blocks.

    Args:
        name: By which the user knows it, for messages.

    Raises:
        NotFound: The repository has no such file, or there is no such repository.
        Unavailable: The hub cannot be asked, or refuses.
        Corrupt: It answers with something else, or declares no SHA-256.
    """
    files = {entry.path: entry for entry in _entries(address, wanted, name=name) if entry.type == "file"}
    found = files.get(wanted.file)
    if found is None:
        ggufs = [path for path in files if path.endswith(".gguf")]
        there = did_you_mean(wanted.file, ggufs) if ggufs else "it has no GGUF file at all"
        raise NotFound(f"{name}: {wanted.repo} has no file {wanted.file!r}; {there}")
    if found.lfs is None:
        raise Corrupt(f"{name}: {address} declares no SHA-256 of it: it is no model's file")
    try:
        file = wanted.file.rpartition("/")[2]
        return WeightFile(name=file, size=found.lfs.size, sha256=found.lfs.oid.removeprefix("sha256:"), hub=wanted)
    except ValidationError as error:
        raise Corrupt(f"{name}: {address} declares {found.lfs.oid!r}, which is no SHA-256") from error


def _entries(address: str, wanted: HubFile, *, name: str) -> Iterator[_Entry]:
    """Of the repository, page by page."""
    url = f"{address}/api/models/{quote(wanted.repo)}/tree/{quote(wanted.revision, safe='')}?recursive=true"
    for _ in range(_MOST_PAGES):
        answer, link = _asked(url, wanted, name=name)
        try:
            yield from (_Entry.model_validate(each) for each in answer)
        except (ValidationError, TypeError) as error:
            raise Corrupt(f"{name}: {address} does not answer as a model hub does") from error
        following = _NEXT.search(link)
        if following is None:
            return
        url = urljoin(url, following[1])
        if urlsplit(url).netloc != urlsplit(address).netloc:
            raise Corrupt(f"{name}: {address} sends to another server for the rest of its files")


def _asked(url: str, wanted: HubFile, *, name: str) -> tuple[Any, str]:
    try:
        with urlopen(hub_request(url), timeout=_PATIENCE_S) as answer:  # noqa: S310 - the hub's own address
            return json.loads(answer.read()), answer.headers.get("Link") or ""
    except HTTPError as refused:
        if refused.code == http.client.NOT_FOUND:
            raise NotFound(f"{name}: the hub has no model repository {wanted.repo!r}") from refused
        raise Unavailable(f"{name}: {refusal(url, refused, repo=wanted.repo)}") from refused
    except ValueError as error:
        raise Corrupt(f"{name}: {url} does not answer as a model hub does") from error
    except (URLError, http.client.HTTPException, TimeoutError, OSError) as broken:
        reason = getattr(broken, "reason", broken)
        raise Unavailable(f"{name}: the hub cannot be asked: {url}: {reason}") from broken
