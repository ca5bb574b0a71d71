"""Event files that TensorBoard reads, without its package."""

from __future__ import annotations

import os
import socket
import struct
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["SummaryWriter"]

_TABLE: list[int] = []
for _n in range(256):
    for _ in range(8):
        _n = (_n >> 1) ^ (0x82F63B78 if _n & 1 else 0)
    _TABLE.append(_n)


def _checksum(data: bytes) -> int:
    """CRC-32C, turned and shifted as the format wants it."""
    c = 0xFFFFFFFF
    for b in data:
        c = _TABLE[(c ^ b) & 255] ^ (c >> 8)
    c ^= 0xFFFFFFFF
    return ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _field(number: int, value: Any) -> bytes:
    """A field of a protocol buffer: an integer, a double, or bytes."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else bytes(value)
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _array(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.detach().numpy() if hasattr(x, "detach") else x)


class SummaryWriter:
    """Writes scalars, texts, histograms and images for TensorBoard into a folder.

    ```
    import tempfile
    from chainrule.utils.tensorboard import SummaryWriter
    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        writer.add_scalar("loss", 0.5, 1)
    ```
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:
        name = log_dir or os.path.join("runs", time.strftime("%b%d_%H-%M-%S_") + socket.gethostname() + comment)
        self.log_dir, self.purge_step = str(name), purge_step
        self._suffix, self._writers = filename_suffix, dict[str, SummaryWriter]()
        folder = Path(self.log_dir)
        folder.mkdir(parents=True, exist_ok=True)
        made, at = 0, f"events.out.tfevents.{int(time.time()):010}.{socket.gethostname()}.{os.getpid()}"
        while (path := folder / f"{at}.{made}{filename_suffix}").exists():
            made += 1
        self._file: Any = path.open("wb")
        self._record(_field(1, time.time()) + _field(3, "brain.Event:2"))

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def _record(self, event: bytes) -> None:
        if self._file is None:
            raise ValueError("SummaryWriter: it was closed")
        head = struct.pack("<Q", len(event))
        self._file.write(head + struct.pack("<I", _checksum(head)) + event + struct.pack("<I", _checksum(event)))

    def _write(self, value: bytes, step: int | None, walltime: float | None) -> None:
        when = time.time() if walltime is None else float(walltime)
        self._record(_field(1, when) + _field(2, int(step or 0)) + _field(5, _field(1, value)))

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None, new_style: bool = False, double_precision: bool = False) -> None:
        """A number at a step."""
        number = float(_array(scalar_value).reshape(-1)[0]) if _array(scalar_value).size == 1 else None
        if number is None:
            raise ValueError(f"add_scalar: '{tag}' is one number, not of shape {_array(scalar_value).shape}")
        self._write(_field(1, tag) + _varint(2 << 3 | 5) + struct.pack("<f", number), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None, walltime: float | None = None) -> None:
        """Several numbers under one name, each as a run in a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self._writers:
                self._writers[folder] = SummaryWriter(folder, filename_suffix=self._suffix)
            self._writers[folder].add_scalar(main_tag, value, global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """A text at a step."""
        tensor = _field(1, 7) + _field(2, _field(2, _field(1, 1))) + _field(8, text_string)
        about = _field(1, _field(1, "text"))
        self._write(_field(1, f"{tag}/text_summary") + _field(9, about) + _field(8, tensor), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = 64, walltime: float | None = None, max_bins: int | None = None) -> None:
        """Counts of values in some ranges."""
        x = _array(values).astype(np.float64).reshape(-1)
        if not x.size or not np.isfinite(x).all():
            raise ValueError(f"add_histogram: '{tag}' has no values, or NaN or infinity among them")
        counts, limits = np.histogram(x, bins=64 if isinstance(bins, str) else bins)
        packed = [np.asarray(a, "<f8").tobytes() for a in (limits[1:], counts)]
        numbers = [float(x.min()), float(x.max()), float(x.size), float(x.sum()), float((x * x).sum())]
        found = b"".join(_field(i + 1, n) for i, n in enumerate(numbers)) + _field(6, packed[0]) + _field(7, packed[1])
        self._write(_field(1, tag) + _field(5, found), global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "CHW") -> None:
        """An image: bytes, or floats from 0 to 1, with 1, 3 or 4 channels."""
        x = _array(img_tensor)
        if x.ndim != len(dataformats):
            raise ValueError(f"add_image: shape {x.shape} for dataformats={dataformats!r}")
        x = x.reshape((*x.shape, 1)) if dataformats == "HW" else np.transpose(x, [dataformats.index(c) for c in "HWC"])
        x = np.clip(x * (1 if x.dtype == np.uint8 else 255), 0, 255).astype(np.uint8)
        height, width, channels = x.shape
        if channels not in (1, 3, 4):
            raise ValueError(f"add_image: {channels} channels; there are 1, 3 or 4")
        image = _field(1, height) + _field(2, width) + _field(3, channels) + _field(4, _png(x))
        self._write(_field(1, tag) + _field(4, image), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "NCHW") -> None:
        """Several images side by side."""
        x = np.moveaxis(_array(img_tensor), dataformats.index("N"), 0)
        rest = dataformats.replace("N", "")
        self.add_image(tag, np.concatenate(list(x), axis=rest.index("W")), global_step, walltime, rest)

    def add_hparams(self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any], *_: Any, **__: Any) -> None:
        """Settings as a text, and results as numbers."""
        self.add_text("hparams", "\n".join(f"- {k}: {v}" for k, v in hparam_dict.items()))
        for tag, value in metric_dict.items():
            self.add_scalar(tag, value)

    def _absent(self, *_: Any, **__: Any) -> None:
        """An error: TensorBoard is given numbers, texts, histograms and images from here."""
        raise NotImplementedError("SummaryWriter: there are add_scalar, add_scalars, add_text, add_histogram, add_image, add_images and add_hparams")

    add_graph = add_figure = add_embedding = add_video = add_audio = add_mesh = add_pr_curve = _absent

    def flush(self) -> None:
        """Writes what is waiting to the disk."""
        for writer in (self, *self._writers.values()):
            if writer._file is not None:
                writer._file.flush()

    def close(self) -> None:
        """Ends the files."""
        for writer in (*self._writers.values(), self):
            if writer._file is not None:
                writer._file.close()
                writer._file = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _png(x: np.ndarray[Any, Any]) -> bytes:
    """An image `[height, width, channels]` of bytes as a PNG."""
    height, width, channels = x.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(x))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
