"""Who agreed that their voice is heard, when, and to which text: a file of this user, one JSON object a line.

Nothing in it is ever changed: who agrees or withdraws adds a line, and the last one of a person at a seat counts.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, PlayerId, slug
from glyphoxa.web.access.consent_text import ConsentText
from glyphoxa.web.access.private_files import open_private, private_directory
from glyphoxa.web.access.roles import Grant, Grants, Role


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


def consents_path(data_dir: Path, campaign: CampaignId) -> Path:
    return data_dir / "access" / f"{slug(campaign) or 'campaign'}-{campaign.encode().hex()[:16]}.consents.jsonl"


class ConsentRegister:
    """The consents of one campaign, to one text, whatever language it was shown in.

    Args:
        path: As `consents_path` makes it.
        text: What is agreed to now.
        others: The same in other languages.
        now_s: Unix time in seconds.

    Raises:
        InvalidInput: The file cannot be read.
    """

    def __init__(
        self,
        path: Path,
        text: ConsentText,
        *,
        others: Iterable[ConsentText] = (),
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._now_s = now_s
        self._writing = threading.Lock()
        self.text = text
        self._texts = {each.digest: each for each in (text, *others)}
        self._latest = {(each.who, each.player): each for each in _read(path)}

    def text_in(self, language: str) -> ConsentText:
        """The text of now in this language, else in the campaign's."""
        return next((each for each in self._texts.values() if each.language == language), self.text)

    def text_of(self, digest: str) -> ConsentText | None:
        """The text of now that has this digest, in whatever language."""
        return self._texts.get(digest)

    def given_at_ms(self, grants: Grants, player: PlayerId) -> int | None:
        """When this person agreed to the text of now at that seat; None: they did not, or withdrew it."""
        found = self._latest.get((sitter(grants, player), player))
        return found.at_ms if found is not None and self.holds(found) else None

    def withdraw_nowait(self, grants: Grants, player: PlayerId) -> None:
        """In force at once; `decide` keeps it."""
        self._latest.pop((sitter(grants, player), player), None)

    def decide(self, grants: Grants, player: PlayerId, *, agrees: bool, text: ConsentText | None = None) -> Consent:
        """Kept on disk when it returns. Blocks: call it in a thread.

        Args:
            text: What they were shown; None: the campaign's.

        Raises:
            InvalidInput: It cannot be written; nothing was decided.
        """
        now_ms = int(self._now_s() * 1_000)
        who = sitter(grants, player)
        shown = text or self.text
        consent = Consent(now_ms, who, player, agrees, shown.digest, shown.whole)
        with self._writing:
            self._append(consent)
            self._latest[who, player] = consent
        return consent

    def current(self) -> list[Consent]:
        """The last decision of each, by seat: also those about an earlier text."""
        return sorted(self._latest.values(), key=lambda each: (each.player, each.who))

    def holds(self, consent: Consent) -> bool:
        """Whether it lets a microphone be heard now."""
        return consent.agrees and consent.digest in self._texts

    def _append(self, consent: Consent) -> None:
        try:
            private_directory(self._path.parent)
            with open_private(self._path, "a") as file:
                # A line that a killed process left torn must not swallow this one: it begins on a line of its own.
                file.write(f"\n{json.dumps(asdict(consent))}\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InvalidInput(f"consent cannot be kept: {error.strerror}; tell your game master") from error


def sitter(grants: Grants, player: PlayerId) -> str:
    """Who sits there by these links: the player themself, else the game master in their place."""
    own = Grant(Role.PLAYER, player)
    return own.key if own in grants.held else Role.DM.value


def sends_sound(sdp: str) -> bool:
    """Whether an offer would have the server hear (or see) its browser. What is not clear counts as sound."""
    directions: list[set[str]] = []
    for line in sdp.splitlines():
        if line.startswith("m="):
            directions.append({"data"} if line.startswith("m=application") else set())
        elif directions and (said := line.partition(":")[0].strip()) in _DIRECTIONS:
            directions[-1].add(said)
    return any("data" not in each and (not each or each & {"a=sendrecv", "a=sendonly"}) for each in directions)


def _read(path: Path) -> list[Consent]:
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    found = []
    for line in lines:
        try:
            found.append(_CONSENT.validate_json(line))
        except ValidationError:
            continue
    return found
