"""Ways to spoil bytes and JSON, each decided by a generator of random numbers alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1)
"""Where lengths, counts and times go wrong."""

WORDS = (
    *(b"-->", b"99:59:59,999", b"00:00:00.000", b"-1", b"NaN", b"1e999", b"9" * 40, b"{", b"}"),
    *(b"[" * 3_000, b'{"a":' * 3_000, b'"', b"\\u0000", b"\\ud800", b"\x00", b"\xff\xfe", b"true"),
    *(b"<v ", b"</think>", b"```json", b"&#x110000;", b"WEBVTT", b"null", b"\r", b"\n\n"),
    *(b"extends", b'"clips": [-1]', b"Infinity", b"\xf0\x9f\x92\xa9", b"{\\an8}", b"<i>" * 500),
    b"\xef\xbb\xbf",
)
"""What means something to one of the parsers."""

SPEECH = (
    b"word ",
    b"because ",
    b"it rains because of it ",
    b"so that ",
    b"my name is ",
    b"A. ",
    b"9",
)
"""What goes on without an end where nobody sets full stops."""
LONG = (5_000, 60_000, 300_000)
"""Bytes of a line that is very long."""
OFTEN_LONG = 0.1

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, 1e308, float("nan"), "", " ", "\x00", "\ud800", "x" * 5_000),
    *([], {}, [[[]]], ["a", 1, None], {"a": {"b": []}}, "t1", "s1", "0", "1e9", "-0"),
)

Mutator = Callable[[Random, bytes, Sequence[bytes]], bytes]


def flip(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Some bits are the other way round."""
    spoilt = bytearray(data)
    for _ in range(random.randint(1, 16)):
        spoilt[_place(random, data)] ^= 1 << random.randrange(8)
    return bytes(spoilt)


def number(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """A number of 1 to 8 bytes is another one."""
    size, at = random.choice((1, 2, 4, 8)), _place(random, data)
    value = random.choice(NUMBERS) % (1 << 8 * size)
    return data[:at] + value.to_bytes(size, random.choice(("big", "little"))) + data[at + size :]


def cut_short(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """The end is missing."""
    return data[: _place(random, data)]


def cut_out(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """A block is missing."""
    start, end = _block(random, data)
    return data[:start] + data[end:]


def double(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """A block is there several times."""
    start, end = _block(random, data)
    return data[:end] + data[start:end] * random.randint(1, 8) + data[end:]


def splice(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """It goes on as another file does."""
    other = random.choice(others)
    return data[: _place(random, data)] + other[_place(random, other) :]


def blank(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """A block is all zeros, or all noise."""
    start, end = _block(random, data)
    noise = random.randbytes(end - start) if random.random() < 0.5 else bytes(end - start)
    return data[:start] + noise + data[end:]


def word(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Something stands in it that means something."""
    at = _place(random, data)
    return data[:at] + random.choice(WORDS) + data[at + random.choice((0, 0, 4)) :]


MUTATORS: tuple[Mutator, ...] = (flip, number, cut_short, cut_out, double, splice, blank, word)


def mutated(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """``data``, spoilt in one to four ways."""
    for _ in range(random.choice((1, 1, 2, 4))):
        data = random.choice(MUTATORS)(random, data or b"\x00", others)
    return data


def long_line(random: Random, data: bytes) -> bytes:
    """A few bytes of it, or what means something, over and over within one line."""
    start = _place(random, data)
    own = data[start : start + random.choice((1, 2, 3, 8, 24))].replace(b"\n", b" ")
    run = random.choice((own or b"x", *(one[:40] for one in WORDS), *SPEECH))
    at = _place(random, data)
    return data[:at] + run * (random.choice(LONG) // len(run)) + data[at:]


def mutated_text(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Text that is spoilt, or with one line that is very long."""
    if random.random() < OFTEN_LONG:
        return long_line(random, data)
    return mutated(random, data, others)


def mutated_json(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """JSON of which a few values are odd, missing or twice; else its bytes are spoilt."""
    if random.random() < OFTEN_LONG:
        return long_line(random, data)
    if random.random() < 0.4:
        return mutated(random, data, others)
    try:
        tree = json.loads(data)
    except ValueError:
        return mutated(random, data, others)
    for _ in range(random.randint(1, 4)):
        tree = _spoilt(random, tree)
    return json.dumps(tree, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")


def _spoilt(random: Random, tree: Any) -> Any:
    if isinstance(tree, dict) and tree:
        key = random.choice(list(tree))
        if random.random() < 0.15:
            return {name: value for name, value in tree.items() if name != key}
        return {**tree, key: _value(random, tree[key])}
    if isinstance(tree, list) and tree:
        at = random.randrange(len(tree))
        if random.random() < 0.15:
            return tree[:at] + tree[at + 1 :]
        if random.random() < 0.15:
            return tree + [tree[at]] * random.randint(1, 60)
        return [*tree[:at], _value(random, tree[at]), *tree[at + 1 :]]
    return random.choice(ODD)


def _value(random: Random, value: Any) -> Any:
    deeper = isinstance(value, dict | list) and value and random.random() < 0.8
    return _spoilt(random, value) if deeper else random.choice(ODD)


def _place(random: Random, data: bytes) -> int:
    """Anywhere; more often near the beginning and the end, where files say what they are."""
    if not data:
        return 0
    near = min(len(data), 1_024)
    place = random.random()
    if place < 0.3:
        return random.randrange(near)
    return len(data) - 1 - random.randrange(near) if place < 0.6 else random.randrange(len(data))


def _block(random: Random, data: bytes) -> tuple[int, int]:
    start = _place(random, data)
    return start, min(len(data), start + random.choice((1, 2, 8, 64, 512, 4_096)))
