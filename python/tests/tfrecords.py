"""TFRecord files of tf.train.Examples and SequenceExamples, made without TensorFlow."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping, Sequence

Values = Sequence[int] | Sequence[float] | Sequence[bytes]


def _make_crc_table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _make_crc_table()


def _crc(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _message(*fields: tuple[int, bytes]) -> bytes:
    return b"".join(bytes([number << 3 | 2]) + _varint(len(data)) + data for number, data in fields)


def _feature(values: Values) -> bytes:
    texts = [value for value in values if isinstance(value, bytes)]
    floats = [value for value in values if isinstance(value, float)]
    integers = [value for value in values if isinstance(value, int)]
    if texts:
        return _message((1, _message(*((1, text) for text in texts))))
    if floats:
        return _message((2, _message((1, struct.pack(f"<{len(floats)}f", *floats)))))
    return _message((3, _message((1, b"".join(map(_varint, integers)))))) if integers else b""


def _map(entries: Mapping[str, bytes]) -> bytes:
    return _message(*((1, _message((1, name.encode()), (2, value))) for name, value in entries.items()))


def example(features: Mapping[str, Values]) -> bytes:
    """A tf.train.Example; an empty list has no kind."""
    return _message((1, _map({name: _feature(values) for name, values in features.items()})))


def sequence_example(context: Mapping[str, Values], feature_lists: Mapping[str, Sequence[Values]]) -> bytes:
    """A tf.train.SequenceExample."""
    lists = {name: _message(*((1, _feature(step)) for step in steps)) for name, steps in feature_lists.items()}
    return example(context) + _message((2, _map(lists)))


def write_tfrecord(path: str | os.PathLike[str], records: Iterable[bytes]) -> None:
    with open(path, "wb") as file:
        for data in records:
            length = struct.pack("<Q", len(data))
            file.write(length + _crc(length) + data + _crc(data))
