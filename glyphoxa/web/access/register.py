"""Where the invitations of a campaign are kept: a file of this user, shared by the server and the command line."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from loguru import logger
from pydantic import BaseModel, ConfigDict, ValidationError

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, slug
from glyphoxa.web.access.invitations import KEY_BYTES, Invitations
from glyphoxa.web.access.private_files import open_private, private_directory

T = TypeVar("T")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    key: str
    numbers: dict[str, int]
    codes: dict[str, int]
    url: str


class InvitationRegister:
    """The invitations of one campaign.

    Args:
        data_dir: The user's data directory; the file is `access/CAMPAIGN.json` in it, for this user alone.
    """

    def __init__(self, data_dir: Path, campaign: CampaignId) -> None:
        self._path = data_dir / "access" / f"{slug(campaign) or 'campaign'}-{campaign.encode().hex()[:16]}.json"
        self._known: tuple[tuple[int, int] | None, Invitations] | None = None
        self._complained: tuple[object, ...] = ()

    def current(self) -> Invitations:
        """As they are now. Cheap: the file is read again only when it has changed. One that cannot be read any more, or
        is gone, puts nobody out: what it held stays in force.

        Raises:
            InvalidInput: The file cannot be read, and never could.
        """
        try:
            stamp = self._stamp()
            if self._known is None or stamp not in (None, self._known[0]):
                invitations = self.change(lambda now: (now, now)) if stamp is None else self._read()
                self._known = stamp or self._stamp(), invitations
        except InvalidInput as error:
            if self._known is None:
                raise
            if error.args != self._complained:
                self._complained = error.args
                logger.warning("{}; the links of before stay good", error)
        return self._known[1]

    def change(self, change: Callable[[Invitations], tuple[Invitations, T]]) -> T:
        """Put others in their place, atomically.

        Args:
            change: From the invitations as they are; what it raises leaves them so.

        Returns: What `change` returned beside the new ones.

        Raises:
            InvalidInput: The file cannot be read or written.
        """
        with self._locked():
            before = Invitations(secrets.token_bytes(KEY_BYTES)) if self._stamp() is None else self._read()
            after, returned = change(before)
            self._write(after)
        return returned

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidInput(f"{self._path}: {error.strerror}") from error
        return found.st_ino, found.st_mtime_ns

    def _read(self) -> Invitations:
        try:
            kept = _File.model_validate_json(self._path.read_bytes())
            key = bytes.fromhex(kept.key)
        except OSError as error:
            raise InvalidInput(f"{self._path}: {error.strerror}") from error
        except (ValidationError, ValueError) as error:
            raise InvalidInput(
                f"{self._path} does not hold invitations; remove it, and every link is made anew"
            ) from error
        return Invitations(key, kept.numbers, kept.codes, kept.url)

    def _write(self, invitations: Invitations) -> None:
        kept = _File(
            key=invitations.key.hex(),
            numbers=dict(invitations.numbers),
            codes=dict(invitations.codes),
            url=invitations.url,
        )
        new = self._path.with_suffix(".new")
        try:
            with open_private(new, "w") as file:
                file.write(kept.model_dump_json())
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError as error:
            raise InvalidInput(f"{self._path}: {error.strerror}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = self._path.parent
        try:
            private_directory(folder)
            lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InvalidInput(f"{folder}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
