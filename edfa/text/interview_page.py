"""One person's interview on a page: decision, standing, next question, plans, what counts, and what was told so far."""

from typing import TYPE_CHECKING, Any, Protocol

from edfa.acquisition.trajectory import draw_steps
from edfa.advice.answers import Decision, Moment, Question, Standing
from edfa.blanket.units import Blanket
from edfa.data.schema import Schema
from edfa.explanation.partition import Person
from edfa.recourse.plan import NoPlan, Plan
from edfa.text import html, narrate, phrases
from edfa.text.html import Html
from edfa.text.phrases import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Held", "draw_timeline", "sheet", "told"]

PLANS = 3  # that are told


class Held(Protocol):
    """An interview, as far as a sheet needs one."""

    language: str
    locks: tuple[str, ...]

    @property
    def fitted(self) -> Any:
        """What it is held with."""

    @property
    def decision(self) -> Decision:
        """What is decided."""

    @property
    def standing(self) -> Standing:
        """Whether the person may act."""

    @property
    def question(self) -> Question | None:
        """What is asked next."""

    @property
    def partition(self) -> Person:
        """What counts."""

    @property
    def no_plan(self) -> NoPlan | None:
        """Why there is no plan."""

    @property
    def certificate(self) -> str | None:
        """What is promised."""

    @property
    def timeline(self) -> tuple[Moment, ...]:
        """What was told."""

    def plans(self, k: int) -> tuple[Plan, ...]:
        """What could be done."""


def told(held: Held, k: int = PLANS) -> dict[str, list[str]]:
    """All that there is to say, in sentences, by section. Who may act is asked nothing more."""
    language, schema, asked, none = held.language, _schema(held), held.question, held.no_plan
    blanket: Blanket = held.fitted.blanket
    seen = blanket if held.fitted.policy.aligned else None
    plans = [narrate.plan(plan, schema, language, blanket=seen, locked=held.locks) for plan in held.plans(k)]
    question = [] if held.standing.may_act else [say("sheet.done", language)]
    if asked is not None and not held.standing.may_act:
        question = [narrate.question(asked, schema, language), narrate.answers(asked, schema, language)]
    return {
        "decision": [narrate.decision(held.decision, schema, language)],
        "standing": [narrate.standing(held.standing, language), *([held.guarantee] if held.guarantee else [])],
        "question": question,
        "plans": plans or ([narrate.no_plan(none, schema, language)] if none else []),
        "partition": narrate.partition(
            held.partition,
            schema,
            language,
            favourable=held.decision.favourable,
            blanket=blanket,
            locked=held.locks,
        ),
    }


def _schema(held: Held) -> Schema:
    found: Schema = held.fitted.schema
    return found


def sheet(held: Held) -> Html:
    """The interview as it stands, for a person to read."""
    language = held.language
    parts: list[str] = [
        Html(f"<h3>{html.cell(say(f'sheet.{name}', language))}</h3>")
        + (html.list_of(said) if len(said) > 1 and name in ("plans", "partition") else html.paragraph(*said))
        for name, said in told(held).items()
        if said
    ]
    title = say("sheet.timeline", language)
    parts.append(f"<h3>{html.cell(title)}</h3>")
    if len(held.timeline) > 1:
        parts.append(html.figure(lambda ax: draw_timeline(held, ax), title))
    return Html("".join([*parts, _timeline(held)]))


def _timeline(held: Held) -> Html:
    language, schema = held.language, _schema(held)
    head = [say(f"sheet.{name}", language) for name in ("told", "cost", "spent")]
    chance = say("sheet.chance", language, wanted=phrases.plain(schema.favourable))
    names = [">" + say("sheet.step", language), head[0], *(f">{name}" for name in head[1:]), f">{chance}"]
    rows = [
        [
            moment.step,
            _what(moment, schema, language),
            phrases.number(moment.cost, language),
            phrases.number(moment.spent, language),
            phrases.percent(moment.decision.probability, language),
            phrases.listed([phrases.label(schema[name], language) for name in moment.unlocked], language),
        ]
        for moment in held.timeline
    ]
    names.append(say("sheet.unlocked", language))
    width = len(names) if any(row[-1] for row in rows) else len(names) - 1
    return html.grid(names[:width], [row[:width] for row in rows])


def _what(moment: Moment, schema: Schema, language: str) -> str:
    """What was told in one step, in words."""
    said = [
        f"{phrases.plain(schema[name].title)}: "
        + (
            say("sheet.declined", language)
            if moment.kind == "decline"
            else phrases.value(schema[name], given, language)
        )
        for name, given in moment.facts.items()
    ]
    return "; ".join(said) or say("sheet.nothing", language)


def draw_timeline(held: Held, ax: "Axes") -> "Axes":
    """The chance of the favourable class after every answer, against what was spent."""
    schema, language = _schema(held), held.language
    moments = [moment for moment in held.timeline if moment.kind != "decline"]
    axes = (say("sheet.spent", language), say("sheet.chance", language, wanted=phrases.plain(schema.favourable)))
    names = [_name(moment, language) for moment in moments]
    return draw_steps(ax, [m.spent for m in moments], [m.decision.probability for m in moments], names, axes)


def _name(moment: Moment, language: str) -> str:
    return say("sheet.start", language) if moment.kind == "start" else ", ".join(map(phrases.plain, moment.facts))
