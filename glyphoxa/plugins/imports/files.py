"""Open what a user names as a source, a file, a folder or a zip, without trusting it, and read texts and JSON in it.

Nothing is unpacked: files are read from where they lie, in pieces, and counted. What a file expands to is limited by
the bytes that really come out, whatever the zip declares. Zips inside a source are files like any other.
"""

from __future__ import annotations

import codecs
import json
import mimetypes
import os
import shutil
import stat
import struct
import tempfile
import time
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from glyphoxa.domain.errors import InvalidInput, NotFound, shown

MOST_BYTES: Final = 1 << 30
"""Limit of a file inside a source, and of all files that are read of it together."""
MOST_FILES: Final = 200_000
_MOST_WHOLE: Final = 512 << 20
"""Limit of a file that is read in one piece."""
_MOST_LINE: Final = 64 << 20
_PIECE: Final = 1 << 20
_MOST_CONTENTS: Final = 64 << 20
"""Limit of a zip's table of contents."""
_MOST_RATIO: Final = 200
"""Times that a file may be larger than in its zip, once it is larger than `_SMALL`; JSON reaches 30."""
_SMALL: Final = 16 << 20
TEMPORARY: Final = "glyphoxa-import-"
_ABANDONED_S: Final = 24 * 3600
_ENCRYPTED: Final = 0x1
_UTF8: Final = 0x800
"""Flags of a file in a zip."""
_DAMAGED: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)

MOST_VALUES: Final = 30_000_000
"""Limit of values in a JSON text; they take a few GB. An export of 100 MB has about 10 million."""
_FEW_BYTES: Final = 16
_ENCODINGS: Final = ("cp1252", "cp1250", "cp1251", "cp1253", "cp932", "gb18030", "big5", "cp949", "mac_roman")

Progress = Callable[[int, int], None]
"""Is told how many bytes were read, and of how many."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file by its path in Unicode's composed form: macOS decomposes letters, and links to the file may not.

    Attributes:
        n_stored: Its bytes as it lies there, compressed or not.
        n_expected: The bytes that reading it is said to give.
    """

    name: str
    opened: Callable[[], IO[bytes]]
    n_stored: int
    n_expected: int


class SourceFiles:
    """The files of a source: read only, each by its path inside it, with `/` between folders.

    Attributes:
        path: The path that the user named.
        names: Paths of all regular files that do not lead out of the source, sorted.
        left_out: Links, devices, folders that may not be read, and names of several files, of which the last is read.
    """

    def __init__(self, path: Path, files: Sequence[_File], left_out: Iterable[str], progress: Progress) -> None:
        self._files = {each.name: each for each in files}
        twice = (name for name, n in Counter(each.name for each in files).items() if n > 1)
        self.path = path
        self.names = tuple(sorted(self._files))
        self.left_out = tuple(sorted({*left_out, *twice}))
        self._read: dict[str, int] = {}
        self._n_read = 0
        # Files in a zip may share their bytes, so that they need more of them than there are.
        self._n_stored = path.stat().st_size if path.is_file() else sum(each.n_stored for each in self._files.values())
        media = ("image/", "audio/", "video/", "font/")
        types = {name: mimetypes.guess_type(name)[0] or "" for name in self.names}
        self._n_expected = sum(self._files[name].n_expected for name in types if not types[name].startswith(media))
        self._progress = progress

    def read(self, name: str, *, most: int = MOST_BYTES) -> bytes:
        """
        Args:
            most: Bytes; a larger file is read a little further than these, and no more.

        Raises:
            InvalidInput: It is larger than 512 MB, damaged, encrypted, or too much was read in all.
        """
        if name in self._files and most > _MOST_WHOLE < self._files[name].n_expected:
            raise InvalidInput(f"{self._place(name)} is too large: more than {_MOST_WHOLE >> 20} MB")
        return b"".join(islice(self._pieces(name, lambda file: file.read(_PIECE)), most // _PIECE + 1))

    def lines(self, name: str) -> Iterator[bytes]:
        """Read a large file line by line, as `read`."""
        for line in self._pieces(name, lambda file: file.readline(_MOST_LINE + 1)):
            if len(line) > _MOST_LINE:
                raise InvalidInput(f"{self._place(name)} has a line of more than {_MOST_LINE >> 20} MB")
            yield line

    @contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """A private copy of a folder with the files directly in it, which is deleted at the end of the block.

        Raises:
            InvalidInput: See `read`; or two of its files have the same name here.
        """
        # Processes that were killed left their copies.
        for abandoned in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
            with suppress(OSError):
                if time.time() - abandoned.lstat().st_mtime > _ABANDONED_S:
                    shutil.rmtree(abandoned, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as copy:
            for each in self.names:
                path = PurePosixPath(each)
                if str(path.parent) != (name or "."):
                    continue
                try:
                    with Path(copy, path.name).open("xb") as file:
                        for piece in self._pieces(each, lambda source: source.read(_PIECE)):
                            file.write(piece)
                except (OSError, ValueError) as error:
                    raise InvalidInput(f"{self._place(each)} cannot be copied: {error}") from None
            yield Path(copy)

    def done(self) -> None:
        """Report that everything that is needed was read."""
        self._progress(self._n_expected, self._n_expected)

    def _pieces(self, name: str, piece_of: Callable[[IO[bytes]], bytes]) -> Iterator[bytes]:
        if (found := self._files.get(name)) is None:
            raise InvalidInput(f"{self.path} has no file {name!r}")
        n = 0
        try:
            with found.opened() as file:
                while piece := piece_of(file):
                    n += len(piece)
                    self._count(found, n)
                    yield piece
        except OSError as error:
            raise InvalidInput(f"{self._place(name)} cannot be read: {error.strerror or error}") from None
        except _DAMAGED as error:
            raise InvalidInput(f"{self._place(name)} is damaged: {shown(str(error))}") from None

    def _count(self, file: _File, n: int) -> None:
        # What is read twice counts once.
        if (n_new := n - self._read.get(file.name, 0)) <= 0:
            return
        self._read[file.name] = n
        self._n_read += n_new
        if self._n_read > MOST_BYTES:
            raise InvalidInput(f"{self.path} is too large: more than {MOST_BYTES >> 20:,} MB, at {file.name!r}")
        if n > _SMALL and n > _MOST_RATIO * file.n_stored:
            raise InvalidInput(
                f"{self._place(file.name)} expands to over {_MOST_RATIO} times its size: it is no export"
            )
        if self._n_read > _SMALL and self._n_read > _MOST_RATIO * self._n_stored:
            raise InvalidInput(f"{self.path} expands to over {_MOST_RATIO} times its size: it is no export")
        self._progress(self._n_read, max(self._n_read, self._n_expected))

    def _place(self, name: str) -> str:
        return str(self.path) if name == self.path.name else f"{name!r} in {self.path}"


@contextmanager
def open_source(path: Path, progress: Progress = lambda _read, _of: None) -> Iterator[SourceFiles]:
    """
    Raises:
        NotFound: There is no such file or folder.
        InvalidInput: It is neither a file nor a folder, has too many files, or is a zip that is damaged, encrypted, or
            has paths that lead out of it.
    """
    left_out: list[str] = []
    with ExitStack() as stack:
        try:
            if path.is_dir():
                listed = _in_folder(path, left_out)
            elif not path.is_file():
                raise (InvalidInput if path.exists() else NotFound)(f"{path} is no file or folder")
            elif _starts_as_zip(path):
                file = stack.enter_context(_Bounded(path))
                listed = _in_zip(path, stack.enter_context(zipfile.ZipFile(file)), left_out)
            elif path.suffix.lower() == ".zip":
                raise InvalidInput(f"{path} is a damaged zip: it does not begin like one")
            else:
                size = path.stat().st_size
                listed = iter([_File(path.name, lambda: path.open("rb"), size, size)])
            of_source = list(islice(listed, MOST_FILES + 1))
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
        except _DAMAGED as error:
            raise InvalidInput(f"{path} is a damaged zip: {shown(str(error))}") from None
        if len(of_source) > MOST_FILES:
            raise InvalidInput(f"{path} has more than {MOST_FILES:,} files: name a smaller folder of it")
        files = SourceFiles(path, of_source, left_out, progress)
        yield files
        files.done()


class _Bounded(FileIO):
    """A zip. Its table of contents is read in one piece, before anything of it can be counted."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MOST_CONTENTS:
            raise InvalidInput(f"{self.name} has a table of contents of {size >> 20:,} MB: it is damaged or no export")
        return super().read(-1 if size is None else size) or b""


def _starts_as_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def _in_zip(path: Path, archive: zipfile.ZipFile, left_out: list[str]) -> Iterator[_File]:
    for info in archive.infolist():
        name = _name_in_zip(info)
        place, parts = f"{name!r} in {path}", PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts or (parts and ":" in parts[0]):
            raise InvalidInput(f"{place} leads out of the zip: it is damaged or hostile")
        if info.flag_bits & _ENCRYPTED:
            raise InvalidInput(f"{place} is encrypted: unpack it, and name the folder")
        if name.endswith("/") or not parts:
            continue
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            left_out.append(name)
        elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InvalidInput(f"{place} is compressed in an unusual way: unpack it, and name the folder")
        else:
            yield _File(str(PurePosixPath(name)), partial(archive.open, info), info.compress_size, info.file_size)


def _name_in_zip(info: zipfile.ZipInfo) -> str:
    """Return its path. Names that are not marked as UTF-8 often are, and those of old programs have backslashes."""
    name = info.filename
    if not info.flag_bits & _UTF8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode()
    return unicodedata.normalize("NFC", name.replace("\\", "/"))


def _in_folder(root: Path, left_out: list[str]) -> Iterator[_File]:
    for folder, folders, found in os.walk(
        root, onerror=lambda error: left_out.append(_name_of(Path(error.filename), root))
    ):
        for path in (Path(folder, each) for each in (*found, *folders)):
            status, name = path.lstat(), _name_of(path, root)
            if stat.S_ISREG(status.st_mode):
                yield _File(name, partial(_opened, path), status.st_size, status.st_size)
            elif not stat.S_ISDIR(status.st_mode):
                left_out.append(name)


def _name_of(path: Path, root: Path) -> str:
    """Return its path in the source. What is no UTF-8 in it can neither be stored nor printed."""
    return unicodedata.normalize("NFC", os.fsencode(path.relative_to(root).as_posix()).decode(errors="replace"))


def _opened(path: Path) -> IO[bytes]:
    """Open a regular file, not a link or a pipe that has taken its place since. Raises: OSError."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags))


# Texts and JSON


def encoding_of(content: bytes) -> str:
    """Return the encoding of a table: UTF-8, UTF-16, or else Windows-1252, which old versions of Excel write."""
    begins = content[:8]
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in begins:  # without a byte order mark, Latin letters show it
        return "utf-16-le" if not any(begins[1::2]) else "utf-16-be" if not any(begins[::2]) else "utf-8-sig"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "utf-8-sig" if b"\0" in content else "cp1252"
    return "utf-8-sig"


def decoded(content: bytes, name: str) -> str:
    """Return the text of a file, whatever its encoding is. Raises: InvalidInput: It is no text."""
    encoding = encoding_of(content)
    n_foreign = sum(byte > 127 for byte in content[:4096])
    if encoding == "cp1252" and n_foreign >= _FEW_BYTES:  # of fewer letters, nothing can be told
        from charset_normalizer import from_bytes

        found = from_bytes(content[: 1 << 16], cp_isolation=list(_ENCODINGS))
        best, usual = found.best(), next((each for each in found if encoding in each.could_be_from_charset), None)
        if best is not None and (usual is None or usual.chaos > best.chaos):
            encoding = best.encoding
    text = content.decode(encoding, errors="replace")
    if "\0" in text:
        raise InvalidInput(f"{name!r} is no text file")
    return text


def json_of(content: bytes, name: str) -> object:
    """Return what a JSON file holds. Raises: InvalidInput: It is no JSON, or has too many values for an export."""
    if sum(map(content.count, (b",", b"[", b"{"))) > MOST_VALUES:  # `[],[],[],` takes much more memory than its size
        raise InvalidInput(f"{name!r} has more than {MOST_VALUES:,} values: it is no export")
    try:
        try:
            return json.loads(content)
        except UnicodeDecodeError:
            return json.loads(decoded(content, name))
    except RecursionError:
        raise InvalidInput(f"{name!r} is nested too deeply") from None
    except ValueError as error:
        raise InvalidInput(f"{name!r} is damaged JSON: {shown(str(error))}") from None


def listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def objects_in(value: object) -> list[dict[str, Any]]:
    return [each for each in listed(value) if isinstance(each, dict)]


def fields_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
