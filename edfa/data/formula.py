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

MAX_CHARACTERS, MAX_DEPTH = 500, 50  # of a formula, and of brackets inside brackets
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


class _NotAFormulaError(Exception):
    """Why a text is no formula."""


@dataclass(frozen=True)
class Formula:
    """An arithmetic expression of features.

    Parameters
    ----------
    text
        What was written.
    names
        The features it is about, in order.

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

    @classmethod
    def of(cls, text: str, where: str = "formula") -> "Formula":
        """Read a formula.

        Parameters
        ----------
        text
            The formula, of at most 500 characters.
        where
            What the formula stands under, with which an error message begins.

        Raises
        ------
        SettingError
            If the text is no formula by the grammar above, or names no feature.
        """
        if len(text) > MAX_CHARACTERS:
            raise SettingError(
                f"{where}: a formula has at most {MAX_CHARACTERS} characters, not {len(text)}"
            )
        names: dict[str, None] = {}

        def look_up(name: str) -> Float64Array:
            names[name] = None
            return np.ones(1)

        try:
            _evaluate(text, look_up)
            if not names:
                raise _NotAFormulaError("it names no feature")
        except _NotAFormulaError as error:
            raise SettingError(f"{where} = {text!r}: {error}") from None
        return cls(text, tuple(names))

    def __call__(self, values: Mapping[str, Float64Array]) -> Float64Array:
        """Work out the formula.

        Parameters
        ----------
        values
            A column, (rows,), for each of ``names``.

        Returns
        -------
        Float64Array
            The value for each row, (rows,), NaN where it cannot be worked out, as in a division by
            zero.
        """
        result = np.asarray(_evaluate(self.text, values.__getitem__), dtype=np.float64)
        return np.where(np.isfinite(result), result, np.nan)


def _evaluate(text: str, look_up: Callable[[str], Float64Array]) -> Any:
    """The value of a formula, (rows,), of the features that ``look_up`` knows by name."""
    quoted: dict[str, str] = {}

    def quote(match: re.Match[str]) -> str:
        name = f"quoted_{len(quoted)}_"
        quoted[name] = match[1]
        return name

    try:
        tree = ast.parse(re.sub(r"`([^`]+)`", quote, text).strip(), mode="eval").body
        with np.errstate(all="ignore"):
            return _value(tree, lambda name: look_up(quoted.get(name, name)))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        raise _NotAFormulaError("not a formula of numbers, features and + - * /") from None


def _value(node: ast.expr, look_up: Callable[[str], Float64Array], depth: int = 0) -> Any:
    """The value of a part of a formula; raises unless it is of the grammar's nodes alone."""
    if depth > MAX_DEPTH:
        raise _NotAFormulaError(f"brackets inside brackets more than {MAX_DEPTH} times")
    match node:
        case ast.Name(id=name):
            return look_up(name)
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, look_up, depth + 1))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](
                _value(left, look_up, depth + 1), _value(right, look_up, depth + 1)
            )
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS and args:
            if name in SINGLE and len(args) != 1:
                raise _NotAFormulaError(f"{name} is of one number")
            return FUNCTIONS[name](*(_value(part, look_up, depth + 1) for part in args))
    raise _NotAFormulaError(
        "only numbers, features, + - * /, brackets, min, max, floor and round can be in a formula"
    )
