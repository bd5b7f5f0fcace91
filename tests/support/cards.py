"""Character cards of text role-play, as their programs write them."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any, Final

from tests.support.pictures import AUTHOR, a_picture

WANDA: Final[dict[str, Any]] = {
    "name": "Wanda Reed",
    "description": "{{char}} keeps the ferry at Oxmere. <BOT> lost an eye in the <b>river</b>, trusts {{user}} little.",
    "personality": "sly, thrifty",
    "scenario": "{{user}} asks {{char}} for passage at dusk.",
    "first_mes": '*Wanda squints over the rope.* "You want across? Two coppers."',
    "mes_example": "<START>\n{{user}}: Is it safe?\n{{char}}: She shrugs. “Safe enough.” *spits*\n<START>\n"
    "<USER>: What is it worth?\nWanda Reed: *laughs* More than you have.\nSo keep it.",
}
"""Version 1."""
BELL: Final = "The Grey Bell of Oxmere rings by itself before a flood."
BOOK: Final[dict[str, Any]] = {
    "name": "Oxmere",
    "entries": [
        {"id": 0, "keys": ["Grey Bell", "toll"], "content": f"@@depth 4\n{BELL}", "enabled": True},
        {"id": 1, "keys": ["/toll.*/i", "toll", "Zollhaus"], "comment": "Toll house", "content": "It burned down."},
        {"id": 2, "keys": ["harbour"], "content": "There is none.", "enabled": False},
    ],
}


def card(version: int, **fields: Any) -> dict[str, Any]:
    """Return a card of this version."""
    data = WANDA | fields
    return data if version == 1 else {"spec": f"chara_card_v{version}", "spec_version": f"{version}.0", "data": data}


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def text_chunk(value: object, *, keyword: bytes = b"chara", kind: bytes = b"tEXt") -> bytes:
    """Return a chunk with JSON in base64, or with bytes as they are; zTXt and iTXt are compressed."""
    packed = value if isinstance(value, bytes) else base64.b64encode(json.dumps(value).encode())
    before = {b"tEXt": b"", b"zTXt": b"\0", b"iTXt": b"\1\0\0\0"}[kind]
    return chunk(kind, keyword + b"\0" + before + (packed if kind == b"tEXt" else zlib.compress(packed)))


def png(*chunks: bytes) -> bytes:
    """Return a picture with these chunks at its end."""
    picture = a_picture("PNG").removesuffix(AUTHOR.encode())
    return picture[:-12] + b"".join(chunks) + picture[-12:]
