"""Constraints of a space as text, which a server checks: bounds of products and quotients."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

from hlorank.checks.errors import ArgumentError
from hlorank.wire.messages import SpaceConstraint

_FORMS = "such as 'a * b <= 1024', 'a / b >= 2' or 'b % a == 0'"


@dataclass(frozen=True)
class Bound:
    """A bound of a quotient of products of parameters."""

    factors: tuple[str, ...]
    divisors: tuple[str, ...]
    least: float = -inf
    most: float = inf
    is_whole: bool = False

    def allows(self, numbers: Mapping[str, float]) -> bool:
        """Returns whether the numbers of a configuration, by parameter, are within the bound."""
        quotient, divisor = 1.0, 1.0
        for name in self.factors:
            quotient *= numbers[name]
        for name in self.divisors:
            divisor *= numbers[name]
        if divisor == 0:
            return False
        quotient /= divisor
        return self.least <= quotient <= self.most and not (self.is_whole and quotient % 1)

    def written(self) -> dict[str, Any]:
        """Returns the bound for a file of the space, with what is not the default."""
        bounds = {"least": self.least, "most": self.most}
        written: dict[str, Any] = {"factors": self.factors, "divisors": self.divisors}
        written |= {name: bound for name, bound in bounds.items() if isfinite(bound)}
        return written | ({"is_whole": True} if self.is_whole else {})

    def message(self, columns: Sequence[str]) -> SpaceConstraint:
        """Returns what is sent, given the parameters in the order of their columns."""
        return SpaceConstraint(
            factors=[columns.index(name) for name in self.factors],
            divisors=[columns.index(name) for name in self.divisors],
            least=self.least if isfinite(self.least) else None,
            most=self.most if isfinite(self.most) else None,
            is_whole=self.is_whole,
        )


def bounds_of(text: str, texts: Mapping[str, bool]) -> list[Bound]:
    """Reads a constraint, which has several bounds if it is a chain of comparisons.

    ``texts`` says of every parameter whether its values are text, which no constraint compares.

    Raises:
        ArgumentError: if it is none, or has no such parameter.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        bounds = _bounds(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ArgumentError(f"the constraint {text!r} cannot be read, {_FORMS}") from error
    for bound in bounds:
        for name in (*bound.factors, *bound.divisors):
            if texts.get(name, True):
                has = f"{name!r} has text" if name in texts else f"there is no parameter {name!r}"
                raise ArgumentError(f"the constraint {text!r} needs numbers, and {has}")
    return bounds


@dataclass
class _Term:
    """A number times parameters, divided by others."""

    number: float = 1.0
    factors: list[str] = field(default_factory=list)
    divisors: list[str] = field(default_factory=list)

    def __truediv__(self, other: "_Term") -> "_Term":
        return _Term(
            self.number / other.number,
            self.factors + other.divisors,
            self.divisors + other.factors,
        )


def _bounds(tree: ast.expr) -> list[Bound]:
    match tree:
        case ast.Compare(ast.BinOp(left, ast.Mod(), right), [ast.Eq()], [ast.Constant(0)]):
            term = _term(left) / _term(right)
            if term.number == 1 and term.factors:
                return [Bound((*term.factors,), (*term.divisors,), is_whole=True)]
        case ast.Compare(first, comparisons, others):
            sides = [_term(side) for side in (first, *others)]
            pairs = zip(comparisons, sides, sides[1:], strict=False)
            return [_bound(comparison, *pair) for comparison, *pair in pairs]
    raise ValueError


def _bound(comparison: ast.cmpop, left: _Term, right: _Term) -> Bound:
    if not (left / right).factors:  # a bound needs one
        turned = {ast.LtE: ast.GtE, ast.GtE: ast.LtE}.get(type(comparison), type(comparison))
        comparison, left, right = turned(), right, left
    term, limit = left / right, right.number / left.number
    names = (*term.factors,), (*term.divisors,)
    match comparison:
        case ast.LtE() if term.factors:
            return Bound(*names, most=limit)
        case ast.GtE() if term.factors:
            return Bound(*names, least=limit)
        case ast.Eq() if term.factors:
            return Bound(*names, least=limit, most=limit)
    raise ValueError


def _term(tree: ast.expr) -> _Term:
    match tree:
        case ast.Name(name):
            return _Term(factors=[name])
        case ast.Constant(int() | float() as number) if number > 0 and isfinite(number):
            return _Term(float(number))
        case ast.BinOp(left, ast.Mult(), right):
            one, other = _term(left), _term(right)
            return one / (_Term() / other)
        case ast.BinOp(left, ast.Div(), right):
            return _term(left) / _term(right)
    raise ValueError
