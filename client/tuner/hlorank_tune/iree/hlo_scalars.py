"""Operations of the dialects arith and math as HLO instructions."""

from collections.abc import Callable, Sequence
from typing import Any

from hlorank_tune.iree.hlo_text import Node, UnsupportedDispatch, Writer

_SAME = {
    "arith": "addf=add addi=add subf=subtract subi=subtract mulf=multiply muli=multiply "
    "divf=divide divsi=divide remf=remainder remsi=remainder "
    "maximumf=maximum maxnumf=maximum maxsi=maximum "
    "minimumf=minimum minnumf=minimum minsi=minimum negf=negate andi=and ori=or xori=xor "
    "select=select shli=shift-left shrsi=shift-right-arithmetic shrui=shift-right-logical",
    "math": "exp=exponential expm1=exponential-minus-one log=log log1p=log-plus-one tanh=tanh "
    "rsqrt=rsqrt sqrt=sqrt cbrt=cbrt powf=power ipowi=power erf=erf cos=cosine sin=sine tan=tan "
    "absf=abs absi=abs floor=floor ceil=ceil round=round-nearest-afz roundeven=round-nearest-even "
    "atan2=atan2 ctpop=popcnt ctlz=count-leading-zeros",
}
OPCODES = {
    f"{dialect}.{name}": opcode
    for dialect, text in _SAME.items()
    for name, opcode in (pair.split("=") for pair in text.split())
}
"""Operations that are one instruction on the same operands."""

_CONVERSIONS = "extf truncf sitofp fptosi extsi trunci index_cast"
_UNSIGNED_CONVERSIONS = "extui uitofp"
_INTEGER_ORDER = ["EQ", "NE", "LT", "LE", "GT", "GE", "LT", "LE", "GT", "GE"]
_FLOAT_ORDER = {1: "EQ", 2: "GT", 3: "GE", 4: "LT", 5: "LE", 13: "NE"}
_NEGATED_FLOAT_ORDER = {9: "LE", 10: "LT", 11: "GE", 12: "GT"}
_LESS_OR_GREATER = 6
_FALSE_FOR_NANS = 7
_TRUE_FOR_NANS = 14

_ELEMENTS = {"i1": "pred", "index": "s32", "f8E4M3FN": "f8e4m3fn", "f8E5M2": "f8e5m2"}


def element_of(kind: Any) -> str:
    """Returns HLO's name of an element type; signless integers are signed, an index is s32."""
    text = str(kind)
    if text in _ELEMENTS or text in ("f16", "f32", "f64", "bf16"):
        return _ELEMENTS.get(text, text)
    if text in ("i4", "i8", "i16", "i32", "i64"):
        return "s" + text[1:]
    raise UnsupportedDispatch(text, "the element type has no counterpart in HLO")


def scalar_node(write: Writer, operation: Any, operands: Sequence[Node]) -> Node:
    """Adds an operation of arith or math on operands of one shape."""
    name = operation.name
    if name in OPCODES:
        return write.like(OPCODES[name], operands)
    if name in _SPECIAL:
        return _SPECIAL[name](write, operation, operands)
    raise UnsupportedDispatch(name, "the operation has no counterpart in HLO")


def _result(operation: Any) -> str:
    kind = operation.results[0].type
    return element_of(getattr(kind, "element_type", kind))


def _convert(write: Writer, operation: Any, operands: Sequence[Node]) -> Node:
    return write.convert(operands[0], _result(operation))


def _convert_unsigned(write: Writer, operation: Any, operands: Sequence[Node]) -> Node:
    return write.convert(_unsigned(write, operands[0]), _result(operation))


def _unsigned(write: Writer, node: Node) -> Node:
    if node.element == "pred":
        return node
    return write.add("bitcast-convert", ("u" + node.element[1:], node.shape), [node])


def _compare_integers(write: Writer, operation: Any, operands: Sequence[Node]) -> Node:
    predicate = operation.attributes["predicate"].value
    if predicate >= _INTEGER_ORDER.index("GE") + 1:
        operands = [_unsigned(write, operand) for operand in operands]
    return _compare(write, operands, _INTEGER_ORDER[predicate])


def _compare_floats(write: Writer, operation: Any, operands: Sequence[Node]) -> Node:
    predicate = operation.attributes["predicate"].value
    if predicate in _FLOAT_ORDER:
        return _compare(write, operands, _FLOAT_ORDER[predicate])
    if predicate in _NEGATED_FLOAT_ORDER:
        return write.like("not", [_compare(write, operands, _NEGATED_FLOAT_ORDER[predicate])])
    if predicate == _LESS_OR_GREATER:
        return write.like("or", [_compare(write, operands, way) for way in ("LT", "GT")])
    if operands[0] is operands[1] and predicate in (_FALSE_FOR_NANS, _TRUE_FOR_NANS):
        return _compare(write, operands, "NE" if predicate == _TRUE_FOR_NANS else "EQ")
    raise UnsupportedDispatch(operation.name, f"HLO does not compare by predicate {predicate}")


def _compare(write: Writer, operands: Sequence[Node], direction: str) -> Node:
    shape = operands[0].shape
    return write.add("compare", ("pred", shape), operands, f", direction={direction}")


def _copysign(write: Writer, operation: Any, operands: Sequence[Node]) -> Node:
    size = write.like("abs", operands[:1])
    sign = write.like("sign", operands[1:])
    return write.like("multiply", [size, sign])


_SPECIAL: dict[str, Callable[[Writer, Any, Sequence[Node]], Node]] = {
    **{f"arith.{name}": _convert for name in _CONVERSIONS.split()},
    **{f"arith.{name}": _convert_unsigned for name in _UNSIGNED_CONVERSIONS.split()},
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "math.copysign": _copysign,
}
