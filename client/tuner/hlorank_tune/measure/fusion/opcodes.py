"""The opcodes that XLA:CPU computes element by element inside a loop fusion."""


def _opcodes(text: str) -> frozenset[str]:
    return frozenset(text.split())


ELEMENTWISE = _opcodes(
    "abs add and atan2 cbrt ceil clamp compare complex convert copy cosine count-leading-zeros "
    "divide erf exponential exponential-minus-one floor imag is-finite log log-plus-one logistic "
    "maximum minimum multiply negate not or popcnt power real remainder round-nearest-afz "
    "round-nearest-even rsqrt select shift-left shift-right-arithmetic shift-right-logical sign "
    "sine sqrt subtract tan tanh xor"
)
"""An element of the output needs the elements of the operands at the same index."""
INDEXING = _opcodes(
    "broadcast concatenate dynamic-slice dynamic-update-slice iota pad reshape reverse slice "
    "transpose"
)
"""An element of the output is an element of an operand, or its index."""
REDUCING = frozenset({"reduce", "reduce-window"})
"""An element of the output needs many elements of the operand."""
FUSIBLE = ELEMENTWISE | INDEXING | REDUCING
"""Gather, scatter, select-and-scatter and sort are absent: XLA:CPU aborts on them."""
EXPENSIVE = _opcodes(
    "atan2 cbrt cosine divide erf exponential exponential-minus-one log log-plus-one logistic "
    "power remainder rsqrt sine sqrt tan tanh"
)
"""Elementwise opcodes that take much longer than an addition."""
FREE = frozenset({"constant", "get-tuple-element", "parameter", "tuple"})
"""Opcodes that take no time and are no kernels."""
