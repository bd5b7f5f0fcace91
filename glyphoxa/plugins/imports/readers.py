"""The readers of other tools' files, by the name of the tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from glyphoxa.dm.source_world import ImportKind, SourceDocument, SourceWorld
from glyphoxa.dm.wording import secrecy_in_words
from glyphoxa.domain.errors import shown
from glyphoxa.plugins.imports.cards import read_cards
from glyphoxa.plugins.imports.csv_tables import read_csv_tables
from glyphoxa.plugins.imports.files import Progress, SourceFiles, open_source
from glyphoxa.plugins.imports.foundry import read_foundry
from glyphoxa.plugins.imports.labels import doubts_about
from glyphoxa.plugins.imports.markdown_folder import read_markdown
from glyphoxa.plugins.imports.roll20 import read_roll20
from glyphoxa.providers.extras import MODULES, need

Reader = Callable[[SourceFiles], SourceWorld]
READERS: Final[Mapping[ImportKind, Reader]] = {
    "card": read_cards,
    "csv": read_csv_tables,
    "foundry": read_foundry,
    "markdown": read_markdown,
    "roll20": read_roll20,
}
"""Each raises `InvalidInput` for files of another kind, which names what it looked for."""


def read_source(kind: ImportKind, path: Path, progress: Progress = lambda _read, _of: None) -> SourceWorld:
    """Read a world. It takes seconds: call it in a thread.

    Raises:
        NotFound: There is no such file or folder.
        InvalidInput: It cannot be read; the message names the file inside it and what would be valid.
        NotInstalled: A library is missing.
    """
    if kind != "csv":
        need(*MODULES["exchange"], by=f"import {kind}", extra="exchange")
    # A source is known by the name of its folder, which "." and ".." do not have.
    path = path if path.name.strip(".") else path.resolve()
    with open_source(path, progress) as files:
        world = READERS[kind](files)
        # An upload lies in a temporary folder, which means nothing to whoever reads its remarks.
        remarks = [each.replace(str(path), path.name or str(path)) for each in world.remarks]
        if files.left_out:
            left_out = shown(", ".join(files.left_out))
            remarks.append(f"links, devices, unreadable folders and files of the same name are not read: {left_out}")
        documents = tuple(map(_with_doubts, world.documents))
        return replace(world, documents=documents, remarks=(*remarks, *secrecy_in_words(documents)))


def _with_doubts(document: SourceDocument) -> SourceDocument:
    if document.hidden:
        return document
    visible = (*document.attributes.values(), *(text.text for text in document.texts if not text.hidden))
    return replace(document, doubts=doubts_about("\n".join(visible)))
