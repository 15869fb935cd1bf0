"""German credit from table to receipt: fit an advisor, interview one applicant, and write a
report.

``run_demo`` does the work; ``story`` and ``report`` tell it as text and as an HTML page.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from edfa.advice.advisor import Advisor
from edfa.advice.interview import Interview
from edfa.data.catalog import load
from edfa.data.rules import Rules
from edfa.data.table import Table
from edfa.recourse.plans import Plan
from edfa.text import html, narrate, phrases
from edfa.text.interview_page import interview_html
from edfa.text.record import InterviewRecord
from edfa.text.summaries import say_summary
from edfa.writing import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The default blanket of German credit has two members and no spouses; this method finds units worth
# showing.
METHOD = "eamb"
RULES = Rules(max_months=12)  # on top of the card's: who needs a loan does not wait for years
ALPHA = 0.2
MAX_INTERVIEWED = 40  # people who are interviewed
LEAST_QUESTIONS_AND_PLANS = 2  # questions, and plans, that make an interview worth watching
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """One question, its answer and the decision after it, all in the person's language."""

    question: str
    answer: str
    decision: str


@dataclass(frozen=True, eq=False)
class Demo:
    """A fitted advisor and one applicant, interviewed until they may act.

    Parameters
    ----------
    table
        German credit.
    advisor
        The advisor that was fitted on it.
    facts
        All of the applicant's answers by feature name, also those that were not asked for.
    interview
        The interview, as far as it went.
    turns
        Its questions.
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
    def lasts(self) -> bool | None:
        """Whether the plan leads to the favourable class before the model that sees every feature,
        once all are known.

        That is what the promise of this advisor is held against. None without a plan.
        """
        if self.plan is None:
            return None
        fitted, after = self.advisor.fitted, {c.feature: c.after for c in self.plan.changes}
        row = fitted.encoder.encode_person({**self.facts, **after})
        return bool(fitted.model.predict(row[None])[0] == fitted.favourable)

    def summary(self) -> dict[str, Any]:
        """The result of the demo by name, as data or as nouns with ``to_json``."""
        certificate, interview = self.advisor.certificate, self.interview
        return {
            "units": dict(self.advisor.fitted.blanket.units),
            "certificate": certificate.zone,
            "alpha": certificate.alpha,
            "evaluation": self.advisor.evaluation_,
            "asked": [name for moment in interview.timeline[1:] for name in moment.facts],
            "plans": [str(plan) for plan in interview.plans()],
            "may_act": interview.standing.may_act,
            "lasts": self.lasts,
        }


def run_demo(language: str = "en", progress: Callable[[str, int, int], None] | None = None) -> Demo:
    """Fit an advisor, interview refused test people, and return one interview worth watching.

    Preferred are people who may act after at least two questions and before the last one, and have
    a choice of plans; of these, the one whose first plan is the likeliest to last.

    Parameters
    ----------
    language
        The language of the interview, ``"en"`` or ``"de"``.
    progress
        As for ``Advisor.fit``.
    """
    phrases.table(language)  # an unknown language is an error before any work
    table = load("german")
    # The lender decides by the whole application; 200 calibration people carry this promise.
    advisor = Advisor(
        blanket=METHOD, threshold="balanced", rules=RULES, alpha=ALPHA, reference="all_features"
    ).fit(table, progress)
    people = _refused_people(advisor, table)
    return max((_interview(advisor, table, facts, language) for facts in people), key=_interest)


def _interest(demo: Demo) -> tuple[bool, int, int, float]:
    """Whether the person may act early, then enough questions, then a choice of plans, then how
    likely the first plan is to last.
    """
    interview, plans = demo.interview, demo.interview.plans()
    early = interview.standing.may_act and interview.question is not None
    survival = plans[0].survival if plans else None
    return (
        early,
        min(len(demo.turns), LEAST_QUESTIONS_AND_PLANS),
        min(len(plans), LEAST_QUESTIONS_AND_PLANS),
        survival or 0.0,
    )


def _refused_people(advisor: Advisor, table: Table) -> list[Facts]:
    """Test people who are refused if everything is known, and all of whose values occur in
    training; ``MAX_INTERVIEWED`` at most.
    """
    fitted, X = advisor.fitted, table.test.X  # noqa: N806
    frame = table.test.frame[list(table.schema.names)].reset_index(drop=True)
    familiar = (table.encoder.decode(X) == frame).all(axis=1).to_numpy()
    refused = fitted.predictor.predict(X) != fitted.favourable
    people: Any = frame[familiar & refused].head(MAX_INTERVIEWED).to_dict("records")
    return list(people)


def _interview(advisor: Advisor, table: Table, facts: Facts, language: str) -> Demo:
    """Ask one person until they may act or nothing is left to ask.

    Parameters
    ----------
    advisor, table
        The advisor, and the table it was fitted on.
    facts
        All of the person's answers by feature name.
    language
        The language of the interview.
    """
    schema = table.schema
    interview = advisor.interview({name: facts[name] for name in schema.start}, language=language)
    turns = []
    while (question := interview.question) is not None and not interview.standing.may_act:
        text = narrate.question(question, schema, language)
        answer = phrases.value(schema[question.feature], facts[question.feature], language)
        interview.answer({question.feature: facts[question.feature]})
        turns.append(Turn(text, answer, narrate.decision(interview.decision, schema, language)))
    return Demo(table, advisor, facts, interview, tuple(turns))


def report(demo: Demo) -> str:
    """The demo as one HTML page that loads nothing: first the applicant, then how the advice came
    about.

    All of it is in the language of the interview.

    Parameters
    ----------
    demo
        What ``run_demo`` gives.

    Returns
    -------
    str
        The page.
    """
    interview = demo.interview
    people, facts = phrases.number(len(demo.table), interview.language), len(demo.table.schema)
    asked, _, *rest = (
        Markup().join([html.heading(title, 2), html.bullet_list(lines)])
        for title, lines in story(demo)  # what the applicant was told has a page's form
    )
    parts = [
        html.paragraph(_say(demo, "lead", people=people, facts=facts)),
        html.heading(_say(demo, "what_told"), 2),
        interview_html(interview),
        asked,
        *rest,
        html.figure(lambda ax: _draw_risk(demo, ax), _say(demo, "risk_title")),
        html.heading(_say(demo, "receipt"), 2),
        Markup("<details><summary>{}</summary><pre>{}</pre></details>").format(
            _say(demo, "json"), interview.receipt().to_json()
        ),
    ]
    return html.page(_say(demo, "title"), *parts, language=interview.language)


def story(demo: Demo) -> list[tuple[str, list[str]]]:
    """The demo as lines of text under headings, for the terminal: first the applicant, then how
    the advice came about.

    Returns
    -------
    list
        Headings with their lines, in the order of the report.
    """
    sentences = InterviewRecord(demo.interview).sentences()
    turns = [
        line
        for turn in demo.turns
        for line in (f"? {turn.question}", f"> {turn.answer}", f"  {turn.decision}")
    ]
    plans = [f"{i}. {text}" for i, text in enumerate(sentences["plans"], 1)]
    became = "worked" if demo.lasts else "failed"  # the applicant is not told
    became = "all_asked" if demo.interview.question is None else became
    evaluation = _say(demo, "on_test", text=_evaluation(demo))
    promise = demo.advisor.certificate.words(demo.interview.language)
    return [
        (_say(demo, "one_applicant"), [_start(demo), *turns]),
        (_say(demo, "what_told"), [*sentences["decision"], *plans, *sentences["standing"]]),
        (_say(demo, "rest"), [_say(demo, became)]),
        (_say(demo, "counting"), _units(demo)),
        (_say(demo, "acting"), [promise, evaluation]),
    ]


def _say(demo: Demo, key: str, **values: object) -> str:
    """A sentence of the report in the applicant's language."""
    return say_summary(f"demo.{key}", demo.interview.language, **values)


def _start(demo: Demo) -> str:
    """What is known from the start, in the applicant's language."""
    schema, language = demo.table.schema, demo.interview.language
    values = {
        name: phrases.value(schema[name], demo.facts[name], language) for name in schema.start
    }
    facts = [f"{schema[name].said(language).label} {value}" for name, value in values.items()]
    return _say(demo, "start", facts=", ".join(facts))


def _units(demo: Demo) -> list[str]:
    """Each parent or child of the outcome by its label, with the facts that count only with it."""
    blanket = demo.advisor.fitted.blanket
    units = {**blanket.units, **dict.fromkeys(blanket.unattached, ())}
    language, schema = demo.interview.language, demo.table.schema
    labels = {feature.name: feature.said(language).label for feature in schema}
    return [
        _say(demo, "together", fact=labels[head], others=", ".join(labels[name] for name in behind))
        if behind
        else labels[head]
        for head, behind in units.items()
    ]


def _draw_risk(demo: Demo, ax: "Axes") -> "Axes":
    """Draw how many of those who act are let down against the cost of asking, for stricter and less
    strict rules, with labels in the applicant's language.

    Parameters
    ----------
    demo
        The demo.
    ax
        Where it is drawn; it is also returned.
    """
    ax = demo.advisor.certificate.draw(ax)
    handles, labels = ax.get_legend_handles_labels()
    keys = [
        label if label in ("bound", "risk") else "alpha" if label.startswith("alpha") else "rule"
        for label in labels
    ]
    ax.legend(handles, [_say(demo, key) for key in keys], frameon=False)
    ax.set(xlabel=_say(demo, "cost_axis"), ylabel=_say(demo, "risk_axis"))
    return ax


def _evaluation(demo: Demo) -> str:
    """How the advisor does on the people of the test part."""
    test, language = demo.advisor.evaluation_, demo.interview.language
    shares = {
        "end": test.accuracy_end,
        "all": test.accuracy_all,
        "base": test.base_rate or 0.0,
        "risk": test.risk or 0.0,
    }
    words = {name: phrases.percent(share, language, 1) for name, share in shares.items()}
    words |= {name: phrases.number(getattr(test, name), language) for name in ("people", "n")}
    known = _say(demo, "evaluation", saved=phrases.percent(test.saved, language), **words)
    return f"{known} {_say(demo, 'evaluation_risk' if test.n else 'evaluation_nobody', **words)}"


def write_report(demo: Demo, folder: Path) -> Path:
    """Write the report to ``report.html`` in a folder.

    Parameters
    ----------
    demo
        What ``run_demo`` gives.
    folder
        The folder; it is made if need be.

    Returns
    -------
    pathlib.Path
        The path of the report.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    write_text(path, report(demo))
    return path
