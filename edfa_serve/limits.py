"""What is easy, hard or impossible for a person: the controls that say so, and the limits they
amount to.

Only facts that the model looks at and a plan may change have controls; nothing sensitive ever has.
"""

from dataclasses import dataclass
from typing import Any

from edfa.advice.fitted import FittedAdvisor
from edfa.data.encode import Measure
from edfa.data.rules import Overlay
from edfa_serve.forms import Choice, Given, UnclearError, read_number
from edfa_serve.wording import Wording

__all__ = ["Control", "changeable", "make_controls", "read_limits"]

GRADES = ("1", "2", "3", "4", "5")
USUAL, LOCKED = "3", "locked"


@dataclass(frozen=True)
class Control:
    """The control of one fact: how hard a change is, and, of a number, from where to where values
    may be suggested.
    """

    name: str
    id: str
    label: str
    choices: tuple[Choice, ...]
    number: bool = False
    unit: str = ""
    low: str = ""
    high: str = ""
    error: str = ""


def changeable(fitted: FittedAdvisor) -> tuple[str, ...]:
    """The facts that the model looks at and a plan may change, in the card's order."""
    rules, visible = fitted.rules, fitted.background.visible
    return tuple(
        feature.name
        for feature, seen in zip(fitted.schema, visible, strict=True)
        if seen
        and feature.actionable
        and feature.name not in (*rules.locked, *rules.linked)
        and (rules.only is None or feature.name in rules.only)
    )


def make_controls(
    fitted: FittedAdvisor,
    wording: Wording,
    overlay: Overlay,
    given: Given | None = None,
    errors: dict[str, str] | None = None,
) -> tuple[Control, ...]:
    """The controls as the overlay has them, or as a form was filled in that is shown again."""
    grades = {grade: wording(f"limits.d{grade}") for grade in GRADES}
    texts, controls = grades | {LOCKED: wording("limits.locked")}, []
    for name in changeable(fitted):
        hard = LOCKED if name in overlay.locked else str(overlay.difficulty.get(name, USUAL))
        low, high = (
            map(wording.number, overlay.ranges[name]) if name in overlay.ranges else ("", "")
        )
        if given is not None:
            hard = given.get(f"hard.{name}", USUAL)
            low, high = given.get(f"low.{name}", ""), given.get(f"high.{name}", "")
        number = isinstance(fitted.encoder[name], Measure)
        controls.append(
            Control(
                name=name,
                id=f"c{wording.schema.index(name)}",
                label=wording.label(name),
                choices=tuple(Choice(grade, text, grade == hard) for grade, text in texts.items()),
                number=number,
                unit=wording.unit(name) if number else "",
                low=low,
                high=high,
                error=(errors or {}).get(name, ""),
            )
        )
    return tuple(controls)


def read_limits(
    fitted: FittedAdvisor, wording: Wording, given: Given
) -> tuple[dict[str, Any], dict[str, str]]:
    """The limits that a form asks for, as plain data for ``Overlay``; and what is wrong, by
    feature.
    """
    locked, difficulty, ranges, errors = [], {}, {}, {}
    for name in changeable(fitted):
        grade = given.get(f"hard.{name}", USUAL)
        if grade == LOCKED:
            locked.append(name)
        elif grade in GRADES and grade != USUAL:
            difficulty[name] = int(grade)
        elif grade not in GRADES:
            errors[name] = wording("invalid.choice", label=wording.label(name))
        try:
            if ends := _range(fitted, wording, name, given):
                ranges[name] = ends
        except UnclearError as error:
            errors[name] = str(error)
    content = {"locked": locked, "difficulty": difficulty, "ranges": ranges}
    return {key: value for key, value in content.items() if value}, errors


def _range(fitted: FittedAdvisor, wording: Wording, name: str, given: Given) -> list[float] | None:
    """The range that was entered for a number, open ends at the least and largest there is; None:
    no range.
    """
    column, label = fitted.encoder[name], wording.label(name)
    low, high = given.get(f"low.{name}", "").strip(), given.get(f"high.{name}", "").strip()
    if not isinstance(column, Measure) or not (low or high):
        return None
    start = read_number(low, wording, label, column.typical) if low else column.low
    end = read_number(high, wording, label, column.typical) if high else column.high
    if not max(abs(start), abs(end)) < float("inf"):
        raise UnclearError(
            wording("invalid.number", label=label, example=wording.number(column.typical))
        )
    if start > end:
        raise UnclearError(wording("invalid.order", label=label))
    return [start, end]
