"""Rows of small whole numbers, laid out once for fast products with one vector after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.onnx import open_session

if TYPE_CHECKING:
    from onnx import ModelProto

Codes = NDArray[np.int8]
Products = NDArray[np.int32]

MOST = 63
"""Numbers of rows are at most so far from 0: two products of 8 bits are added in 16 bits on
processors without instructions for such sums, and then nothing is cut off."""
MOST_ASKED = 127
"""The same for the vectors that they are multiplied with."""
_ZERO = 128


class PackedRows:
    """N rows of D whole numbers in [-63, 63], held as ONNX Runtime's matrix product wants them.

    It reads a byte a number, where a product of floats reads four; and products are exact, so that
    they are the same on every machine and however rows are put together.
    """

    def __init__(self, codes: Codes) -> None:
        self._session = open_session(_product(codes).SerializeToString(), threads=1, arena=False)
        self._count = len(codes)

    def __len__(self) -> int:
        return self._count

    def products(self, queries: Codes) -> Products:
        """Products of Q vectors (Q, D), numbers in [-127, 127], with every row, shape (Q, N)."""
        shifted = (queries.astype(np.int16) + _ZERO).astype(np.uint8)
        found = self._session.run(None, {"queries": shifted})[0]
        return np.asarray(found, dtype=np.int32)


def _product(codes: Codes) -> ModelProto:
    """The product of vectors that are to come with these rows, as a model of one step."""
    from onnx import TensorProto, helper

    count, size = codes.shape
    columns = np.ascontiguousarray(codes.T).tobytes()
    rows = helper.make_tensor("rows", TensorProto.INT8, [size, count], columns, raw=True)
    zero = helper.make_tensor("zero", TensorProto.UINT8, [], bytes([_ZERO]), raw=True)
    asked = helper.make_tensor_value_info("queries", TensorProto.UINT8, ["Q", size])
    given = helper.make_tensor_value_info("products", TensorProto.INT32, ["Q", count])
    step = helper.make_node("MatMulInteger", ["queries", "rows", "zero"], ["products"])
    graph = helper.make_graph([step], "rows", [asked], [given], [rows, zero])
    opset = helper.make_opsetid("", 13)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)
