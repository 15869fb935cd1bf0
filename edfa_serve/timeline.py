"""How a person got where they are: the steps of an interview, and where a drawing of the options
against the price so far has them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from edfa.advice.interview import Interview, Moment
from edfa_serve.limits import changeable
from edfa_serve.wording import Wording

__all__ = ["Drawing", "Step", "draw", "show_steps"]


@dataclass(frozen=True)
class Step:
    """One step: what was told, the price so far, the options and the estimate after it; ``stop``:
    one may act here.
    """

    number: int
    told: str
    price: float
    spent: str
    options: int
    estimate: str
    stop: bool


@dataclass(frozen=True)
class Drawing:
    """Where a drawing has its parts: the corners of its axes, a point for each step, the staircase
    through them as an SVG path, and a line for each whole number of options, at its height.
    """

    left: float
    right: float
    base: float
    points: tuple[tuple[float, float], ...]
    stairs: str
    lines: tuple[tuple[int, float], ...]


def show_steps(interview: Interview, wording: Wording) -> tuple[Step, ...]:
    """The steps of an interview. Options are the facts that can turn the decision by themselves and
    may change.
    """
    moments, standing = interview.timeline, interview.standing
    may = {*changeable(interview.fitted)} - {*interview.overlay.locked}
    stop = standing.since
    if stop is None and standing.may_act:
        stop = len(moments) - 1
    return tuple(
        Step(
            number=moment.step,
            told=_told(moment, wording),
            price=moment.spent,
            spent=wording.number(moment.spent),
            options=0 if moment.decision.favourable else len(may & {*moment.counterfactual}),
            estimate=wording.count(moment.decision),
            stop=moment.step == stop,
        )
        for moment in moments
    )


def _told(moment: Moment, wording: Wording) -> str:
    """What was told or declined at a step."""
    labels = {name: wording.label(name) for name in moment.facts}
    if moment.kind == "decline":
        told = [wording("timeline.declined", label=label) for label in labels.values()]
    else:
        values = {name: wording.value(name, value) for name, value in moment.facts.items()}
        told = [f"{labels[name]}: {value}" for name, value in values.items()]
    return "; ".join(told) or wording("timeline.nothing")


def draw(
    steps: Sequence[Step],
    left: float = 30,
    right: float = 384,
    top: float = 36,
    base: float = 166,
) -> Drawing:
    """Where a drawing of the steps within these edges has its parts."""
    dearest, most = max(steps[-1].price, 1e-9), max(2, *(step.options for step in steps))
    heights = [base - (base - top) * options / most for options in range(most + 1)]
    points = tuple(
        (left + (right - left) * step.price / dearest, heights[step.options]) for step in steps
    )
    stairs = "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
    return Drawing(
        left,
        right,
        base,
        points,
        f"M{points[0][0]:.1f} {points[0][1]:.1f}{stairs}",
        tuple((options, heights[options]) for options in range(0, most + 1, max(1, most // 5))),
    )
