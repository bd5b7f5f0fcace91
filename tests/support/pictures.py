"""Small pictures, with and without metadata about their author."""

from __future__ import annotations

from io import BytesIO

from PIL import Image
from PIL.PngImagePlugin import PngInfo

AUTHOR = "Hanna Vell, 12 Mill Lane"


def a_picture(kind: str, width: int = 32, height: int = 24) -> bytes:
    """A red one that says who made it. `kind`: as Pillow names it: `PNG`, `JPEG`, `WEBP`, `GIF`."""
    image = Image.new("RGB", (width, height), (180, 40, 40))
    told = Image.Exif()
    told[0x013B] = AUTHOR  # artist
    file = BytesIO()
    if kind == "PNG":
        words = PngInfo()
        words.add_text("Author", AUTHOR)
        image.save(file, "PNG", pnginfo=words, exif=told)
    elif kind == "GIF":
        image.save(file, "GIF", comment=AUTHOR.encode())
    else:
        image.save(file, kind, exif=told, **({"comment": AUTHOR} if kind == "JPEG" else {}))
    return file.getvalue() + AUTHOR.encode()
