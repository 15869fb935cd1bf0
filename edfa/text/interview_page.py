"""One person's interview as a page for notebooks: decision, standing, next question, plans, what
counts, and the answers so far.

``interview_html`` is the main entry; ``draw_timeline`` draws the answers so far on an axis. The
sentences are those of ``edfa.text.record.InterviewRecord``.
"""

from textwrap import shorten
from typing import TYPE_CHECKING

from markupsafe import Markup

from edfa.text import html, narrate, phrases
from edfa.text.figures import draw_steps
from edfa.text.phrases import say
from edfa.text.record import InterviewRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edfa.advice.interview import Interview, Moment
    from edfa.data.schema import Schema

STEP_LETTERS = 34  # of a name in the drawing
LISTS = ("plans", "partition")  # sections whose sentences are shown as bullet points


def interview_html(interview: "Interview") -> Markup:
    """The interview as it stands, for the person to read.

    Parameters
    ----------
    interview
        The interview, in its own language.

    Returns
    -------
    Markup
        A heading for each section with its sentences, and a table of the steps; with a drawing
        of them once there is more than one.
    """
    language, timeline = interview.language, say("page.timeline", interview.language)
    parts: list[Markup] = []
    for section, sentences in InterviewRecord(interview).sentences().items():
        if sentences:
            as_list = len(sentences) > 1 and section in LISTS
            parts.append(html.heading(say(f"page.{section}", language), 3))
            parts.append(html.bullet_list(sentences) if as_list else html.paragraph(*sentences))
    parts.append(html.heading(timeline, 3))
    if len(interview.timeline) > 1:
        parts.append(html.figure(lambda ax: draw_timeline(interview, ax), timeline))
    return Markup().join([*parts, _timeline_table(interview)])


def _timeline_table(interview: "Interview") -> Markup:
    """One row per step: the answer, its cost, the cost so far, and the probability after it.

    The last column, which features the answer made count, is left out if no answer did.
    """
    language, schema = interview.language, interview.fitted.schema
    step, answer, cost, spent, unlocked = (
        say(f"page.{name}", language) for name in ("step", "answer", "cost", "spent", "unlocked")
    )
    columns = [
        f">{step}",
        answer,
        f">{cost}",
        f">{spent}",
        f">{_probability_label(schema, language)}",
        unlocked,
    ]
    rows = [
        [
            moment.step,
            _answer_text(moment, schema, language),
            phrases.number(moment.cost, language),
            phrases.number(moment.spent, language),
            narrate.chance(moment.decision, language),
            phrases.listed(
                [phrases.label(schema[name], language) for name in moment.unlocked], language
            ),
        ]
        for moment in interview.timeline
    ]
    width = len(columns) if any(row[-1] for row in rows) else len(columns) - 1
    return html.table(columns[:width], [row[:width] for row in rows])


def _answer_text(moment: "Moment", schema: "Schema", language: str) -> str:
    """The answers of one step: titles and values, or that the person declined.

    Parameters
    ----------
    moment
        The step, with the facts that were told in it.
    schema
        The card.
    language
        "en" or "de".
    """
    answers = [
        f"{phrases.plain(schema[name].said(language).label)}: "
        + (
            say("page.declined", language)
            if moment.kind == "decline"
            else phrases.value(schema[name], answer, language)
        )
        for name, answer in moment.facts.items()
    ]
    return "; ".join(answers) or say("page.nothing", language)


def draw_timeline(interview: "Interview", ax: "Axes") -> "Axes":
    """Draw the probability of the favourable class after every answer against the cost so far.

    Parameters
    ----------
    interview
        The interview; steps at which the person declined are left out.
    ax
        The matplotlib axis to draw on.

    Returns
    -------
    matplotlib.axes.Axes
        The same axis.
    """
    schema, language = interview.fitted.schema, interview.language
    moments = [moment for moment in interview.timeline if moment.kind != "decline"]
    axis_labels = (say("page.spent", language), _probability_label(schema, language))
    names = [_step_name(moment, schema, language) for moment in moments]
    draw_steps(
        ax,
        [m.spent for m in moments],
        [m.decision.probability for m in moments],
        names,
        axis_labels,
    )
    ax.set_yticks(ax.get_yticks(), [phrases.in_hundred(tick, language) for tick in ax.get_yticks()])
    return ax


def _probability_label(schema: "Schema", language: str) -> str:
    """What the estimate is called, with the words for the favourable class."""
    return say(
        "page.chance", language, wanted=phrases.plain(schema.outcome(schema.favourable, language))
    )


def _step_name(moment: "Moment", schema: "Schema", language: str) -> str:
    """What was told at a step, short enough for the drawing."""
    if moment.kind == "start":
        return say("page.start", language)
    labels = ", ".join(phrases.plain(schema[name].said(language).label) for name in moment.facts)
    return shorten(labels, STEP_LETTERS, placeholder=" …")
