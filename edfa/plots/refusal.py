"""What holds a decision back: how much each known fact of one refused person adds to the
refusal.

``explain_refusal`` works out the contributions of an interview's facts, and ``draw_refusal`` draws
them.
"""

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from edfa.advice.principal import find_reasons
from edfa.plots.axis import DARK, INK, LIGHT, drawing, label_of, legend_above, say, tidy
from edfa.text import phrases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edfa.advice.interview import Interview

LINE, GAP = 0.14, 0.15  # inches: a line of a name, and what is between two names
MAX_BARS = 12  # bars
LETTERS = 40  # on one line of a name
ROOM = 0.17  # left and right of all bars, for their numbers; of the width of all
FILLS = {"principal": DARK, "against": LIGHT, "in_favour": "white"}


@dataclass(frozen=True)
class Contribution:
    """What one known fact adds to the decision.

    Parameters
    ----------
    feature
        The name of the feature; empty for several small contributions that share one bar.
    label, value
        The feature and the person's value of it, in the card's words.
    amount
        A Shapley value in log odds, negative if the fact tells against the person.
    error
        The standard error of ``amount``.
    principal
        Whether the fact belongs to a principal reason.
    sensitive
        Whether the card calls the feature sensitive.
    """

    feature: str
    label: str
    value: str
    amount: float
    error: float = 0.0
    principal: bool = False
    sensitive: bool = False


@dataclass(frozen=True)
class Refusal:
    """The contributions of all known facts, what tells most against the person first.

    They add up to ``margin`` less ``baseline``.

    Parameters
    ----------
    contributions
        One for each known fact that the model uses.
    margin
        The person's log odds less those at the line between the two decisions, below zero.
    baseline
        The mean margin of the granted people whom the person is compared with.
    people
        The number of these, who are the granted people nearest to the line.
    language
        Of the words in ``contributions``.
    """

    contributions: tuple[Contribution, ...]
    margin: float
    baseline: float
    people: int
    language: str = "en"


def explain_refusal(interview: "Interview") -> Refusal:
    """What each known fact adds to the refusal of an interview: see
    ``edfa.explanation.principal_reasons``.

    This is for the operator: sensitive facts are shown like any other, and marked.

    Parameters
    ----------
    interview
        The interview of a person who is refused.

    Returns
    -------
    Refusal
        The contributions, for ``draw_refusal``.

    Raises
    ------
    DataError
        If the person is granted what they ask for, or nothing is known that the model uses.
    """
    fitted, language = interview.fitted, interview.language
    shown = dict.fromkeys(fitted.schema.names, "shown to the operator alone")
    reasons = find_reasons(interview.assessment, shown)
    principal = {name for reason in reasons.named for name in reason.features}
    values, facts = reasons.values, interview.log.facts
    contributions = [
        Contribution(
            feature.name,
            label_of(feature, language),
            phrases.value(feature, facts.get(feature.name), language),
            float(amount),
            float(error),
            feature.name in principal,
            feature.sensitive,
        )
        for feature, amount, error in zip(
            fitted.schema, values.contributions, values.errors, strict=True
        )
        if not np.isnan(amount)
    ]
    contributions.sort(key=lambda part: part.amount)
    return Refusal(tuple(contributions), values.margin, values.baseline, values.people, language)


def draw_refusal(refusal: Refusal, ax: "Axes | None" = None) -> "Axes":
    """Draw a bar for each fact, to the left if it tells against the person; principal reasons are
    dark.

    Of more than twelve facts the smallest share one bar, so that all bars still add up.

    Parameters
    ----------
    refusal
        What ``explain_refusal`` gives.
    ax
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axis that was drawn on.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    shown = _merged(refusal)
    names = [_name(part, refusal.language) for part in shown]
    height = sum(GAP + LINE * (1 + name.count("\n")) for name in names)
    kinds = [_kind(part) for part in shown]
    labels = {kind: say(f"refusal.{kind}", refusal.language) for kind in kinds}
    with drawing(ax, (6.0, 0.9 + height)) as ax:
        bars = ax.barh(
            range(len(shown)),
            [part.amount for part in shown],
            0.66,
            xerr=[1.96 * part.error for part in shown],  # intervals at the level 0.95
            color=[FILLS[kind] for kind in kinds],
            edgecolor=DARK,
            linewidth=0.8,
            error_kw={"ecolor": INK, "elinewidth": 0.8},
            label=[labels.pop(kind, "_") for kind in kinds],  # each once
        )
        amounts = [_signed(part.amount, refusal.language) for part in shown]
        ax.bar_label(bars, amounts, padding=3, fontsize=7, color=INK)
        ax.margins(x=ROOM)
        ax.axvline(0, color=INK, linewidth=0.8)
        ax.set_yticks(range(len(shown)), names)
        label = fill(say("refusal.axis", refusal.language, people=refusal.people), LETTERS + 10)
        ax.set(ylim=(len(shown) - 0.4, -0.6), xlabel=label)
        ax.tick_params(axis="y", length=0)
        tidy(ax, "x")
        ax.spines["left"].set_visible(False)
        legend_above(ax)
    return ax


def _kind(part: Contribution) -> str:
    """The key of ``FILLS`` and of the legend that a contribution belongs to."""
    if part.amount >= 0:
        return "in_favour"
    return "principal" if part.principal else "against"


def _merged(refusal: Refusal) -> list[Contribution]:
    """At most ``MAX_BARS`` contributions; the smallest of more are one, the last."""
    parts = [*refusal.contributions]
    if len(parts) <= MAX_BARS:
        return parts
    large = sorted(parts, key=lambda part: -abs(part.amount))[: MAX_BARS - 1]
    rest = [part for part in parts if part not in large]
    error = float(np.sqrt(sum(part.error**2 for part in rest)))  # as if they were independent
    label = say("refusal.others", refusal.language, count=len(rest))
    together = Contribution("", label, "", sum(part.amount for part in rest), error)
    return [*(part for part in parts if part in large), together]


def _name(part: Contribution, language: str) -> str:
    """The words beside a bar, in lines of at most ``LETTERS`` letters: label and value, and whether
    the fact is sensitive.
    """
    if not part.feature:
        return fill(part.label, LETTERS)
    fact = say("refusal.fact", language, label=part.label, value=part.value)
    text = say("refusal.sensitive", language, fact=fact) if part.sensitive else fact
    if len(text) <= LETTERS or part.value not in text:
        return fill(text, LETTERS)
    first, _, last = text.partition(part.value)  # a line for the label, then those of the value
    return f"{fill(first.strip(), LETTERS)}\n{fill(part.value + last, LETTERS)}"


def _signed(amount: float, language: str) -> str:
    """A number with its sign and two digits, and the minus of print."""
    sign = "\N{MINUS SIGN}" if amount < 0 else "+"
    return sign + phrases.number(abs(round(amount, 2)), language)
