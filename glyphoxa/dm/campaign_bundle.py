"""A whole campaign as one JSON document that another database can import. See docs/writing-a-campaign.md.

This module defines the format and what a world states to another one; `glyphoxa.adapters.postgres.world.bundle` exports
and imports. Versions 1 and 2 differ in the order of keys and tables only: version 2 begins with its format and version,
and a table follows those that it refers to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import Any, BinaryIO, Final, TypeAlias

from ijson import JSONError
from ijson.backends import python as in_pieces  # its C backend crashes on a number of thousands of digits

from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, slug
from glyphoxa.domain.knowledge import NEVER, Claim, Fact, Visibility
from glyphoxa.transcript.sessions import EPISODE
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import Cause, Event
from glyphoxa.world.state import WorldEntity, WorldState

FORMAT: Final = "glyphoxa-campaign"
VERSION: Final = 2
"""The version that is written. All versions up to it can be read."""

Row: TypeAlias = dict[str, object]
"""The columns of a row of one table, without the campaign id."""
_Event: TypeAlias = tuple[str, Any]
"""A part of a JSON text: its kind and value."""

_SECRET_SCOPES: Final = ("secret", "hidden")
_OF_SECRETS: Final = ('"secret"', '"hidden"', '"secrets"')
_IN_ALL: Final = ("format", "version", "campaign", "tables")
_OF_CAMPAIGN: Final = ("id", "language", "name")
_MAX_DEPTH: Final = 100
_NO_BUNDLE: Final = f'this is not a bundle: a bundle is a JSON object with "format": "{FORMAT}"'


@dataclass(frozen=True, slots=True)
class BundledCampaign:
    id: CampaignId
    name: str
    language: str


class BundleWriter:
    """Writes a bundle with sorted keys and one row per line, so that bundles can be compared by line.

    Attributes:
        n_rows: The number of rows written, by table.
    """

    def __init__(self, file: BinaryIO, campaign: BundledCampaign, *, with_secrets: bool) -> None:
        self.campaign = campaign
        self.n_rows: dict[str, int] = {}
        self._file = file
        self._with_secrets = with_secrets
        about = {"id": campaign.id, "language": campaign.language, "name": campaign.name}
        self._write(
            f'{{\n "format": {_json(FORMAT)},\n "version": {VERSION},\n "campaign": {_json(about)},\n "tables": {{'
        )

    def put(self, table: str, rows: Iterable[Row]) -> None:
        """Write rows of a table. All rows of a table must be written before those of the next.

        Raises:
            InvalidInput: A row contains or once contained a secret, and the bundle may have none; or the disk is full.
        """
        if table not in self.n_rows:
            self._write(("]," if self.n_rows else "") + f"\n  {_json(table)}: [")
            self.n_rows[table] = 0
        for row in rows:
            text = _json(row)
            if not self._with_secrets and any(word in text for word in _OF_SECRETS) and _tells_secret(row):
                raise InvalidInput(
                    f"campaign {self.campaign.id!r} has or had secrets, and a bundle contains the whole campaign; "
                    "nothing was written. To include them: --with-secrets; for a file without them: --player-safe"
                )
            self._write(("," if self.n_rows[table] else "") + f"\n   {text}")
            self.n_rows[table] += 1

    def finish(self) -> None:
        self._write(("]" if self.n_rows else "") + "\n }\n}\n")

    def _write(self, text: str) -> None:
        try:
            self._file.write(text.encode())
        except OSError as error:
            raise InvalidInput(f"the bundle cannot be written: {error.strerror or error}") from None


class BundleReader:
    """Reads a bundle of any version once, from its beginning to its end, in bounded memory.

    Attributes:
        n_rows: The number of rows read so far, by table.
    """

    def __init__(self, file: BinaryIO, *, tables: Collection[str]) -> None:
        self.n_rows: dict[str, int] = {}
        self._file = file
        self._known = tables
        self._head: dict[str, Any] = {}

    @property
    def campaign(self) -> BundledCampaign:
        """The campaign, after all rows were read."""
        about = self._head["campaign"]
        return BundledCampaign(CampaignId(about["id"]), about["name"], about["language"])

    def rows(self) -> Iterator[tuple[str, int, Row]]:
        """Yield each row with its table and its place in it, from 0.

        Raises:
            InvalidInput: The file is not a bundle, or of a newer version; the message says where and what is valid.
        """
        try:
            yield from self._rows(in_pieces.basic_parse(_WholeLines(self._file)))
        except (JSONError, ValueError, OSError) as error:
            table, n = next(reversed(self.n_rows.items()), ("", 0))
            where = f"after tables.{table}[{n - 1}]" if n else f"in tables.{table}" if table else "before its tables"
            if isinstance(error, OSError):
                raise InvalidInput(f"{where}: cannot be read: {error.strerror or error}") from None
            raise InvalidInput(
                f"{where}: {str(error)[:80]}: a bundle is one whole JSON object, as `glyphoxa campaign export` writes "
                "it; a campaign file (YAML) is loaded with `glyphoxa campaign load`"
            ) from None

    def _rows(self, events: Iterator[_Event]) -> Iterator[tuple[str, int, Row]]:
        if next(events)[0] != "start_map":
            raise InvalidInput(_NO_BUNDLE)
        for key in _keys(events):
            if key not in _IN_ALL:
                known = f"the bundle has {key[:40]!r}, which is unknown: {did_you_mean(key, _IN_ALL)}"
                raise InvalidInput(known if "format" in self._head else _NO_BUNDLE)
            if key == "tables":
                self._head[key] = None
                yield from self._tables(events)
            else:
                self._head[key] = _value(next(events), events)
                self._check_head(key)
        for _ in events:  # until the end of the file: nothing may follow
            pass
        for key in _IN_ALL:
            if key not in self._head:
                raise InvalidInput(f"the bundle has no {key!r}: it must have {', '.join(_IN_ALL)}")

    def _tables(self, events: Iterator[_Event]) -> Iterator[tuple[str, int, Row]]:
        _begin(events, "start_map", "tables", "an object with the rows of each table")
        for table in _keys(events):
            if table not in self._known:
                raise InvalidInput(
                    f"tables.{table[:60]} is not a table of a bundle: {did_you_mean(table, self._known)}"
                )
            self.n_rows[table] = 0
            _begin(events, "start_array", f"tables.{table}", "a list of rows")
            for event in events:
                if event[0] == "end_array":
                    break
                at = self.n_rows[table]
                row = _value(event, events)
                if not isinstance(row, dict):
                    raise InvalidInput(f"tables.{table}[{at}] is {_shown(row)}: a row must be an object")
                yield table, at, row
                self.n_rows[table] += 1

    def _check_head(self, key: str) -> None:
        value = self._head[key]
        if key == "format" and value != FORMAT:
            raise InvalidInput(_NO_BUNDLE)
        if key == "version" and (type(value) is not int or not 1 <= value <= VERSION):
            newer = "; install a newer Glyphoxa" if isinstance(value, int) and value > VERSION else ""
            raise InvalidInput(f"version is {_shown(value)}: this release reads versions 1 to {VERSION}{newer}")
        if key == "campaign":
            if not isinstance(value, dict):
                raise InvalidInput(f"campaign is {_shown(value)}: it must be an object with {', '.join(_OF_CAMPAIGN)}")
            if odd := sorted(value.keys() ^ set(_OF_CAMPAIGN)):
                raise InvalidInput(f"campaign.{odd[0][:40]}: a campaign must have {', '.join(_OF_CAMPAIGN)}, no others")
            for part, text in value.items():
                if not isinstance(text, str) or not text or not text.isprintable():
                    raise InvalidInput(f"campaign.{part} is {_shown(text)}: it must be one line of text, not empty")
            check_new_id(CampaignId(value["id"]))


@dataclass(frozen=True, slots=True)
class _WholeLines:
    """A file that is read up to ends of lines. No string goes on in the next piece, so the parser keeps none."""

    file: BinaryIO

    def read(self, size: int) -> bytes:
        return self.file.read(size) + self.file.readline() if size else b""


def check_new_id(wanted: CampaignId) -> None:
    """Raises: InvalidInput: The text is not a valid campaign id."""
    if not wanted or slug(wanted) != wanted:
        hint = f"; {slug(wanted)!r} would be" if slug(wanted) else ""
        raise InvalidInput(f"{wanted!r} is not a valid campaign id: use lower-case words joined by `-`{hint}")


def carried_over(state: WorldState, here: WorldState, cause: Cause, *, reason: str) -> list[Event]:
    """Return the events that state one world in another, as it is now, without summaries of its sessions.

    Entities with the same id, or with the same type and name, are the same. What the DM rejected here stays rejected.
    """
    known = {(each.type, each.name.casefold()): each.id for each in here.entities.values()}
    named = {
        each.id: each.id if each.id in here.entities else known.get((each.type, each.name.casefold()), each.id)
        for each in state.entities.values()
        if not each.id.startswith(f"{EPISODE}-")
    }
    entities = [state.entities[one] for one, other in named.items() if other not in here.entities]
    facts = []
    for fact in sorted(state.facts.values(), key=lambda fact: (fact.seq, fact.id)):
        if (claim := renamed(fact.claim, named)) is not None and not here.was_refused(claim.fact_id):
            # An entity that is hidden there may be public here, and then no longer hides its facts.
            ends = (fact.claim.subject, fact.claim.object or fact.claim.subject)
            there = [state.entities[end] for end in ends if named[end] in here.entities]
            visibility = reduce(Visibility.within, (each.visibility for each in there), fact.visibility)
            facts.append(fact.with_(claim=claim, visibility=visibility))
    return statements(entities, facts, cause, reason=reason)


def renamed(claim: Claim, named: Mapping[EntityId, EntityId]) -> Claim | None:
    """Return a claim about entities under other ids; None if one of them is left out, or both are one."""
    subject, entity = named.get(claim.subject), named.get(claim.object or claim.subject)
    if subject is None or entity is None:
        return None
    if claim.object is None:
        return replace(claim, subject=subject)
    return None if subject == entity else Claim.relation(subject, claim.predicate, entity)


def statements(
    entities: Iterable[WorldEntity], facts: Iterable[Fact], cause: Cause, *, reason: str = ""
) -> list[Event]:
    """Return the events that state these entities and facts in another world, without evidence from a transcript.

    Accepted facts are confirmed; others need a review there, too. Facts come in the order in which they were stated.
    """
    made: list[Event] = [
        EntityAdded(each.id, each.type, each.name, each.aliases, _here(each.visibility), "import") for each in entities
    ]
    ids: dict[FactId, FactId] = {}
    for fact in facts:
        ids[fact.id] = fact.claim.fact_id
        provenance = replace(
            fact.provenance,
            dm_confirmed=fact.status == "accepted",
            accept_at=fact.provenance.accept_at if fact.status == "accepted" else NEVER,
            origin="import",
            session_id=cause.session_id,
            utterance_id=cause.utterance_id,
            ordinal=cause.ordinal,
            at_ms=cause.at_ms,
            reason=reason,
        )
        supports = tuple(ids[support] for support in fact.supports if support in ids)
        attributes = {name: value for name, value in fact.attributes.items() if name != "evidence"}
        made.append(FactStated(fact.claim, provenance, _here(fact.visibility), fact.validity, attributes, supports))
    return made


def _here(visibility: Visibility) -> Visibility:
    """Return a visibility without the utterances of another transcript."""
    return replace(visibility, knowers=tuple(replace(each, utterance_id=None) for each in visibility.knowers))


def _tells_secret(value: object) -> bool:
    """Return whether a value contains something secret or hidden: of the world, a campaign file or an import."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if each.get("scope") in _SECRET_SCOPES or each.get("how") == "secret" or each.get("secrets"):
                return True
            if each.get("hidden") is True:
                return True
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return False


def _begin(events: Iterator[_Event], kind: str, what: str, valid: str) -> None:
    """Raises: InvalidInput: Another kind of value comes next."""
    if (first := next(events))[0] != kind:
        raise InvalidInput(f"{what} is {_shown(_value(first, events))}: it must be {valid}")


def _keys(events: Iterator[_Event]) -> Iterator[str]:
    """Yield the keys of an object that has begun; who takes one reads its value before the next."""
    seen: set[str] = set()
    for kind, key in events:
        if kind == "end_map":
            return
        if key in seen:
            raise InvalidInput(f"an object has the key {key[:40]!r} twice")
        seen.add(key)
        yield key


def _value(event: _Event, events: Iterator[_Event], depth: int = 0) -> object:
    if depth > _MAX_DEPTH:
        raise InvalidInput("the nesting is too deep: a bundle is a file written by `campaign export`")
    kind, value = event
    if kind == "start_map":
        return {key: _value(next(events), events, depth + 1) for key in _keys(events)}
    if kind == "start_array":
        items: list[object] = []
        for each in events:
            if each[0] == "end_array":
                break
            items.append(_value(each, events, depth + 1))
        return items
    if isinstance(value, Decimal):
        if not math.isfinite(number := float(value)):
            raise InvalidInput(f"it contains {str(value)[:40]}: numbers must be finite")
        return number
    return value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(", ", ": "))


def _shown(value: object) -> str:
    told = json.dumps(value, ensure_ascii=False)
    return told if len(told) <= 60 else f"{told[:60]}..."
