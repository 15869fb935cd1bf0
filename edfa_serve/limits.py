"""A person's own limits on plans: the controls of the page, and reading what they were set to.

Only facts that the model looks at and a plan may change have controls; sensitive facts never have.
``make_controls`` makes the controls, ``read_limits`` reads the form they are sent in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edfa.advice.fitted import FittedAdvisor
from edfa.data.encode import Levels, Measure
from edfa.data.rules import Overlay
from edfa_serve.forms import Choice, Given, UnclearError, not_a_number, read_number
from edfa_serve.wording import Wording

GRADES = ("1", "2", "3", "4", "5")
USUAL, LOCKED = "3", "locked"


@dataclass(frozen=True)
class Control:
    """The control of one fact: how hard a change is, and in which range a number may lie.

    Parameters
    ----------
    name, id
        The feature, and the id of the control in the page.
    label
        The feature's label.
    choices
        The grades of difficulty, the chosen one marked; ``"locked"`` rules a change out.
    number, unit
        Whether the feature is a number, so that it has a range, and its unit.
    low, high
        The ends of the range as they were entered; empty: open.
    error
        What is wrong with what was entered, in the person's language.
    """

    name: str
    id: str
    label: str
    choices: tuple[Choice, ...]
    number: bool
    unit: str
    low: str
    high: str
    error: str


def changeable(fitted: FittedAdvisor) -> tuple[str, ...]:
    """The facts that the model looks at and a plan may change.

    Parameters
    ----------
    fitted
        The fitted advisor.

    Returns
    -------
    tuple of str
        Names of features in the order of the card. Sensitive and frozen features, and those that
        the operator's rules lock or link, are not among them.
    """
    seen = zip(fitted.schema, fitted.background.visible, strict=True)
    return tuple(
        feature.name
        for feature, visible in seen
        if visible and feature.actionable and fitted.rules.may_change(feature)
    )


def make_controls(
    fitted: FittedAdvisor,
    wording: Wording,
    overlay: Overlay,
    given: Given | None = None,
    errors: Mapping[str, str] | None = None,
) -> tuple[Control, ...]:
    """Make the controls of all changeable facts.

    Parameters
    ----------
    fitted, wording
        The fitted advisor, and the words of the page.
    overlay
        The person's limits, which the controls show.
    given
        The fields of a form that is shown again; they go before ``overlay``.
    errors
        What is wrong with the form, by feature.

    Returns
    -------
    tuple of Control
        One for each feature of ``changeable``, in that order.
    """
    given, wrong = _form_of(overlay, wording) if given is None else given, errors or {}
    texts = {grade: wording(f"limits.d{grade}") for grade in GRADES}
    texts[LOCKED] = wording("limits.locked")
    controls = []
    for name in changeable(fitted):
        hard, number = given.get(f"hard.{name}", USUAL), isinstance(fitted.encoder[name], Measure)
        controls.append(
            Control(
                name=name,
                id=f"c{wording.schema.index(name)}",
                label=wording.label(name),
                choices=tuple(Choice(grade, text, grade == hard) for grade, text in texts.items()),
                number=number,
                unit=wording.unit(name) if number else "",
                low=given.get(f"low.{name}", ""),
                high=given.get(f"high.{name}", ""),
                error=wrong.get(name, ""),
            )
        )
    return tuple(controls)


def _form_of(overlay: Overlay, wording: Wording) -> Given:
    """The fields of a form that asks for the limits of an overlay."""
    fields = {f"hard.{name}": str(grade) for name, grade in overlay.difficulty.items()}
    fields |= {f"hard.{name}": LOCKED for name in overlay.locked}
    for name, (low, high) in overlay.ranges.items():
        fields |= {f"low.{name}": wording.number(low), f"high.{name}": wording.number(high)}
    return fields


def read_limits(
    fitted: FittedAdvisor, wording: Wording, given: Given
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the limits that a form asks for.

    Parameters
    ----------
    fitted, wording
        The fitted advisor, and the words of the page.
    given
        The fields of the form.

    Returns
    -------
    content : dict
        The limits as plain data that ``Overlay.parse`` takes, without empty entries.
    errors : dict
        What is wrong, in the person's language, by feature; empty if nothing is.
    """
    locked, difficulty, ranges, errors = [], {}, {}, {}
    for name in changeable(fitted):
        grade = given.get(f"hard.{name}", USUAL)
        if grade == LOCKED:
            locked.append(name)
        elif grade not in GRADES:
            errors[name] = wording("invalid.choice", label=wording.label(name))
        elif grade != USUAL:
            difficulty[name] = int(grade)
        try:
            if ends := _read_range(fitted.encoder[name], wording, name, given):
                ranges[name] = ends
        except UnclearError as error:
            errors[name] = str(error)
    content = {"locked": locked, "difficulty": difficulty, "ranges": ranges}
    return {key: value for key, value in content.items() if value}, errors


def _read_range(
    column: Measure | Levels, wording: Wording, name: str, given: Given
) -> list[float] | None:
    """The range entered for a number; None if none was.

    An end that was left open is the least or largest value that was seen.
    """
    label = wording.label(name)
    low, high = (given.get(f"{end}.{name}", "").strip() for end in ("low", "high"))
    if not isinstance(column, Measure) or not (low or high):
        return None
    start = read_number(low, wording, label, column.typical) if low else column.low
    end = read_number(high, wording, label, column.typical) if high else column.high
    if not max(abs(start), abs(end)) < float("inf"):
        raise not_a_number(wording, label, column.typical)
    if start > end:
        raise UnclearError(wording("invalid.order", label=label))
    return [start, end]
