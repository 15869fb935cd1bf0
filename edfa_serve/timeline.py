"""How a person got where they are: a drawing of the options against the price so far, and the table
behind it.
"""

from dataclasses import dataclass

from markupsafe import Markup

from edfa.advice.interview import Interview, Moment
from edfa.text.html import escaped
from edfa_serve.limits import changeable
from edfa_serve.wording import Wording

__all__ = ["Step", "Timeline", "draw", "show_timeline"]

WIDTH, HEIGHT = 400, 210
LEFT, RIGHT, TOP, BOTTOM = 30, 16, 36, 44  # margins of the drawing


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
class Timeline:
    """All steps, and their drawing; there is none of a single step."""

    steps: tuple[Step, ...]
    drawing: Markup | None


def show_timeline(interview: Interview, wording: Wording) -> Timeline:
    """The timeline of an interview. Options are the facts that can turn the decision by themselves
    and may change.
    """
    moments, standing = interview.timeline, interview.standing
    may = set(changeable(interview.fitted)) - {*interview.overlay.locked}
    stop = (
        standing.since
        if standing.since is not None
        else len(moments) - 1
        if standing.may_act
        else None
    )
    steps = tuple(
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
    return Timeline(steps, draw(steps, wording) if len(steps) > 1 else None)


def _told(moment: Moment, wording: Wording) -> str:
    """What was told or declined at a step."""
    if moment.kind == "decline":
        return "; ".join(
            wording("timeline.declined", label=wording.label(name)) for name in moment.facts
        )
    told = [
        f"{wording.label(name)}: {wording.value(name, value)}"
        for name, value in moment.facts.items()
    ]
    return "; ".join(told) or wording("timeline.nothing")


def draw(steps: tuple[Step, ...], wording: Wording) -> Markup:
    """The steps as inline SVG without style attributes: a staircase of options over the price, the
    stop marked.
    """
    dearest, most = max(steps[-1].price, 1e-9), max(2, *(step.options for step in steps))
    xs = [LEFT + (WIDTH - LEFT - RIGHT) * step.price / dearest for step in steps]
    ys = [HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * step.options / most for step in steps]
    path = f"M{xs[0]:.1f} {ys[0]:.1f}" + "".join(
        f"H{x:.1f}V{y:.1f}" for x, y in zip(xs[1:], ys[1:], strict=True)
    )
    parts = [_grid(most, wording), Markup('<path class="stairs" d="{}"/>').format(path)]
    for step, x, y in zip(steps, xs, ys, strict=True):
        parts.append(_mark(step, x, y, wording))
    template = Markup(
        '<svg class="timeline" viewBox="0 0 {} {}" role="img" aria-labelledby="timeline-name">'
        '<title id="timeline-name">{}</title>{}</svg>'
    )
    return template.format(WIDTH, HEIGHT, wording("timeline.drawing"), Markup().join(parts))


def _grid(most: int, wording: Wording) -> Markup:
    """Axes with their names, and a line for each whole number of options."""
    base, lines = HEIGHT - BOTTOM, Markup()
    every = max(1, most // 5)
    for options in range(0, most + 1, every):
        y = base - (HEIGHT - TOP - BOTTOM) * options / most
        lines += Markup(
            '<path class="rule" d="M{} {:.1f}H{}"/><text class="end" x="{}" y="{:.1f}">{}</text>'
        ).format(LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4, options)
    names = Markup('<text x="8" y="16">{}</text><text class="end" x="{}" y="{}">{}</text>').format(
        wording("timeline.y"), WIDTH - RIGHT, HEIGHT - 6, wording("timeline.x")
    )
    return lines + names


def _mark(step: Step, x: float, y: float, wording: Wording) -> Markup:
    """A point for a step; the certified stop is a larger diamond with its words."""
    price = Markup('<text class="middle" x="{:.1f}" y="{}">{}</text>').format(
        x, HEIGHT - BOTTOM + 18, escaped(step.spent)
    )
    if not step.stop:
        return Markup('<circle class="step" cx="{:.1f}" cy="{:.1f}" r="5"/>').format(x, y) + price
    anchor = "end" if x > WIDTH / 2 else "start"
    shape = Markup('<path class="stop" d="M{0:.1f} {1:.1f}l9 9-9 9-9-9z"/>').format(x, y - 9)
    words = Markup('<text class="stop {}" x="{:.1f}" y="{:.1f}">{}</text>').format(
        anchor, x + (9 if anchor == "end" else -9), y - 15, wording("timeline.stop")
    )
    return shape + words + price
