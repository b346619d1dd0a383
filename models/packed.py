"""Rows of numbers of four bits, laid out once for fast products with one vector after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.onnx import open_session

if TYPE_CHECKING:
    from onnx import ModelProto

Codes = NDArray[np.uint8]
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

    def __init__(self, codes: Codes, steps: Floats) -> None:
        self._count = len(codes)
        filled = -self._count % TOGETHER
        codes = np.pad(codes, ((0, filled), (0, 0)), constant_values=ZERO)
        model = _product(codes, np.pad(steps, (0, filled)))
        self._session = open_session(model.SerializeToString(), threads=1, arena=False)

    def __len__(self) -> int:
        return self._count

    def products(self, query: Floats) -> Floats:
        """Products of a vector (D,) with every row, shape (N,)."""
        found = self._session.run(None, {"query": query[None].astype(np.float32, copy=False)})[0]
        return np.asarray(found[0, : self._count], dtype=np.float32)


def _product(codes: Codes, steps: Floats) -> ModelProto:
    """The product of a vector that is to come with these rows, as a model of one step."""
    from onnx import TensorProto, helper

    count, size = codes.shape
    block = min(_MOST, max(_LEAST, 1 << (size - 1).bit_length()))
    blocks = -(-size // block)
    filled = np.pad(codes, ((0, 0), (0, blocks * block - size)), constant_values=ZERO)
    pairs = filled[:, 0::2] | filled[:, 1::2] << 4
    shape = [count, blocks, block // 2]
    rows = helper.make_tensor("rows", TensorProto.UINT8, shape, pairs.tobytes(), raw=True)
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
        block_size=block,
        accuracy_level=4,
    )
    graph = helper.make_graph([step], "rows", [asked], [given], [rows, scales])
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)
