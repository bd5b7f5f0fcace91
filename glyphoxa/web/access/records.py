"""Records about people at a table, for this user alone: the audit log, consents to be heard, and one player's erasure.

The audit log holds who came to a table, was refused, moved it or left: one JSON object a line, appended by a thread of
its own, so that a slow disk holds up nobody's voice. A flood of refusals makes one line a minute for each kind. A file
that has reached its size is set aside as `.1`, and the one set aside before is removed.

The text of the consent says what is stored, where, for how long, and who hears it. It is a pure function of the
settings: other settings make another text, and a consent to the earlier one does not hold. Consents are one JSON object
a line. Nothing in it is ever changed: who agrees or withdraws adds a line, and the last one of a person at a seat
counts.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

from loguru import logger
from pydantic import TypeAdapter, ValidationError

from glyphoxa.actors.clock import now_ms
from glyphoxa.config.settings import HERE, PROVIDERS, Settings, host_of
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.files import PRIVATE, open_private, replace_file
from glyphoxa.domain.ids import CampaignId, PlayerId, slug
from glyphoxa.providers.registry import NONE, Choice, runs_here
from glyphoxa.web.access.roles import Grant, Grants, Role

T = TypeVar("T")


def _lines(path: Path) -> list[str]:
    """Return the lines of a file; none if there is no such file. Raises: Unavailable: It cannot be read."""
    try:
        return path.read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}; try again") from error


def entries_in(path: Path, kind: TypeAdapter[T]) -> list[T]:
    """Return the entries of a file of JSON lines, oldest first. A line that a killed process left torn is skipped.

    Raises:
        Unavailable: The file cannot be read.
    """
    found = []
    for line in _lines(path):
        with suppress(ValidationError):
            found.append(kind.validate_json(line))
    return found


def links_path(data_dir: Path, campaign: CampaignId) -> Path:
    return data_dir / "access" / f"{_file_name(campaign)}.json"


def consents_path(data_dir: Path, campaign: CampaignId) -> Path:
    return data_dir / "access" / f"{_file_name(campaign)}.consents.jsonl"


def audit_path(data_dir: Path, campaign: CampaignId) -> Path:
    return data_dir / "audit" / f"{_file_name(campaign)}.jsonl"


def _file_name(campaign: CampaignId) -> str:
    return f"{slug(campaign) or 'campaign'}-{campaign.encode().hex()[:16]}"


# -- the audit log

MAX_BYTES = 4 * 1024 * 1024
ONE_REFUSAL_EVERY_S = 60.0


class AuditKind(StrEnum):
    OPENED = "opened"
    CLOSED = "closed"
    JOINED = "joined"
    SAT_DOWN = "sat down"
    CAME_BACK = "came back"
    WATCHES = "watches"
    LEFT = "left"
    REFUSED = "refused"
    MOVED = "moved"
    COMMANDED = "commanded"
    DECIDED = "decided"
    REVOKED = "revoked"
    INVITED = "invited"
    AGREED = "agreed"
    WITHDREW = "withdrew consent"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """
    Attributes:
        at_ms: Unix time.
        who: Whose link it was: `dm`, `player:mira`, `spectator`; "" of a stranger.
        what: More of it: the seat, the scene, the reason.
        address: Where the request came from; "" if it came from this machine's command line.
    """

    at_ms: int
    kind: AuditKind
    who: str = ""
    what: str = ""
    address: str = ""


_ENTRY = TypeAdapter(AuditEntry)


class AuditLog:
    """Appends to the audit log of one campaign.

    Args:
        now_s: Unix time in seconds.
    """

    def __init__(self, path: Path, *, now_s: Callable[[], float] = time.time, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._now_s = now_s
        self._max_bytes = max_bytes
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="audit")
        self._refused_at: dict[tuple[str, str], float] = {}

    def record(self, kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None:
        """Record an entry; returns at once. A failure is logged, and the table plays on."""
        now_s = self._now_s()
        if kind is AuditKind.REFUSED and self._was_told(who, what, now_s):
            return
        self._writer.submit(self._append, AuditEntry(int(now_s * 1_000), kind, who, what, address))

    def close(self) -> None:
        """Wait until everything is written."""
        self._writer.shutdown()

    def _was_told(self, who: str, what: str, now_s: float) -> bool:
        latest = {each: at for each, at in self._refused_at.items() if now_s - at < ONE_REFUSAL_EVERY_S}
        known = (who, what) in latest
        self._refused_at = latest if known else {**latest, (who, what): now_s}
        return known

    def _append(self, entry: AuditEntry) -> None:
        line = json.dumps(asdict(entry), ensure_ascii=False) + "\n"
        try:
            if self._path.exists() and self._path.stat().st_size + len(line) > self._max_bytes:
                self._path.replace(self._path.with_suffix(".jsonl.1"))
            with open_private(self._path, "a") as file:
                file.write(line)
        except OSError as error:
            logger.warning("{}: {}; who joins and leaves is not written down", self._path, error.strerror)


def read_audit(path: Path) -> list[AuditEntry]:
    """Return the entries of a log, oldest first. As `entries_in`."""
    return [*entries_in(path.with_suffix(".jsonl.1"), _ENTRY), *entries_in(path, _ENTRY)]


# -- consent to be heard: the text that a player is shown before their microphone opens, and who agreed to it

_CATALOGUES: Final = Path(__file__).parents[1] / "static" / "words"

CONSENT_LANGUAGES: Final = ("en", "de")


@dataclass(frozen=True, slots=True)
class ConsentText:
    """
    Attributes:
        language: Language of the text: `en` or `de`.
        lines: A sentence or two each.
        agree: On the button that agrees.
        decline: On the one that does not.
    """

    language: str
    title: str
    lines: tuple[str, ...]
    agree: str
    decline: str

    @property
    def whole(self) -> str:
        """Return the complete text that is agreed to."""
        return "\n".join((self.title, *self.lines))

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the text in hexadecimal."""
        return sha256(self.whole.encode()).hexdigest()


def consent_text(settings: Settings, *, language: str, tables: Sequence[str] = ()) -> ConsentText:
    """Return what is agreed to.

    Args:
        language: The campaign's, as a tag. English where there is no text in it.
        tables: Names of the seats of shared microphones.
    """
    tag = language.partition("-")[0].lower()
    known = tag if tag in CONSENT_LANGUAGES else "en"
    words = _words(known)
    lines = [words["heard"], words["kept"].format(where=_where(settings, words)), _how_long(settings, words)]
    lines += (
        f"{words[setting]}: {_hearers(settings, section, words)}."
        for setting, (section, is_on) in PROVIDERS.items()
        if is_on(settings) and settings.chosen(section).name != NONE
    )
    others = settings.recipients()
    # In the order of the catalogue: another order makes another text, to which nobody has agreed.
    received = [(setting if setting in words else "plugin", setting) for setting, names in others.items() if names]
    lines += (
        words[key].format(names=", ".join(sorted(others[setting])), setting=setting)
        for key, setting in sorted(received, key=lambda each: [*words].index(each[0]))
    )
    lines += (words["shared"].format(seat=table) for table in tables)
    lines += [words["without"], words["change"]]
    return ConsentText(known, words["title"], tuple(lines), words["agree"], words["decline"])


@cache
def _words(language: str) -> Mapping[str, str]:
    """Return the catalogue's texts about consent; those named after a section say what its provider hears."""
    catalogue = json.loads((_CATALOGUES / f"{language}.json").read_text("utf-8"))
    return {key.removeprefix("consent."): text for key, text in catalogue.items() if key.startswith("consent.")}


def _hearers(settings: Settings, section: str, words: Mapping[str, str]) -> str:
    """Name each provider of a section once, including fallbacks."""
    return "; ".join(dict.fromkeys(_hearer(section, choice, words) for choice in settings.chain(section)))


def _hearer(section: str, choice: Choice, words: Mapping[str, str]) -> str:
    host = host_of(choice.base_url)
    if runs_here(section, choice.name) or host in HERE:
        return words["local"]
    return words["goes"].format(who=f"{choice.name} ({host})" if host else choice.name)


def _how_long(settings: Settings, words: Mapping[str, str]) -> str:
    days = settings.privacy.retain_days
    return words["long"] if days is None or not settings.has_memory else words["days"].format(days=days)


def _where(settings: Settings, words: Mapping[str, str]) -> str:
    dsn = settings.memory.postgres_dsn
    if not settings.has_memory:
        return words["files"]
    try:
        host = Dsn.read(dsn).host if dsn else ""
    except InvalidInput:
        host = "?"
    is_here = not host or host in HERE or host.startswith("/")
    return words["embedded"] if is_here else words["database"].format(host=host)


@dataclass(frozen=True, slots=True)
class Consent:
    """
    Attributes:
        at_ms: Unix time.
        who: Whose link it was: `player:mira`, `dm`.
        player: At whose seat.
        agrees: False: it was withdrawn.
        text: The very text that was shown.
    """

    at_ms: int
    who: str
    player: PlayerId
    agrees: bool
    digest: str
    text: str


_DIRECTIONS = frozenset({"a=sendrecv", "a=sendonly", "a=recvonly", "a=inactive"})
_CONSENT = TypeAdapter(Consent)


class ConsentRegister:
    """The consents of one campaign to the current text, in any of its languages.

    Args:
        path: A result of `consents_path`.
        text: The present text of the consent.
        others: The same in other languages.

    Raises:
        Unavailable: The file cannot be read.
    """

    def __init__(self, path: Path, text: ConsentText, *, others: Iterable[ConsentText] = ()) -> None:
        self._path = path
        self._writing = threading.Lock()
        self.text = text
        self._texts = {each.digest: each for each in (text, *others)}
        self._latest = {(each.who, each.player): each for each in entries_in(path, _CONSENT)}

    def text_in(self, language: str) -> ConsentText:
        """Return the current text in this language, else in the campaign's."""
        return next((each for each in self._texts.values() if each.language == language), self.text)

    def text_of(self, digest: str) -> ConsentText | None:
        """Return the current text with this digest, in whatever language."""
        return self._texts.get(digest)

    def given_at_ms(self, grants: Grants, player: PlayerId) -> int | None:
        """Return when this person agreed to the current text at that seat; None if they did not, or withdrew."""
        found = self._latest.get((sitter(grants, player), player))
        return found.at_ms if found is not None and self.holds(found) else None

    def withdraw_nowait(self, grants: Grants, player: PlayerId) -> None:
        """Withdraw a consent at once; `decide` stores it."""
        self._latest.pop((sitter(grants, player), player), None)

    def decide(self, grants: Grants, player: PlayerId, *, agrees: bool, text: ConsentText) -> None:
        """Store a decision about the text that was shown on disk. Blocks: call it in a thread.

        Raises:
            InvalidInput: It cannot be written; nothing was decided.
        """
        who = sitter(grants, player)
        consent = Consent(now_ms(), who, player, agrees, text.digest, text.whole)
        with self._writing:
            self._append(consent)
            self._latest[who, player] = consent

    def current(self) -> list[Consent]:
        """Return the last decision of each person, by seat, including those about an earlier text."""
        return sorted(self._latest.values(), key=lambda each: (each.player, each.who))

    def holds(self, consent: Consent) -> bool:
        """Return whether a consent allows a microphone to be heard now."""
        return consent.agrees and consent.digest in self._texts

    def _append(self, consent: Consent) -> None:
        try:
            with open_private(self._path, "a") as file:
                # A line that a killed process left torn must not swallow this one: it begins on a line of its own.
                file.write(f"\n{json.dumps(asdict(consent))}\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InvalidInput(f"consent cannot be saved: {error.strerror}; tell your game master") from error


def sitter(grants: Grants, player: PlayerId) -> str:
    """Return who sits there by these links: the player, else the game master in their place."""
    own = Grant(Role.PLAYER, player)
    return own.key if own in grants.held else Role.DM.value


def sends_sound(sdp: str) -> bool:
    """Return whether an offer sends sound or pictures to the server. An unclear offer counts as sound."""
    directions: list[set[str]] = []
    for line in sdp.splitlines():
        if line.startswith("m="):
            directions.append({"data"} if line.startswith("m=application") else set())
        elif directions and (said := line.partition(":")[0].strip()) in _DIRECTIONS:
            directions[-1].add(said)
    return any("data" not in each and (not each or each & {"a=sendrecv", "a=sendonly"}) for each in directions)


# -- one player


def lines_about(data_dir: Path, campaign: CampaignId, player: PlayerId) -> dict[str, list[Mapping[str, Any]]]:
    """Return a player's `consents` and `audit` lines as they are stored, oldest first."""
    audit = audit_path(data_dir, campaign)
    paths = {"consents": [consents_path(data_dir, campaign)], "audit": [audit.with_suffix(".jsonl.1"), audit]}
    return {
        name: [entry for path in of for line in _lines(path) if _is_about(player, entry := _entry(line))]
        for name, of in paths.items()
    }


def forget(data_dir: Path, campaign: CampaignId, player: PlayerId) -> int:
    """Replace lines about a player by lines that say only when something was erased. Returns their number.

    Raises:
        Unavailable: The disk fails; do it again.
    """
    audit = audit_path(data_dir, campaign)
    n_gone = 0
    for path in (consents_path(data_dir, campaign), audit.with_suffix(".jsonl.1"), audit):
        lines = _lines(path)
        kept = []
        for line, entry in zip(lines, map(_entry, lines), strict=True):
            erased = AuditEntry(entry.get("at_ms", 0), AuditKind.ERASED)
            kept.append(json.dumps(asdict(erased)) if _is_about(player, entry) else line)
        n_here = sum(before != after for before, after in zip(lines, kept, strict=True))
        if n_here:
            _replace(path, kept)
            n_gone += n_here
    return n_gone


def _entry(line: str) -> Mapping[str, Any]:
    """Return what a line holds; nothing for one that a killed process left torn."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_about(player: PlayerId, entry: Mapping[str, Any]) -> bool:
    return f"player:{player}" == entry.get("who") or player in (entry.get("player"), entry.get("what"))


def _replace(path: Path, lines: list[str]) -> None:
    try:
        for left in path.parent.glob(f"{path.name}.*.new"):  # of an erasure that was killed
            left.unlink()
        replace_file(path, "".join(f"{line}\n" for line in lines).encode(), mode=PRIVATE)
    except OSError as error:
        raise Unavailable(f"{path} cannot be rewritten: {error.strerror}; try again") from None
