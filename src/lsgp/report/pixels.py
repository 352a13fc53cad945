# SPDX-License-Identifier: BSD-3-Clause
"""Values as pixels, and pixels as a picture inside of the page."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Viridis and cividis at even steps: even in lightness, and alike for the color-blind.
VIRIDIS = ("440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725")
CIVIDIS = ("00224e", "1a386f", "434e6c", "61656f", "7d7c78", "9b9476", "bcad6c", "dec958", "fee838")
#: From nothing to much.
BLUES = ("f7fbff", "d3e4f3", "a6cee4", "6aaed6", "3888c1", "1562a9", "083c7d", "08306b")


def colorize(image: Array, low: float, high: float, colors: Sequence[str]) -> NDArray[np.uint8]:
    """Pixels (rows, columns, 3) of values between low and high; beyond them the end colors."""
    table = np.array([[int(c[k : k + 2], 16) for k in (0, 2, 4)] for c in colors], dtype=float)
    spread = high - low if high > low else 1.0
    share = np.clip(np.nan_to_num((image - low) / spread), 0.0, 1.0)
    at = np.linspace(0.0, 1.0, len(colors))
    return np.stack([np.interp(share, at, table[:, c]) for c in range(3)], axis=-1).astype(np.uint8)


def png_data(pixels: NDArray[np.uint8]) -> str:
    """A picture of shape (rows, columns, 3) as the data address of a PNG file."""
    n_rows, n_columns = pixels.shape[:2]
    # Every row begins with the number of its filter: 0, none.
    raw = b"".join(b"\0" + pixels[row].tobytes() for row in range(n_rows))

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", n_columns, n_rows, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    png += chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()
