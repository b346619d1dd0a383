"""Rows of numbers of four bits, laid out once for fast products with one vector after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.onnx import open_session

if TYPE_CHECKING:
    from onnx import ModelProto

Codes = NDArray[np.uint8]
Pairs = NDArray[np.uint8]
Floats = NDArray[np.float32]

ZERO, LAST = 8, 15
"""The code of the number 0; codes go from 0 to ``LAST``."""
TOGETHER = 16
"""Rows that processors work on at once, or a multiple of that many: where a row lies among them
may show in the last bits of its product."""
_LEAST, _MOST = 16, 128
"""Numbers of a row that share a step: ONNX Runtime takes powers of two between these."""


class PackedRows:
    """N rows of D codes, and what 1 stands for in each row (N,), as ONNX Runtime wants them.

    It reads half a byte a number, where a product of floats reads four.
    """

    def __init__(self, pairs: Pairs, steps: Floats, size: int) -> None:
        """``pairs`` are those of N rows of ``size`` codes."""
        self._count = len(pairs)
        filled = -self._count % TOGETHER
        pairs = np.pad(pairs, ((0, filled), (0, 0), (0, 0)), constant_values=ZERO | ZERO << 4)
        model = _product(pairs, np.pad(steps, (0, filled)), size)
        self._session = open_session(model.SerializeToString(), threads=1, arena=False)

    def __len__(self) -> int:
        return self._count

    def products(self, query: Floats) -> Floats:
        """Products of a vector (D,) with every row, shape (N,)."""
        found = self._session.run(None, {"query": query[None].astype(np.float32, copy=False)})[0]
        return np.asarray(found[0, : self._count], dtype=np.float32)


def paired(codes: Codes) -> Pairs:
    """Rows of codes (N, D), two to a byte, in blocks of those that share a step, (N, B, S / 2)."""
    count, size = codes.shape
    block = min(_MOST, max(_LEAST, 1 << (size - 1).bit_length()))
    filled = np.pad(codes, ((0, 0), (0, -size % block)), constant_values=ZERO)
    pairs = filled[:, 0::2] | filled[:, 1::2] << 4
    return np.asarray(pairs.reshape(count, -(-size // block), block // 2))


def unpaired(pairs: Pairs, size: int) -> Codes:
    """The codes (N, D) of ``paired``."""
    count, blocks, half = pairs.shape
    codes = np.stack([pairs & LAST, pairs >> 4], axis=-1)
    return np.asarray(codes.reshape(count, blocks * 2 * half)[:, :size])


def _product(pairs: Pairs, steps: Floats, size: int) -> ModelProto:
    """The product of a vector that is to come with these rows, as a model of one step."""
    # Slow to import; small indexes do without.
    from onnx import TensorProto, helper

    count, blocks, half = pairs.shape
    rows = helper.make_tensor("rows", TensorProto.UINT8, pairs.shape, pairs.tobytes(), raw=True)
    each = np.repeat(steps.astype(np.float32), blocks)
    scales = helper.make_tensor("steps", TensorProto.FLOAT, [len(each)], each.tobytes(), raw=True)
    asked = helper.make_tensor_value_info("query", TensorProto.FLOAT, [1, size])
    given = helper.make_tensor_value_info("products", TensorProto.FLOAT, [1, count])
    step = helper.make_node(
        "MatMulNBits",
        ["query", "rows", "steps"],
        ["products"],
        domain="com.microsoft",
        K=size,
        N=count,
        bits=4,
        block_size=2 * half,
        accuracy_level=4,
    )
    graph = helper.make_graph([step], "rows", [asked], [given], [rows, scales])
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)
