"""Formulas of features, such as ``credit_amount / duration``: arithmetic that is read, never
executed.

The grammar: numbers, names of features, ``+ - * /``, brackets, and the functions ``min``, ``max``,
``floor`` and ``round``. A name that is no Python name stands in backticks: ``` `education-num` + 1
```.
"""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from edfa.errors import SettingError
from edfa.typing import Float64Array

__all__ = ["Formula"]

LONGEST, DEEPEST = 500, 50  # characters, and brackets inside brackets
OPERATORS: Mapping[type, Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": lambda *parts: reduce(np.minimum, parts),
    "max": lambda *parts: reduce(np.maximum, parts),
    "floor": np.floor,
    "round": np.round,
}
SINGLE = ("floor", "round")  # functions of one number


@dataclass(frozen=True)
class Formula:
    """An arithmetic expression of features.

    ``text`` is what was written, ``names`` the features it is about, in order.

    Examples
    --------
    >>> formula = Formula.of("credit_amount / duration")
    >>> formula.names
    ('credit_amount', 'duration')
    >>> formula({"credit_amount": np.array([2400.0]), "duration": np.array([24.0])})
    array([100.])
    """

    text: str
    names: tuple[str, ...]
    tree: ast.expr
    quoted: Mapping[str, str]

    @classmethod
    def of(cls, text: str, where: str = "formula") -> "Formula":
        """Read a formula; ``SettingError``, which begins with ``where``, if it is not one."""
        quoted: dict[str, str] = {}

        def quote(match: re.Match[str]) -> str:
            name = f"quoted_{len(quoted)}_"
            quoted[name] = match[1]
            return name

        def wrong(why: str) -> SettingError:
            return SettingError(f"{where} = {text!r}: {why}")

        if len(text) > LONGEST:
            raise SettingError(
                f"{where}: a formula has at most {LONGEST} characters, not {len(text)}"
            )
        try:
            tree = ast.parse(re.sub(r"`([^`]+)`", quote, text).strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise wrong("not a formula of numbers, features and + - * /") from None
        _check(tree, wrong)
        functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        ids = [
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and id(node) not in functions
        ]
        names = tuple(dict.fromkeys(quoted.get(name, name) for name in ids))
        if not names:
            raise wrong("it names no feature")
        return cls(text, names, tree, quoted)

    def __call__(self, values: Mapping[str, Float64Array]) -> Float64Array:
        """The formula's value for each row of ``values``, which has a column (rows,) for each of
        ``names``.

        What cannot be worked out, such as a division by zero, is NaN.
        """
        with np.errstate(all="ignore"):
            result = np.asarray(self._value(self.tree, values), dtype=np.float64)
        return np.where(np.isfinite(result), result, np.nan)

    def _value(self, node: ast.expr, values: Mapping[str, Float64Array]) -> Any:
        match node:
            case ast.Constant():
                return float(node.value)  # type: ignore[arg-type]
            case ast.Name():
                return values[self.quoted.get(node.id, node.id)]
            case ast.UnaryOp():
                return OPERATORS[type(node.op)](self._value(node.operand, values))
            case ast.BinOp():
                return OPERATORS[type(node.op)](
                    self._value(node.left, values), self._value(node.right, values)
                )
            case ast.Call(func=ast.Name(id=name)):
                return FUNCTIONS[name](*(self._value(part, values) for part in node.args))
        raise SettingError(f"{self.text!r} is not a formula")  # of() has refused it already


def _check(node: ast.expr, wrong: Callable[[str], SettingError], depth: int = 0) -> None:
    """Raise unless the tree is made of the grammar's nodes alone."""
    if depth > DEEPEST:
        raise wrong(f"brackets inside brackets more than {DEEPEST} times")
    match node:
        case ast.Name():
            return None
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return None
        case ast.UnaryOp() if type(node.op) in OPERATORS:
            return _check(node.operand, wrong, depth + 1)
        case ast.BinOp() if type(node.op) in OPERATORS:
            _check(node.left, wrong, depth + 1)
            return _check(node.right, wrong, depth + 1)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS and args:
            if name in SINGLE and len(args) != 1:
                raise wrong(f"{name} is of one number")
            for part in args:
                _check(part, wrong, depth + 1)
            return None
    raise wrong(
        "only numbers, features, + - * /, brackets, min, max, floor and round can be in a formula"
    )
