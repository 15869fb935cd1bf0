"""German credit from table to receipt: fit an advisor, interview one applicant, and write a report."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from edfa.advice.advisor import Advisor
from edfa.advice.evaluation import roll_out
from edfa.advice.interview import Interview
from edfa.data.catalog import load
from edfa.data.constraints import Constraints
from edfa.data.table import Table
from edfa.recourse.plan import Plan
from edfa.text import html, narrate, phrases
from edfa.text.interview_page import interview_html, interview_sentences
from edfa.text.steps import steps
from edfa.writing import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Demo", "Turn", "draw_plans", "report", "run_demo", "story", "write_report"]

# The default blanket of German credit has two members and no spouses; this method finds units worth showing.
METHOD = "eamb"
RULES = Constraints(max_months=12)  # on top of the card's: who needs a loan does not wait for years
ALPHA = 0.2
REFERENCE = "all_features"  # the lender decides by the whole application; 200 calibration people carry this promise
LINE_LENGTH = 88  # letters that fit above an arrow
ENOUGH = 2  # questions, and plans, that make an interview worth watching
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """One question, its answer, the decision after it and the probability of the favourable class, all in words."""

    question: str
    answer: str
    decision: str
    probability: str


@dataclass(frozen=True, eq=False)
class Demo:
    """A fitted advisor and one applicant, interviewed until they may act.

    ``facts`` are all of the applicant's answers, also those that were not asked for.
    """

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
    def complete_interview(self) -> Interview:
        """The interview in which the applicant has answered everything."""
        return self.advisor.interview(self.facts)

    @property
    def lasts(self) -> bool | None:
        """Whether the plan leads to the favourable class before the model that sees every feature, once all are known.

        That is what the promise of this advisor is held against. None without a plan.
        """
        if self.plan is None:
            return None
        encoder, model, schema = self.table.encoder, self.advisor.fitted.model, self.table.schema
        row = encoder.encode_person(self.facts)
        for change in self.plan.changes:
            at = schema.index(change.feature)
            row[at] = encoder.encode_person({change.feature: change.after})[at]
        return int(model.decide(model.predict_proba(row[None]))[0]) == self.advisor.fitted.favourable

    @cached_property
    def early(self) -> tuple[int, int]:
        """How many test people may act before their last question, and how many of their plans do not last."""
        test = roll_out(self.advisor.fitted, self.table.test.X)
        stops = self.advisor.certificate.stop(test.records)
        is_early = stops.triggered & (stops.step < test.trajectory.step[test.trajectory.last])
        rows = (test.trajectory.at(0) + stops.step)[is_early]
        return int(is_early.sum()), int(np.asarray(test.records.loss)[rows].sum())

    def summary(self) -> dict[str, Any]:
        """The result of the demo as data that JSON can hold."""
        certificate, interview = self.advisor.certificate, self.interview
        return {
            "units": dict(self.advisor.fitted.blanket.units),
            "certificate": certificate.zone,
            "alpha": certificate.alpha,
            "evaluation": json.loads(self.advisor.evaluation_.to_json()),
            "asked": [name for moment in interview.timeline[1:] for name in moment.facts],
            "plans": [str(plan) for plan in interview.plans()],
            "may_act": interview.standing.may_act,
            "lasts": self.lasts,
            "early": self.early,
        }


def run_demo(language: str = "en", progress: Callable[[str, int, int], None] | None = None) -> Demo:
    """Fit an advisor, interview refused test people, and return one interview worth watching.

    Preferred are people who may act after at least two questions and before the last one, and have a choice of plans;
    of these, the one whose first plan is the likeliest to last.
    """
    phrases.table(language)  # an unknown language is an error before any work
    table = load("german")
    settings: dict[str, Any] = {"alpha": ALPHA, "reference": REFERENCE}
    advisor = Advisor(blanket=METHOD, threshold="balanced", constraints=RULES, **settings).fit(table, progress)
    demos = [_interview(advisor, table, facts, language) for facts in _refused_people(advisor, table)]
    early = [demo for demo in demos if demo.interview.standing.may_act and demo.interview.question is not None]
    return max(early or demos, key=_worth_watching)


def _worth_watching(demo: Demo) -> tuple[int, int, float]:
    """Enough questions, then a choice of plans, then how likely the first plan is to last."""
    plans = demo.interview.plans()
    survival = plans[0].survival if plans else None
    return min(len(demo.turns), ENOUGH), min(len(plans), ENOUGH), survival or 0.0


def _refused_people(advisor: Advisor, table: Table, limit: int = 40) -> list[Facts]:
    """Test people who are refused if everything is known, and all of whose values occur in training."""
    model, test = advisor.fitted.predictor, table.test
    decided = np.asarray(model.decide(model.predict_proba(test.X)))
    frame = test.frame[list(table.schema.names)].reset_index(drop=True)
    familiar = (table.encoder.decode(test.X) == frame).all(axis=1).to_numpy()
    chosen = np.flatnonzero(familiar & (decided != advisor.fitted.favourable))[:limit]
    return [{str(name): value for name, value in row.items()} for row in frame.iloc[chosen].to_dict("records")]


def _interview(advisor: Advisor, table: Table, facts: Facts, language: str) -> Demo:
    """Ask one person until they may act or nothing is left to ask; ``facts`` has all their answers."""
    schema = table.schema
    interview = advisor.interview({name: facts[name] for name in schema.start}, language=language)
    turns = []
    while (question := interview.question) is not None and not interview.standing.may_act:
        text = narrate.question(question, schema, language)
        answer = phrases.value(schema[question.feature], facts[question.feature], language)
        interview.answer({question.feature: facts[question.feature]})
        probability = narrate.chance(interview.decision, language)
        turns.append(Turn(text, answer, narrate.decision(interview.decision, schema, language), probability))
    return Demo(table, advisor, facts, interview, tuple(turns))


def draw_plans(demo: Demo, ax: "Axes") -> "Axes":
    """Draw each plan as an arrow from today's estimate for the favourable class to the one it leads to, out of 100."""
    plans, threshold = demo.interview.plans(), demo.interview.decision.threshold
    blanket, language = demo.advisor.fitted.blanket, demo.interview.language
    for i, plan in enumerate(plans):
        before, after = 100 * plan.probability_before, 100 * plan.probability_after
        ax.annotate("", (after, i), (before, i), arrowprops={"arrowstyle": "->", "shrinkA": 0, "shrinkB": 0})
        ax.plot([before], [i], "o", color="black", mfc="white", ms=4)
        told = "; ".join(steps(plan, demo.table.schema, language, operator=RULES, blanket=blanket))
        ax.text(0, i - 0.14, fill(f"{i + 1}. {told}", LINE_LENGTH), va="bottom")
    if threshold is not None:
        ax.axvline(100 * threshold, color="black", ls=":", lw=1)
        ax.text(100 * threshold, len(plans) - 0.55, f" {phrases.say('page.needed', language)}")
    ax.set(xlim=(0, 100), ylim=(len(plans) - 0.5, -0.8), yticks=[])
    ax.set(xlabel=_estimate(demo))
    ax.spines["left"].set_visible(False)
    return ax


def report(demo: Demo) -> str:
    """The demo as one HTML page that loads nothing: first the applicant, then how the advice came about."""
    advisor, interview = demo.advisor, demo.interview
    turns = [[turn.question, turn.answer, turn.probability] for turn in demo.turns]
    columns = [phrases.say(f"page.{name}", interview.language) for name in ("asked", "answer")]
    asked = html.table([*columns, f">{_estimate(demo)}"], turns)
    parts = [
        html.paragraph(
            f"One applicant for a loan, from the first question to a plan; then how the advisor learnt that from "
            f"{len(demo.table):,} applications with {len(demo.table.schema)} facts about each."
        ),
        _heading("The applicant is told"),
        _in_language(demo, interview_html(interview)),
        *_plans_html(demo),
        _heading("How it came to this"),
        html.paragraph(f"Known from the start: {_start(demo)}."),
        _in_language(demo, asked),
        html.paragraph(_afterwards(demo)),
        _heading("Which facts count"),
        html.paragraph("Given these, no other fact tells more about the outcome: its Markov blanket."),
        html.table(["fact", "read together with"], _units(demo)),
        _heading("When a person may act"),
        html.paragraph(advisor.certificate.sentence),
        html.figure(lambda ax: _draw_risk(demo, ax), "Let-downs against the cost of asking"),
        html.definition_table(_test_of_promise(demo)),
        _heading("On people it had never met"),
        html.paragraph(str(advisor.evaluation_), _early_text(demo)),
        _heading("The receipt"),
        Markup("<details><summary>as JSON</summary><pre>{}</pre></details>").format(interview.receipt().to_json()),
    ]
    return html.page("An advisor for German credit", *parts)


def story(demo: Demo) -> list[tuple[str, list[str]]]:
    """The demo as lines of text under headings, for the terminal: first the applicant, then the machinery."""
    sentences = interview_sentences(demo.interview)
    turns = [line for turn in demo.turns for line in (f"? {turn.question}", f"> {turn.answer}", f"  {turn.decision}")]
    plans = [f"{i}. {text}" for i, text in enumerate(sentences["plans"], 1)]
    units = [f"{fact}{f', together with {others}' if others else ''}" for fact, others in _units(demo)]
    evaluation = f"On the test part: {demo.advisor.evaluation_} {_early_text(demo)}"
    return [
        ("One applicant, asked until they may act", [f"Known from the start: {_start(demo)}.", *turns]),
        ("What the applicant is told", [*sentences["decision"], *plans, *sentences["standing"]]),
        ("And the rest", [_afterwards(demo)]),
        ("Which facts count", units),
        ("When a person may act", [demo.advisor.certificate.sentence, evaluation]),
    ]


def _estimate(demo: Demo) -> str:
    """What the numbers out of 100 are an estimate of, in the applicant's language."""
    schema, language = demo.table.schema, demo.interview.language
    return phrases.say("page.chance", language, wanted=schema.outcome(schema.favourable, language))


def _start(demo: Demo) -> str:
    """What is known from the start, in the applicant's language."""
    schema, language = demo.table.schema, demo.interview.language
    return ", ".join(
        f"{schema[name].said(language).label} {phrases.value(schema[name], demo.facts[name], language)}"
        for name in schema.start
    )


def _units(demo: Demo) -> list[tuple[str, str]]:
    """The label of each parent or child of the outcome, and the labels of the facts that count only with it."""
    blanket, schema = demo.advisor.fitted.blanket, demo.table.schema
    units = {**blanket.units, **dict.fromkeys(blanket.unattached, ())}
    return [(schema[head].title, ", ".join(schema[name].title for name in behind)) for head, behind in units.items()]


def _draw_risk(demo: Demo, ax: "Axes") -> "Axes":
    """Draw how many of those who act are let down against the cost of asking, for stricter and less strict rules."""
    ax = demo.advisor.certificate.draw(ax)
    names = {"bound": "at most, as far as the test can tell", "risk": "seen in the test"}
    handles, labels = ax.get_legend_handles_labels()
    said = [names.get(label, "promised" if label.startswith("alpha") else "the rule in use") for label in labels]
    ax.legend(handles, said, frameon=False)
    ax.set(xlabel="cost of asking a person, on average", ylabel="share of those who act and are let down")
    return ax


def _test_of_promise(demo: Demo) -> list[tuple[str, str]]:
    """What the promise rests on, in words."""
    c = demo.advisor.certificate
    rows = [
        ("people it was tested on", f"{c.people:,}"),
        ("of them with a plan", f"{c.n:,}"),
        ("let down in the test", "" if c.risk is None else f"{100 * c.risk:.1f} of 100"),
        ("at most, as far as the test can tell", "" if c.bound is None else f"{100 * c.bound:.1f} of 100"),
        ("promised", f"{100 * c.alpha:g} of 100"),
        ("a plan may be acted on if it holds in", "" if c.tau is None else f"{100 * (1 - c.tau):.0f} of 100 cases"),
        ("cost of asking, on average", "" if c.cost is None else f"{c.cost:.1f}"),
    ]
    return [(name, value) for name, value in rows if value]


def _in_language(demo: Demo, part: Markup) -> Markup:
    """A part of the page in the applicant's language."""
    return Markup('<section lang="{}">{}</section>').format(demo.interview.language, part)


def _heading(text: str) -> Markup:
    return html.heading(text, 2)


def _plans_html(demo: Demo) -> list[Markup]:
    """The plans side by side; nothing if there is no plan."""
    count = len(demo.interview.plans())
    if not count:
        return []
    figure = html.figure(lambda ax: draw_plans(demo, ax), "The plans", (6.4, 0.9 + 0.75 * count))
    return [_heading("The plans side by side"), figure]


def _early_text(demo: Demo) -> str:
    """How the people who act early fare; the promise is about them."""
    count, failed = demo.early
    return (
        f"{count} of them were told to act before their last question; {failed} of these would do the plan and still "
        "be refused by the model that sees every feature."
    )


def _afterwards(demo: Demo) -> str:
    """Whether the first plan would have lasted; the applicant is not told this."""
    if demo.interview.question is None:
        return "Everything was asked."
    outcome = "would have worked" if demo.lasts else "would have failed: one of those the certificate allows for"
    on_file = "This is a test person whose other answers are on file: before the model that sees them, the first plan"
    return f"{on_file} {outcome}."


def write_report(demo: Demo, folder: Path) -> Path:
    """Write the report to ``report.html`` in the folder, which is made if need be, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    write_text(path, report(demo))
    return path
