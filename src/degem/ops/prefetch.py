"""Asking for memory before it is needed, from inside a numba kernel.

Example:
    >>> import numba, numpy as np
    >>> @numba.njit
    ... def second(x):
    ...     prefetch(x, 1, 0)
    ...     return x[1, 0]
    >>> second(np.array([[1.0], [2.0]]))
    2.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 16  # numbers of four bytes that the processor takes from memory at once


def _prefetch(_: Any, x: Any, row: Any, column: Any) -> tuple[Any, Callable[..., Any]]:
    """Start to load the line of ``x[row, column]`` into the caches, and go on; nothing is read, nothing is checked."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array_kind, *index_kinds = signature.args
        array = context.make_array(array_kind)(context, builder, values[0])
        place = [
            context.cast(builder, value, kind, types.intp) for value, kind in zip(values[1:], index_kinds, strict=True)
        ]
        pointer = cgutils.get_item_pointer(context, builder, array_kind, array, place, wraparound=False)
        pointer, word = builder.bitcast(pointer, ir.IntType(8).as_pointer()), ir.IntType(32)
        takes = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], takes)
        builder.call(function, [pointer, word(0), word(3), word(1)])  # to read, keep in every cache, data
        return context.get_dummy_value()

    return types.void(x, row, column), generate


prefetch: Any = intrinsic(_prefetch)
