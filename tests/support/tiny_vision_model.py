"""A language model that sees, of random weights, in llama.cpp's format (GGUF): 0.3 MB in two files.

It writes random words. Of what a schema allows it prefers short texts, one item a list and no
optional field, so that its replies end.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[np.float32]]

WIDTH, HEADS, INNER, LAYERS = 32, 2, 64, 2
SIDE, PATCH = 56, 14
IMAGE_TOKENS = (SIDE // PATCH) ** 2
ALWAYS = 4.0
"""The first number of each embedding: the output's column for it says how likely a token is."""
SPACE = "\u2581"
LETTERS = [f"{SPACE}{letter}" for letter in ascii_lowercase]
"""A space and a letter in one: a space alone could also stand before a list's first item."""
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256)), SPACE, *LETTERS]
TYPES = [2, 3, 3, *(256 * [6]), *(27 * [1])]
"""GGUF's numbers for an unknown token, control tokens, bytes and the rest."""
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "
_NUMBER, _SIGNED, _FLOAT, _FLAG, _TEXT, _LIST = 4, 5, 6, 7, 8, 9


def write_tiny_vision_model(folder: Path) -> tuple[Path, Path]:
    """Write the model and its projector; return their paths."""
    draw = np.random.default_rng(7)

    def some(*shape: int, scale: float = 0.1) -> NDArray[np.float32]:
        return draw.normal(0, scale, shape).astype(np.float32)

    def ones(*shape: int) -> NDArray[np.float32]:
        return np.ones(shape, np.float32)

    embedded, output = some(len(TOKENS), WIDTH, scale=0.5), some(len(TOKENS), WIDTH, scale=0.2)
    embedded[:, 0], output[:, 0] = ALWAYS, [_liking(token) / ALWAYS for token in TOKENS]
    model = {"token_embd.weight": embedded, "output.weight": output}
    model["output_norm.weight"] = ones(WIDTH)
    seeing = {
        "v.patch_embd.weight": some(WIDTH, 3, PATCH, PATCH),
        "v.position_embd.weight": some(IMAGE_TOKENS, WIDTH),
        "mm.0.weight": some(WIDTH, WIDTH),
        "mm.0.bias": some(WIDTH),
        "mm.2.weight": some(WIDTH, WIDTH),
        "mm.2.bias": some(WIDTH),
    }
    seeing["mm.2.bias"][0] = ALWAYS
    for layer in range(LAYERS):
        for tensors, prefix, norms in (
            (model, f"blk.{layer}", ("attn_norm", "ffn_norm")),
            (seeing, f"v.blk.{layer}", ("ln1", "ln2")),
        ):
            projector = tensors is seeing
            shapes = {f"attn_{one}": (WIDTH, WIDTH) for one in "qkv"}
            shapes["attn_out" if projector else "attn_output"] = (WIDTH, WIDTH)
            shapes |= {"ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
            shapes |= {} if projector else {"ffn_gate": (INNER, WIDTH)}
            tensors |= {f"{prefix}.{name}.weight": ones(WIDTH) for name in norms}
            tensors |= {f"{prefix}.{name}.weight": some(*shape) for name, shape in shapes.items()}
            if projector:
                named = {**shapes, **dict.fromkeys(norms, (WIDTH,))}
                tensors |= {f"{prefix}.{one}.bias": some(to[0]) for one, to in named.items()}
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "tiny.gguf", folder / "mmproj-tiny.gguf"
    _write(paths[0], _of_model(), model)
    _write(paths[1], _of_projector(), seeing)
    return paths


def _liking(token: str) -> float:
    """Return how likely a token is: a text ends after a dozen letters, a list after an item."""
    if token in LETTERS:
        return -1.0
    text = chr(int(token[3:5], 16)) if token.startswith("<0x") else ""
    likings = {'"': 1.0, "{": -6.0, "}": -7.0, "]": -8.0}
    return 0.0 if text in ascii_lowercase and text else likings.get(text, -12.0)


def _of_model() -> dict[str, tuple[int, Any]]:
    numbers = {
        "context_length": 16_384,
        "embedding_length": WIDTH,
        "block_count": LAYERS,
        "feed_forward_length": INNER,
        "attention.head_count": HEADS,
        "rope.dimension_count": WIDTH // HEADS,
        "vocab_size": len(TOKENS),
    }
    return {
        "general.architecture": (_TEXT, "llama"),
        **{f"llama.{name}": (_NUMBER, value) for name, value in numbers.items()},
        "llama.attention.layer_norm_rms_epsilon": (_FLOAT, 1e-5),
        "tokenizer.ggml.model": (_TEXT, "llama"),
        "tokenizer.ggml.tokens": (_LIST, (_TEXT, TOKENS)),
        "tokenizer.ggml.scores": (_LIST, (_FLOAT, len(TOKENS) * [0.0])),
        "tokenizer.ggml.token_type": (_LIST, (_SIGNED, TYPES)),
        "tokenizer.chat_template": (_TEXT, TEMPLATE),
    }


def _of_projector() -> dict[str, tuple[int, Any]]:
    numbers = {
        "image_size": SIDE,
        "patch_size": PATCH,
        "embedding_length": WIDTH,
        "feed_forward_length": INNER,
        "projection_dim": WIDTH,
        "block_count": LAYERS,
        "attention.head_count": HEADS,
    }
    return {
        "general.architecture": (_TEXT, "clip"),
        "clip.has_vision_encoder": (_FLAG, True),
        "clip.projector_type": (_TEXT, "mlp"),
        **{f"clip.vision.{name}": (_NUMBER, value) for name, value in numbers.items()},
        "clip.vision.attention.layer_norm_epsilon": (_FLOAT, 1e-5),
        "clip.vision.image_mean": (_LIST, (_FLOAT, 3 * [0.5])),
        "clip.vision.image_std": (_LIST, (_FLOAT, 3 * [0.5])),
        "clip.use_gelu": (_FLAG, True),
    }


def _write(path: Path, fields: Mapping[str, tuple[int, Any]], tensors: Tensors) -> None:
    """Write GGUF 3: a header, the fields, the tensors' names and shapes, and their numbers.

    All are little-endian; each tensor here is a multiple of 32 bytes long, as GGUF aligns them.
    """
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields))
    for name, (kind, value) in fields.items():
        head += _packed(_TEXT, name) + struct.pack("<I", kind) + _packed(kind, value)
    offset = 0
    for name, numbers in tensors.items():
        shape = numbers.shape[::-1]
        head += _packed(_TEXT, name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += struct.pack("<IQ", 0, offset)
        offset += numbers.nbytes
    head += bytes(-len(head) % 32)
    path.write_bytes(head + b"".join(numbers.tobytes() for numbers in tensors.values()))


def _packed(kind: int, value: Any) -> bytes:
    if kind == _TEXT:
        data: bytes = value.encode()
        return struct.pack("<Q", len(data)) + data
    if kind == _LIST:
        of, items = value
        return struct.pack("<IQ", of, len(items)) + b"".join(_packed(of, one) for one in items)
    return struct.pack({_NUMBER: "<I", _SIGNED: "<i", _FLOAT: "<f", _FLAG: "<?"}[kind], value)
