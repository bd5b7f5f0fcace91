"""What of a language model's corrected transcript is taken over.

A model answers with a whole text and a list of what it says it replaced. Neither is trusted alone. The two
texts are laid side by side, token by token, where a declared replacement counts as one step: from what it says was
there to what it says is there now. It is such a step only

- where those very words stand, with the changed ones among them inside a doubtful span,
- if what comes instead is a known name (or an alias, a possessive, a plural of one) that sounds like it, and no other
  name does so much better,
- if the model's text really has it there.

Everything else that differs is reverted, token by token. The result is made of the original text and of names of
the gazetteer, never of the model's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glyphoxa.domain.heard import Correction
from glyphoxa.language.words import composed, fold, leads_to, words
from glyphoxa.names.doubt import Span
from glyphoxa.names.gazetteer import Gazetteer, Name
from glyphoxa.names.question import LikelyNames

_MOST_STEPS = 400_000
_LONGEST_REASON = 120
_UNDECLARED, _DECLARED = 2, 1
_PUNCTUATION = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class Declared:
    """A replacement that a model says it has made."""

    original: str
    corrected: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement that was found to be one.

    Attributes:
        start: First character that changes: a place in the text that was asked about.
        end: One past the last one.
        after: What comes there.
        heard: The whole of what was heard for the name, unchanged words included.
        name: The name it is, as the gazetteer writes it.
        likeness: How alike the two sound, 0 to 1.
    """

    start: int
    end: int
    after: str
    heard: str
    name: str
    likeness: float
    reason: str


def declared_in(answer: Mapping[str, Any]) -> list[Declared]:
    """The replacements a model declared. What has not the shape of one is left out; so are contradictions:
    a model that replaces the same words by two names knows neither.
    """
    listed = answer.get("corrections")
    found: dict[str, Declared] = {}
    refused: set[str] = set()
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, dict):
            continue
        original, corrected, reason = (item.get(key) for key in ("original", "corrected", "reason"))
        if not isinstance(original, str) or not isinstance(corrected, str) or not original.strip():
            continue
        key = " ".join(original.split()).casefold()
        if key in found and fold(found[key].corrected) != fold(corrected):
            refused.add(key)
        found.setdefault(key, Declared(original, corrected, _short(reason)))
    return [declared for key, declared in found.items() if key not in refused]


def verified(
    text: str,
    answer: str,
    declared: Sequence[Declared],
    *,
    doubtful: Sequence[Span],
    names: LikelyNames,
) -> tuple[Edit, ...]:
    """The replacements to make in `text`, in order, without overlap. See the module."""
    own, theirs = _tokens(text), [token.key for token in _tokens(answer)]
    steps: dict[int, list[_Step]] = {}
    for each in declared:
        for step in _steps(text, own, each, doubtful, names):
            steps.setdefault(step.first, []).append(step)
    if not steps or len(own) * len(theirs) > _MOST_STEPS:
        return ()
    return tuple(_alignment([token.key for token in own], theirs, steps))


def onto_raw(raw: str, corrections: Sequence[Correction], text: str, edits: Sequence[Edit]) -> tuple[Correction, ...]:
    """The corrections that lead from the raw text to the edited one, in order, without overlap.

    Args:
        corrections: What led from the raw text to `text`.
        text: What was edited.

    Raises:
        ValueError: They do not lead to it, so nobody can say where in the raw text the edits are.
    """
    if not leads_to(raw, corrections, text):
        raise ValueError("the corrections do not lead from the raw text to the one that was edited")
    later = [
        Correction(
            edit.start, edit.end, text[edit.start : edit.end], edit.after, round(edit.likeness, 3), "llm", edit.reason
        )
        for edit in edits
    ]
    return composed(raw, corrections, later)


@dataclass(frozen=True, slots=True)
class _Token:
    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Step:
    """From token `first` on, `length` tokens become `becomes`."""

    first: int
    length: int
    becomes: tuple[str, ...]
    edit: Edit


def _tokens(text: str) -> list[_Token]:
    """Words, their possessive endings, and every other character that is not space."""
    found: list[_Token] = []
    done = 0
    for word in words(text):
        found += _marks(text, done, word.start)
        stem_end = word.start + len(word.text)
        found.append(_Token(word.text.casefold(), word.start, stem_end))
        if word.tail:
            found.append(_Token(word.tail.casefold().replace("’", "'"), stem_end, word.end))
        done = word.end
    return [*found, *_marks(text, done, len(text))]


def _marks(text: str, start: int, end: int) -> Iterator[_Token]:
    for mark in _PUNCTUATION.finditer(text, start, end):
        yield _Token(mark.group(), mark.start(), mark.end())


def _steps(
    text: str, own: Sequence[_Token], declared: Declared, doubtful: Sequence[Span], names: LikelyNames
) -> Iterator[_Step]:
    """Where the declared replacement may be made."""
    known = _known(declared.corrected, names.gazetteer)
    before = [token.key for token in _tokens(declared.original)]
    if known is None or not before:
        return
    name, written = known
    becomes = _tokens(written)
    lead, trail = _common(before, [token.key for token in becomes])
    if lead + trail >= len(before) or lead + trail >= len(becomes):
        return
    after = written[becomes[lead].start : becomes[-1 - trail].end]
    likeness = names.supports(declared.original, name)
    if likeness is None:
        return
    for first in range(len(own) - len(before) + 1):
        window = own[first : first + len(before)]
        if [token.key for token in window] != before:
            continue
        start, end = window[lead].start, window[-1 - trail].end
        if any(span.start <= start and end <= span.end for span in doubtful) and text[start:end] != after:
            heard = text[window[0].start : window[-1].end]
            edit = Edit(start, end, after, heard, name.text, likeness, declared.reason)
            yield _Step(first, len(before), tuple(token.key for token in becomes), edit)


def _known(corrected: str, gazetteer: Gazetteer) -> tuple[Name, str] | None:
    """The name that this is, and how it is written; None for anything else, also for a name with more words."""
    corrected = " ".join(corrected.split())
    mentions = gazetteer.mentions(corrected)
    if len(mentions) != 1 or (mentions[0].start, mentions[0].end) != (0, len(corrected)):
        return None
    name = mentions[0].name
    spelled = fold(corrected)
    if name.kind == "learned" or not spelled.startswith(name.joined):
        return None
    if spelled == name.joined:
        return name, name.text
    return name, name.text + ("'s" if corrected[-2:-1] in ("'", "’") else "s")


def _common(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """How many tokens are equal at the beginning, and at the end of what is left."""
    shorter = min(len(before), len(after))
    lead = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    trail = next((at for at in range(shorter - lead) if before[-1 - at] != after[-1 - at]), shorter - lead)
    return lead, trail


def _alignment(own: Sequence[str], theirs: Sequence[str], steps: Mapping[int, Sequence[_Step]]) -> Iterator[Edit]:
    """The cheapest way to read one text as the other; yields the declared steps on it.

    An equal token costs nothing, a declared step 1, a token that is only in one of the texts 2. The table holds
    costs from each pair of places to the end, so that ties are decided alike from the beginning on.
    """
    n, m = len(own), len(theirs)
    cost = [[_UNDECLARED * (n - i + m - j) if i == n or j == m else 0 for j in range(m + 1)] for i in range(n + 1)]

    def taken(i: int, j: int) -> Iterator[tuple[int, _Step]]:
        for step in steps.get(i, ()):
            if tuple(theirs[j : j + len(step.becomes)]) == step.becomes:
                yield _DECLARED + cost[i + step.length][j + len(step.becomes)], step

    for i in range(n - 1, -1, -1):
        row, below = cost[i], cost[i + 1]
        for j in range(m - 1, -1, -1):
            best = _UNDECLARED + min(below[j], row[j + 1])
            if own[i] == theirs[j]:
                best = min(best, below[j + 1])
            if i in steps:
                best = min([best, *(total for total, _ in taken(i, j))])
            row[j] = best
    i = j = 0
    while i < n and j < m:
        if own[i] == theirs[j] and cost[i][j] == cost[i + 1][j + 1]:
            i, j = i + 1, j + 1
            continue
        step = next((step for total, step in taken(i, j) if total == cost[i][j]), None)
        if step is not None:
            yield step.edit
            i, j = i + step.length, j + len(step.becomes)
        elif cost[i][j] == _UNDECLARED + cost[i + 1][j]:
            i += 1
        else:
            j += 1


def _short(reason: object) -> str:
    text = " ".join(reason.split()) if isinstance(reason, str) else ""
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"
