"""German credit from table to receipt: an advisor is fitted, one applicant is interviewed, and a report is written."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from edfa.advice.advisor import Advisor
from edfa.advice.evaluation import roll_out
from edfa.advice.interview import Interview
from edfa.artifacts import write_text
from edfa.data.catalog import load
from edfa.data.table import Table
from edfa.recourse.plan import Plan
from edfa.text import html, narrate, phrases
from edfa.text.html import Html
from edfa.text.interview_page import sheet, told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Demo", "Turn", "draw_plans", "report", "show", "tell", "write"]

# The default blanket of German credit has two members and no spouses; this method finds units worth showing.
METHOD = "eamb"
FIXED = ("purpose",)
ALPHA = 0.1
LETTERS = 88  # that fit over an arrow
SOME = 2  # turns that make an interview worth watching
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """A question, its answer, and the decision and its chance after it, in words."""

    question: str
    answer: str
    decision: str
    chance: str


@dataclass(frozen=True, eq=False)
class Demo:
    """The fitted advisor and one applicant, whom it interviewed until they may act."""

    table: Table
    advisor: Advisor
    facts: Facts
    interview: Interview
    turns: tuple[Turn, ...]

    @property
    def plan(self) -> Plan | None:
        """The plan the applicant may follow."""
        return next(iter(self.interview.plans()), None)

    @property
    def whole(self) -> Interview:
        """The same applicant, had everything been asked."""
        return self.advisor.interview(self.facts)

    @property
    def lasts(self) -> bool | None:
        """Whether the plan would still lead to the favourable class then; the demo knows all answers."""
        if self.plan is None:
            return None
        then = self.whole.what_if({change.feature: change.after for change in self.plan.changes})
        return self.whole.decision.refused and then.decision.favourable

    @cached_property
    def early(self) -> tuple[int, int]:
        """How many test people were let act before their last question, and how many of their plans did not last."""
        found = roll_out(self.advisor.fitted, self.table.test.X)
        stops = self.advisor.certificate.stop(found.records)
        soon = stops.triggered & (stops.step < found.trajectory.step[found.trajectory.last])
        rows = (found.trajectory.at(0) + stops.step)[soon]
        return int(soon.sum()), int(np.asarray(found.records.loss)[rows].sum())

    def summary(self) -> dict[str, Any]:
        """The demo in a few facts."""
        certificate, held = self.advisor.certificate, self.interview
        return {
            "units": dict(self.advisor.fitted.blanket.units),
            "certificate": certificate.zone,
            "alpha": certificate.alpha,
            "evaluation": json.loads(self.advisor.evaluation_.to_json()),
            "asked": [name for moment in held.timeline[1:] for name in moment.facts],
            "plans": [str(plan) for plan in held.plans()],
            "may_act": held.standing.may_act,
            "lasts": self.lasts,
            "early": self.early,
        }


def show(language: str = "en", progress: Callable[[str, int, int], None] | None = None) -> Demo:
    """Fit, and interview test people: the first who may act after some questions and before the last is shown."""
    phrases.table(language)  # an unknown one is an error before any work
    table = _table()
    advisor = Advisor(blanket=METHOD, threshold="balanced", alpha=ALPHA).fit(table, progress)
    held = [_hold(advisor, table, facts, language) for facts in _refused(advisor, table)]
    early = [demo for demo in held if demo.interview.standing.may_act and demo.interview.question is not None]
    return max(early or held, key=lambda demo: min(len(demo.turns), SOME))  # the first of those with some turns


def _table() -> Table:
    """German credit with a card as a lender would write it: nobody is to be told to want a loan for something else."""
    table = load("german")
    features = tuple(replace(f, change="frozen") if f.name in FIXED else f for f in table.schema)
    return Table.from_frame(table.frame, replace(table.schema, features=features), name=table.name)


def _refused(advisor: Advisor, table: Table, most: int = 40) -> list[Facts]:
    """Test people who would be refused if everything were known, all of whose values were seen in training."""
    model, test = advisor.fitted.predictor, table.test
    decided = np.asarray(model.decide(model.predict_proba(test.X)))
    frame = test.frame[list(table.schema.names)].reset_index(drop=True)
    seen = (table.encoder.decode(test.X) == frame).all(axis=1).to_numpy()
    chosen = np.flatnonzero(seen & (decided != advisor.fitted.favourable))[:most]
    return [{str(name): value for name, value in row.items()} for row in frame.iloc[chosen].to_dict("records")]


def _hold(advisor: Advisor, table: Table, facts: Facts, language: str) -> Demo:
    """Ask until the person may act or nothing is left to ask."""
    schema = table.schema
    interview = advisor.interview({name: facts[name] for name in schema.start}, language=language)
    turns = []
    while (asked := interview.question) is not None and not interview.standing.may_act:
        text = narrate.question(asked, schema, language)
        answer = phrases.value(schema[asked.feature], facts[asked.feature], language)
        interview.answer({asked.feature: facts[asked.feature]})
        chance = phrases.percent(interview.decision.probability, language)
        turns.append(Turn(text, answer, narrate.decision(interview.decision, schema, language), chance))
    return Demo(table, advisor, facts, interview, tuple(turns))


def draw_plans(demo: Demo, ax: "Axes") -> "Axes":
    """Each plan as an arrow from today's chance to the one it leads to."""
    plans, needed = demo.interview.plans(), demo.interview.decision.threshold
    for i, plan in enumerate(plans):
        ends = (plan.probability_before, plan.probability_after)
        ax.annotate("", (ends[1], i), (ends[0], i), arrowprops={"arrowstyle": "->", "shrinkA": 0, "shrinkB": 0})
        ax.plot(ends[:1], [i], "o", color="black", mfc="white", ms=4)
        ax.text(0, i - 0.14, fill(f"{i + 1}. {'; '.join(map(str, plan.changes))}", LETTERS), va="bottom")
    if needed is not None:
        ax.axvline(needed, color="black", ls=":", lw=1)
        ax.text(needed, len(plans) - 0.55, " needed")
    ax.set(xlim=(0, 1), ylim=(len(plans) - 0.5, -0.8), yticks=[])
    ax.set(xlabel=f"chance of {demo.table.schema.favourable!r}")
    ax.spines["left"].set_visible(False)
    return ax


def report(demo: Demo) -> str:
    """The whole story on one page that needs nothing else."""
    advisor, schema = demo.advisor, demo.table.schema
    parts = [
        html.paragraph(
            f"{len(demo.table):,} loan applications, {len(schema)} facts about each, one question: is it a good risk? "
            "An advisor was fitted on six tenths of the people, certified on two, and measured on the last two."
        ),
        _heading("Which facts matter"),
        Html(advisor.fitted.blanket._repr_html_()),
        _heading("When a person may act"),
        Html(advisor.certificate._repr_html_()),
        html.paragraph("On the test part:", str(advisor.evaluation_), _early(demo)),
        _heading("One applicant, asked until they may act"),
        html.grid(["asked", "answered", ">chance then"], [[t.question, t.answer, t.chance] for t in demo.turns]),
        _heading("What the applicant is given"),
        Html(f'<section lang="{html.cell(demo.interview.language)}">{sheet(demo.interview)}</section>'),
        *_plans(demo),
        _heading("The receipt"),
        Html(
            f"<details><summary>as JSON</summary><pre>{html.cell(demo.interview.receipt().to_json())}</pre></details>"
        ),
    ]
    return html.page("An advisor for German credit", *parts)


def tell(demo: Demo) -> list[tuple[str, list[str]]]:
    """The same story in lines of text, by heading."""
    language, schema = demo.interview.language, demo.table.schema
    known = ", ".join(
        f"{schema[name].title} {phrases.value(schema[name], demo.facts[name], language)}" for name in schema.start
    )
    said = told(demo.interview)
    asked = [line for turn in demo.turns for line in (f"? {turn.question}", f"> {turn.answer}", f"  {turn.decision}")]
    plans = [f"{i}. {text}" for i, text in enumerate(said["plans"], 1)]
    return [
        ("Which facts matter, in units", str(demo.advisor.fitted.blanket).splitlines()),
        (
            "When a person may act",
            [demo.advisor.certificate.sentence, f"On the test part: {demo.advisor.evaluation_} {_early(demo)}"],
        ),
        ("One applicant, asked until they may act", [f"Known from the start: {known}.", *asked]),
        ("What the applicant is told", [*said["decision"], *plans, *said["standing"]]),
        ("And the rest", [_afterwards(demo)]),
    ]


def _heading(text: str) -> Html:
    return Html(f"<h2>{html.cell(text)}</h2>")


def _plans(demo: Demo) -> list[Html]:
    count = len(demo.interview.plans())
    if not count:
        return []
    figure = html.figure(lambda ax: draw_plans(demo, ax), "The plans", (6.4, 0.9 + 0.75 * count))
    return [_heading("The plans side by side"), figure, html.paragraph(_afterwards(demo))]


def _early(demo: Demo) -> str:
    """What a promise to everybody leaves open."""
    count, failed = demo.early
    return (
        f"{count} of them were let act before their last question, and {failed} of these plans did not last: the "
        "promise counts everybody. One to those who act early alone (target='early') cannot be had here."
    )


def _afterwards(demo: Demo) -> str:
    """What would have become of the first plan; told apart from what the applicant is told."""
    left = demo.interview.question
    if left is None:
        return "Everything was asked, so that nothing can overturn the plan."
    kept = "would still have worked" if demo.lasts else "would have failed: one of those the certificate allows for"
    return f"This is a test person whose other answers are on file: had the rest been asked, the first plan {kept}."


def write(demo: Demo, folder: Path) -> Path:
    """Write the report, and say where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    write_text(path, report(demo))
    return path
