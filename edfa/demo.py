"""The adult data set from table to receipt: fit an advisor, interview one person for each way in
which an interview ends early, and write a report.

``run_demo`` does the work; ``story`` and ``report`` tell it as text and as an HTML page.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from edfa.advice.advisor import Advisor
from edfa.advice.interview import Interview, K
from edfa.certification.certificate import Certificate
from edfa.certification.endings import ENDINGS, EndingName
from edfa.data.catalog import load
from edfa.data.rules import Rules
from edfa.data.table import Table
from edfa.text import html, narrate, phrases
from edfa.text.interview_page import interview_html
from edfa.text.record import InterviewRecord
from edfa.text.summaries import say_summary
from edfa.writing import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEMO_PEOPLE = 4_000  # that all three endings can be promised with, in seconds
RULES = Rules(never_ask=("race", "sex"))  # on top of the card's
MAX_INTERVIEWED = 40  # people who are interviewed
ENOUGH_QUESTIONS = 2  # that make an interview worth watching
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """One question, its answer and what is said after it, all in the person's language."""

    question: str
    answer: str
    decision: str


@dataclass(frozen=True, eq=False)
class Applicant:
    """One person, interviewed until an ending.

    Parameters
    ----------
    facts
        All of their answers by feature name, also those that were not asked for.
    interview
        The interview, as far as it went.
    turns
        Its questions.
    """

    facts: Facts
    interview: Interview
    turns: tuple[Turn, ...]

    @property
    def kept(self) -> bool:
        """Whether what they were told holds once all of their answers are known.

        Who was told that they are granted is granted; who was told to act is refused, and granted
        with the plan; whom nothing helps is refused and has no plan.
        """
        known = self.interview.copy()
        while (question := known.question) is not None:
            known.answer({question.feature: self.facts[question.feature]})
        granted, ending = known.decision.favourable, self.interview.standing.ending
        if ending != "act":
            return granted if ending == "granted" else not granted and not known.plans()
        plans, fitted = self.interview.assessment.plans(K), self.interview.fitted
        # with what follows from the plan by itself, such as the time that it takes
        row = plans.make_changes(plans.first[:1], known.assessment.X)
        followed = bool(fitted.predictor.predict(row)[0] == fitted.favourable)
        return not granted and followed


@dataclass(frozen=True, eq=False)
class Demo:
    """A fitted advisor, and a person for each ending.

    Parameters
    ----------
    table
        The adult data set.
    advisor
        The advisor that was fitted on it.
    applicants
        One person for each ending, by its name.
    """

    table: Table
    advisor: Advisor
    applicants: Mapping[EndingName, Applicant]

    @property
    def language(self) -> str:
        """The language of the interviews."""
        return next(iter(self.applicants.values())).interview.language

    def summary(self) -> dict[str, Any]:
        """The result of the demo by name, as data or as nouns with ``to_json``."""
        return {
            "units": dict(self.advisor.fitted.blanket.units),
            "endings": self.advisor.endings,
            "evaluation": self.advisor.evaluation_,
            "applicants": {
                name: {
                    "asked": [n for moment in one.interview.timeline[1:] for n in moment.facts],
                    "status": one.interview.standing.status,
                    "plans": [str(plan) for plan in one.interview.plans()],
                    "kept": one.kept,
                }
                for name, one in self.applicants.items()
            },
        }


def run_demo(language: str = "en", progress: Callable[[str, int, int], None] | None = None) -> Demo:
    """Fit an advisor, interview test people, and return for each ending one who is worth watching:
    the first who is told it before the last question and after at least two, or the one who was
    asked most.

    Parameters
    ----------
    language
        The language of the interviews, ``"en"`` or ``"de"``.
    progress
        As for ``Advisor.fit``.
    """
    phrases.table(language)  # an unknown language is an error before any work
    table = load("adult", cap=DEMO_PEOPLE)
    advisor = Advisor(threshold="balanced", rules=RULES, reference="trajectory_end")
    advisor.fit(table, progress)
    chosen: dict[EndingName, Applicant] = {}
    for facts in _people(table):
        one = interview_person(advisor, facts, language)
        standing = one.interview.standing
        if standing.promised and not standing.complete and standing.ending is not None:
            best = chosen.setdefault(standing.ending, one)
            if len(best.turns) < min(len(one.turns), ENOUGH_QUESTIONS):
                chosen[standing.ending] = one
        if len(chosen) == len(ENDINGS) and all(
            len(best.turns) >= ENOUGH_QUESTIONS for best in chosen.values()
        ):
            break
    return Demo(table, advisor, {name: chosen[name] for name in ENDINGS if name in chosen})


def _people(table: Table) -> Iterator[Facts]:
    """Test people all of whose values are recorded and occur in training; ``MAX_INTERVIEWED`` at
    most.
    """
    frame = table.test.frame[list(table.schema.names)].reset_index(drop=True)
    familiar = (table.encoder.decode(table.test.X) == frame).all(axis=1).to_numpy()
    people: Any = frame[familiar].head(MAX_INTERVIEWED).to_dict("records")
    yield from people


def interview_person(advisor: Advisor, facts: Facts, language: str) -> Applicant:
    """Ask one person until an ending.

    Parameters
    ----------
    advisor
        The advisor.
    facts
        All of the person's answers by feature name.
    language
        The language of the interview.
    """
    schema = advisor.schema
    interview = advisor.interview({name: facts[name] for name in schema.start}, language=language)
    turns = []
    while (question := interview.question) is not None and not interview.standing.ends:
        text = narrate.question(question, schema, language)
        answer = phrases.value(schema[question.feature], facts[question.feature], language)
        interview.answer({question.feature: facts[question.feature]})
        turns.append(Turn(text, answer, InterviewRecord(interview).decision_text))
    return Applicant(facts, interview, tuple(turns))


def report(demo: Demo) -> str:
    """The demo as one HTML page that loads nothing: first the people, then how the advice came
    about.

    All of it is in the language of the interviews.

    Parameters
    ----------
    demo
        What ``run_demo`` gives.

    Returns
    -------
    str
        The page.
    """
    people, facts = phrases.number(len(demo.table), demo.language), len(demo.table.schema)
    parts = [html.paragraph(_say(demo, "lead", people=people, facts=facts))]
    for name, one in demo.applicants.items():
        kept = _say(demo, f"{name}_kept" if one.kept else f"{name}_broken")
        parts += [
            html.heading(_say(demo, name), 2),
            html.bullet_list(_asked(demo, one)),
            interview_html(one.interview),
            html.paragraph(kept),
            Markup("<details><summary>{}</summary><pre>{}</pre></details>").format(
                _say(demo, "receipt"), one.interview.receipt().to_json()
            ),
        ]
    for title, lines in _behind(demo):
        parts += [html.heading(title, 2), html.bullet_list(lines)]
    parts.append(html.figure(lambda ax: _draw_risk(demo, ax), _say(demo, "risk_title")))
    return html.page(_say(demo, "title"), *parts, language=demo.language)


def story(demo: Demo) -> list[tuple[str, list[str]]]:
    """The demo as lines of text under headings, for the terminal: first the people, then how the
    advice came about.

    Returns
    -------
    list
        Headings with their lines, in the order of the report.
    """
    told = []
    for name, one in demo.applicants.items():
        said = InterviewRecord(one.interview).sentences()
        several = len(said["plans"]) > 1
        plans = [f"{i}. {text}" if several else text for i, text in enumerate(said["plans"], 1)]
        kept = _say(demo, f"{name}_kept" if one.kept else f"{name}_broken")
        decided = [] if one.turns else said["decision"]  # it was the last turn's
        lines = [*_asked(demo, one), *decided, *plans, *said["standing"], kept]
        told.append((_say(demo, name), lines))
    return [*told, *_behind(demo)]


def _behind(demo: Demo) -> list[tuple[str, list[str]]]:
    """How the advice came about, as lines under headings."""
    promises = [
        made.words(demo.language)
        for made in demo.advisor.endings.values()
        if isinstance(made, Certificate)
    ]
    evaluation = _say(demo, "on_test", text=_evaluation(demo))
    return [
        (_say(demo, "counting"), _units(demo)),
        (_say(demo, "acting"), [*promises, evaluation]),
    ]


def _say(demo: Demo, key: str, **values: object) -> str:
    """A sentence of the report in the language of the interviews."""
    return say_summary(f"demo.{key}", demo.language, **values)


def _asked(demo: Demo, one: Applicant) -> list[str]:
    """What is known of a person from the start, and the questions with what was answered."""
    schema, language = demo.table.schema, demo.language
    values = {name: phrases.value(schema[name], one.facts[name], language) for name in schema.start}
    facts = [f"{schema[name].said(language).label} {value}" for name, value in values.items()]
    turns = [
        line
        for turn in one.turns
        for line in (f"? {turn.question}", f"> {turn.answer}", f"  {turn.decision}")
    ]
    return [_say(demo, "start", facts=", ".join(facts)), *turns]


def _units(demo: Demo) -> list[str]:
    """Each parent or child of the outcome by its label, with the facts that count only with it."""
    blanket = demo.advisor.fitted.blanket
    units = {**blanket.units, **dict.fromkeys(blanket.unattached, ())}
    schema = demo.table.schema
    labels = {feature.name: feature.said(demo.language).label for feature in schema}
    return [
        _say(demo, "together", fact=labels[head], others=", ".join(labels[name] for name in behind))
        if behind
        else labels[head]
        for head, behind in units.items()
    ]


def _draw_risk(demo: Demo, ax: "Axes") -> "Axes":
    """Draw how many of those who act do so in vain against the cost of asking, for stricter and
    less strict rules, with labels in the language of the interviews.

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
    test, language = demo.advisor.evaluation_, demo.language
    shares = {
        "end": test.accuracy_end,
        "all": test.accuracy_all,
        "base": test.base_rate or 0.0,
        "saved": test.saved,
    }
    words = {name: phrases.percent(share, language, 1) for name, share in shares.items()}
    sentences = [_say(demo, "evaluation", people=phrases.number(test.people, language), **words)]
    for name, told in test.endings.items():
        wrong = phrases.percent(told.wrong or 0.0, language, 1)
        n = phrases.number(told.early, language)
        sentences += [_say(demo, f"evaluation_{name}", n=n, wrong=wrong)] if told.early else []
    return " ".join(sentences)


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
