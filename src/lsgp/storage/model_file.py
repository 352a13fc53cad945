# SPDX-License-Identifier: BSD-3-Clause
"""The container of saved models: text and arrays by name in one safetensors file.

A safetensors file is the length of its header (8 bytes), the header (JSON: texts under
``__metadata__``, and dtype, shape and place of every array), and the arrays, without gaps. Any
reader of the format can read ours; beyond the format,

- arrays start at multiples of 64 bytes, where the neighbor search is fastest: the header ends in
  spaces, and arrays named ``padding.*`` fill what would be gaps;
- the text ``checksum`` is the SHA-256 of the header with zeros in its place, and
  ``array_checksum`` that of the arrays' CRC-32, which is as fast as reading the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import stat
import zlib
from collections.abc import Iterable
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute import files

FORMAT = "lsgp"
#: Raised when files of the new format mean something else to an older library.
FORMAT_VERSION = 1

ALIGNMENT = 64
#: The limit of the safetensors format.
LARGEST_HEADER = 100_000_000
NO_CHECKSUM = "0" * 64
PADDING = "padding."

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
}
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}

Path = str | os.PathLike[str]


class ModelFileError(ValueError):
    """A file is not a model that can be loaded, or a model cannot be written to a file."""


class Contents(NamedTuple):
    texts: dict[str, str]
    arrays: dict[str, NDArray[Any]]


# -- writing -----------------------------------------------------------------------------------


def write_model_file(path: Path, contents: Contents) -> None:
    """Write the whole file: there is either what was there before or the new one."""
    if not files.may_be_replaced(path):
        raise ModelFileError(f"{path} is not a file. Give the path of a file to save to.")
    files.write_file(path, _pieces(contents), "model")


def _pieces(contents: Contents) -> Iterable[Any]:
    """The bytes of the file, one piece after the other."""
    arrays = {
        name: np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
        for name, array in contents.arrays.items()
    }
    texts = {
        # First, so that no other text is taken for it.
        "checksum": NO_CHECKSUM,
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        **contents.texts,
        "array_checksum": _array_checksum(arrays),
    }
    header: dict[str, object] = {"__metadata__": texts}
    pieces: list[object] = []
    end = 0
    for name, array in arrays.items():
        padding = np.zeros(-array.nbytes % ALIGNMENT, np.uint8)
        for key, part in ((name, array), (f"{PADDING}{len(header)}", padding)):
            if part is padding and not part.size:
                continue
            start, end = end, end + part.nbytes
            place = {"shape": list(part.shape), "data_offsets": [start, end]}
            header[key] = {"dtype": _DTYPE_NAMES[part.dtype], **place}
            pieces.append(part.reshape(-1).view(np.uint8).data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if len(text) > LARGEST_HEADER:
        raise ModelFileError(
            f"The settings of the model take {len(text)} bytes, more than the {LARGEST_HEADER} of "
            "the safetensors format. Save a model of fewer inputs."
        )
    checksum = hashlib.sha256(text).hexdigest()
    text = text.replace(NO_CHECKSUM.encode(), checksum.encode(), 1)
    return [len(text).to_bytes(8, "little"), text, *pieces]


def _array_checksum(arrays: dict[str, NDArray[Any]]) -> str:
    total = hashlib.sha256()
    for name in sorted(arrays):
        crc = zlib.crc32(arrays[name].reshape(-1).view(np.uint8).data)
        total.update(f"{name}:{crc:08x};".encode())
    return total.hexdigest()


# -- reading -----------------------------------------------------------------------------------


def read_model_file(path: Path, check_arrays: bool = True) -> Contents:
    """The texts of a file, and its arrays as read-only views of the mapped file.

    ``check_arrays=False`` leaves out the arrays' checksum, and with it reading all of them.
    """
    # Opening a pipe would wait for whoever writes to it.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError(f"{path} is not a file. Give the path of a saved model.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header, start = _read_header(path, file, size)
        # Plain arrays rather than np.memmap: those are passed to other processes by the name of
        # the file, where another model may lie by then.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    texts: dict[str, str] = header.pop("__metadata__")
    arrays: dict[str, NDArray[Any]] = {}
    last = 0
    for name, entry in header.items():
        try:
            array, end = _read_array(mapped, start, entry)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise damaged(path, f"the place of its array {name!r} makes no sense") from None
        last = max(last, end)
        if not name.startswith(PADDING):
            arrays[name] = array
    if start + last != size:  # arrays beyond the end are empty so far
        raise damaged(path, f"it has {size} bytes instead of {start + last}")
    if check_arrays and _array_checksum(arrays) != texts.get("array_checksum"):
        raise damaged(path, "its arrays do not have their checksum")
    return Contents(texts, arrays)


def damaged(path: Path, fact: str) -> ModelFileError:
    return ModelFileError(
        f"{path} is a damaged model file: {fact}. Copy it again from where it came, or fit and "
        "save the model again."
    )


def _foreign(path: Path, fact: str) -> ModelFileError:
    return ModelFileError(
        f"{path} is not a model file, or a damaged one: {fact}. Give the path of a file that "
        "`save` has written."
    )


def _read_header(path: Path, file: IO[bytes], size: int) -> tuple[dict[str, Any], int]:
    """The header, with its checksum checked, and where arrays start."""
    length = int.from_bytes(file.read(8), "little")
    if size < 10 or not 2 <= length <= min(size - 8, LARGEST_HEADER):
        raise _foreign(path, f"it has {size} bytes and does not start with a header")
    text = file.read(length)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise _foreign(path, "its header cannot be read") from None
    texts = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(texts, dict) or texts.get("format") != FORMAT:
        raise _foreign(path, "its header does not say that it is a model of lsgp")
    version = texts.get("format_version")
    if version != str(FORMAT_VERSION):
        raise ModelFileError(
            f"{path} has format version {version}, written by lsgp "
            f"{texts.get('library_version')}; this lsgp reads version {FORMAT_VERSION}. Update "
            "lsgp, or fit and save the model again."
        )
    checksum = str(texts.get("checksum"))
    blank = text.replace(checksum.encode(errors="replace"), NO_CHECKSUM.encode(), 1)
    if hashlib.sha256(blank).hexdigest() != checksum:
        raise damaged(path, "its header does not have its checksum")
    return header, 8 + length


def _read_array(mapped: mmap.mmap, start: int, entry: Any) -> tuple[NDArray[Any], int]:
    """The array at its place after the start, and where it ends; ValueError if it has none."""
    dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
        raise ValueError("not a place in a file")
    count = math.prod(shape)
    if begin + count * dtype.itemsize != end or (start + begin) % dtype.itemsize:
        raise ValueError("not of its size, or between two addresses")
    if start + end > len(mapped):
        return np.empty(0, dtype), end
    if count == 0:
        return np.empty(shape, dtype), end
    return np.frombuffer(mapped, dtype, count, start + begin).reshape(shape), end
