"""How a person got where they are: the steps of an interview, and a drawing of them.

``show_steps`` says the steps; ``draw`` places them in a drawing of the number of options against
the price so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from edfa.advice.interview import Interview, Moment
from edfa_serve.limits import changeable
from edfa_serve.wording import Wording

LEFT, RIGHT, TOP, BASE = 30, 384, 36, 166  # edges of the axes in the drawing


@dataclass(frozen=True)
class Step:
    """One step of an interview, and how things stood after it.

    Parameters
    ----------
    number
        The number of the step, from 0.
    told
        What was told or declined, in words.
    price
        The price of all answers so far.
    options
        How many facts could turn the decision by themselves and may change; 0 once it is
        favourable.
    estimate
        The estimate as a count, such as ``31 of 100``.
    stop
        What is said where the interview could end; empty elsewhere.
    """

    number: int
    told: str
    price: float
    options: int
    estimate: str
    stop: str


@dataclass(frozen=True)
class Drawing:
    """Where a drawing has its parts, as coordinates of an SVG image.

    Parameters
    ----------
    points
        A point for each step, x and y.
    stairs
        The staircase through the points, as an SVG path.
    lines
        A number of options and the height of its line, for each line that is drawn.
    left, right, base
        The edges of the axes.
    """

    points: tuple[tuple[float, float], ...]
    stairs: str
    lines: tuple[tuple[int, float], ...]
    left: int = LEFT
    right: int = RIGHT
    base: int = BASE


def show_steps(interview: Interview, wording: Wording) -> tuple[Step, ...]:
    """Say the steps of an interview.

    Parameters
    ----------
    interview
        The interview.
    wording
        The words of the page.

    Returns
    -------
    tuple of Step
        In order; the first is the start.
    """
    moments, standing = interview.timeline, interview.standing
    may = {*changeable(interview.fitted)} - {*interview.overlay.locked}
    stop = len(moments) - 1 if standing.since is None and standing.promised else standing.since
    several = len(interview.fitted.promise.endings) > 1
    ended = wording("timeline.end" if several else "timeline.stop")
    return tuple(
        Step(
            number=moment.step,
            told=_told(moment, wording),
            price=moment.spent,
            options=0 if moment.decision.favourable else len(may & {*moment.counterfactual}),
            estimate=wording.count(moment.decision),
            stop=ended if moment.step == stop else "",
        )
        for moment in moments
    )


def _told(moment: Moment, wording: Wording) -> str:
    """What was told or declined at a step."""
    told = []
    for name, value in moment.facts.items():
        label = wording.label(name)
        if moment.kind == "decline":
            told.append(wording("timeline.declined", label=label))
        else:
            told.append(f"{label}: {wording.value(name, value)}")
    return "; ".join(told) or wording("timeline.nothing")


def draw(steps: Sequence[Step]) -> Drawing:
    """Place the steps of an interview in a drawing.

    Parameters
    ----------
    steps
        At least one step, as ``show_steps`` returns them. The price so far goes to the right, the
        number of options up.
    """
    dearest, most = max(steps[-1].price, 1e-9), max(2, *(step.options for step in steps))
    heights = [BASE - (BASE - TOP) * options / most for options in range(most + 1)]
    points = [
        (LEFT + (RIGHT - LEFT) * step.price / dearest, heights[step.options]) for step in steps
    ]
    stairs = "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
    return Drawing(
        points=tuple(points),
        stairs=f"M{points[0][0]:.1f} {points[0][1]:.1f}{stairs}",
        lines=tuple((n, heights[n]) for n in range(0, most + 1, max(1, most // 5))),
    )
