"""What the page shows of an interview: the record of it, sorted and headed for templates, which
only lay it out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from edfa.advice.fitted import FittedAdvisor
from edfa.advice.receipt import Receipt
from edfa.text import narrate, phrases
from edfa.text.record import InterviewRecord, PlanRecord
from edfa.text.steps import Step
from edfa_serve import timeline
from edfa_serve.limits import USUAL, make_controls
from edfa_serve.wording import Wording

__all__ = ["View", "receipt_rows", "supposable", "suppose"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LIGHTS: Mapping[str, str] = {"act": "yes", "ask": "wait", "pending": "wait", "granted": "granted"}
"""The sign that stands for a standing; of others "none"."""


@dataclass(frozen=True)
class Row:
    """One changed fact: its label, its value now and then, and what else would do."""

    feature: str
    label: str
    before: str
    after: str
    works: str


@dataclass(frozen=True)
class PlanView:
    """A plan's card. ``facts`` are pairs of a heading and what is said under it, ``notes`` what
    speaks against it.
    """

    id: str
    letter: str
    name: str
    rows: tuple[Row, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    chosen: bool
    first: bool


@dataclass(frozen=True)
class FactList:
    """One list: its title, a sentence before it, what is said of each fact, and what is said if
    there is none.
    """

    title: str
    items: tuple[str, ...]
    empty: str
    lead: str = ""


@dataclass(frozen=True)
class Answer:
    """One fact that was told, or declined (then ``value`` says so); ``undo``: it can be taken
    back.
    """

    name: str
    label: str
    value: str
    undo: bool


@dataclass(frozen=True, eq=False)
class View:
    """An interview as a page shows it; ``chosen`` is the id of the plan that the person follows."""

    record: InterviewRecord
    wording: Wording
    chosen: str | None = None

    @property
    def outcome(self) -> str:
        """What is decided."""
        return self.wording.outcome(self.record.decision.outcome)

    @property
    def estimate(self) -> str:
        """The estimate, and what is needed."""
        wording = self.wording
        return narrate.estimate(self.record.decision, wording.schema, wording.language)

    @property
    def light(self) -> str:
        """The sign of whether the person may act; ``standing.<light>`` is its word."""
        if self.record.standing.status == "no_plan":
            return "nothing" if self.record.question is None else "wait"
        return LIGHTS.get(self.record.standing.status, "none")

    @property
    def standing(self) -> list[str]:
        """Whether the person may act, and why."""
        standing, sentences = self.record.standing, [self.record.standing_text]
        if self.light == "granted" and self.record.question is not None:
            sentences.append(self.wording("standing.still_open"))
        if standing.since is not None and not standing.may_act:
            sentences.append(self.wording("standing.earlier", since=standing.since))
        return sentences

    @property
    def promise(self) -> str:
        """The promise in short, if there is one to people who are told to act."""
        certificate, wording = self.record.interview.certificate, self.wording
        if certificate is None or certificate.loss != "let_down":
            return ""
        return wording("standing.promise", round(100 * certificate.alpha), wanted=wording.wanted)

    @cached_property
    def plans(self) -> tuple[PlanView, ...]:
        """The cards of the plans that are offered now; the first is marked if the person may act on
        it.
        """
        wording, may_act = self.wording, self.record.standing.may_act
        uncovered = (wording("plans.covered", letter=LETTERS[0]),) if may_act else ()
        return tuple(
            PlanView(
                id=offered.plan.id,
                letter=letter,
                name=wording("plans.name", letter=letter),
                rows=tuple(_row(step, wording) for step in offered.steps),
                facts=_facts(offered, wording),
                notes=offered.notes + (uncovered if number else ()),
                chosen=offered.plan.id == self.chosen,
                first=may_act and number == 0,
            )
            for number, (letter, offered) in enumerate(
                zip(LETTERS, self.record.plans, strict=False)
            )
        )

    @property
    def comparison(self) -> list[tuple[str, list[tuple[str, bool]]]]:
        """The plans side by side: rows of a heading and a cell for each plan, with whether it is a
        change.
        """
        labels = {row.feature: row for plan in self.plans for row in plan.rows}
        goals = [{row.feature: row.after for row in plan.rows} for plan in self.plans]
        now, same = self.wording("now"), self.wording("plans.same")
        rows = [
            (
                f"{row.label} ({now}: {row.before})",
                [(goal.get(feature, same), feature in goal) for goal in goals],
            )
            for feature, row in labels.items()
        ]
        facts = zip(*(plan.facts for plan in self.plans), strict=True)
        return rows + [(said[0][0], [(text, False) for _, text in said]) for said in facts]

    @property
    def lists(self) -> tuple[FactList, ...]:
        """What would help if it changed, what would not help yet and why, what made no difference.

        Who has the favourable decision is not told how to turn it.
        """
        wording, facts, person = self.wording, self.record.facts, self.record.interview.partition
        declined, favourable = self.record.interview.log.declined, self.record.decision.favourable
        planned: dict[str, list[str]] = {}
        for plan in self.plans:
            for row in plan.rows:
                planned.setdefault(row.feature, []).append(plan.name)
        turning, waiting = [], []
        for name in wording.schema.names:
            reason, label = person.semifactual.get(name), wording.label(name)
            if name in planned and name not in person.violations:
                names = ", ".join(planned[name])
                turning.append(wording("lists.help_plan", label=label, plans=names))
            elif name in facts and reason is None:
                turning.append(facts[name])
            if reason == "blocked":
                waiting.append(facts[name])
            elif reason == "not_known":
                key = "declined" if name in declined else "unknown"
                waiting.append(wording(f"lists.{key}", label=label))
            elif reason is not None and name not in planned:
                waiting.append(wording("lists.not_alone", label=label))
        free = [name for name in person.alterfactual if name not in person.violations]
        titles = ("against", "nothing_yet") if favourable else ("help", "not_yet")
        return (
            FactList(wording(f"lists.{titles[0]}"), tuple(turning), wording("lists.empty_help")),
            FactList(wording(f"lists.{titles[1]}"), tuple(waiting), wording("lists.empty_not_yet")),
            FactList(
                wording("lists.no_difference"),
                tuple(map(wording.label, free)),
                wording("lists.empty_no_difference"),
                wording("lists.no_difference_lead"),
            ),
        )

    @cached_property
    def steps(self) -> tuple[timeline.Step, ...]:
        """How the person got here."""
        return timeline.show_steps(self.record.interview, self.wording)

    @property
    def drawing(self) -> timeline.Drawing:
        """Where a drawing of the steps has its parts."""
        return timeline.draw(self.steps)

    @property
    def answers(self) -> list[Answer]:
        """What was told and declined, in order; what was told at the start cannot be taken back."""
        answers, log = [], self.record.interview.log
        for number, event in enumerate(log.events):
            for name, value in event.facts.items():
                text = self.wording.value(name, value)
                if event.kind == "decline":
                    text = self.wording("answers.declined")
                if event.kind != "decline" or name in log.declined:
                    answers.append(Answer(name, self.wording.label(name), text, number > 0))
        return answers


def _row(step: Step, wording: Wording) -> Row:
    """One change, in words."""
    works = wording("plans.wait") if step.time else ""
    if isinstance(step.enough, tuple):
        works = wording("plans.works", low=step.enough[0], high=step.enough[1])
    elif step.enough:
        works = wording("plans.works_open", bound=step.enough)
    before, after = (
        phrases.unquoted(value, wording.language) for value in (step.before, step.after)
    )
    return Row(step.feature.name, wording.label(step.feature.name), before, after, works)


def _facts(offered: PlanRecord, wording: Wording) -> tuple[tuple[str, str], ...]:
    """What is said of a plan beside its changes."""
    plan, language, not_said = offered.plan, wording.language, wording("plans.holds_unknown")
    shares = phrases.hundredths(plan.probability_before, plan.probability_after, language)
    before, after = (wording("of", n=share, total=100) for share in shares)
    cases = None if plan.survival is None else phrases.cases(language, plan.survival)
    holds = wording("plans.holds_value", cases=cases[0]) if cases else not_said
    if plan.survival == 1 and not offered.unknown:
        holds = wording("plans.holds_all")
    people = not_said
    if plan.support and plan.support_share is not None:
        well = wording.number(round(plan.support * plan.support_share))
        people = wording("plans.people_value", plan.support, well=well)
    elif plan.support is not None:
        people = wording("plans.people_none")
    effort, time = wording.number(max(round(plan.effort, 2), 0.01)), wording("plans.at_once")
    if plan.months:
        time = wording("plans.about", time=phrases.duration(plan.months, language))
    facts = {
        "after": wording("plans.after_value", before=before, after=after),
        "holds": holds,
        "people": people,
        "effort": wording("plans.effort_value", effort=effort),
        "time": time,
    }
    return tuple((wording(f"plans.{heading}"), text) for heading, text in facts.items())


def supposable(fitted: FittedAdvisor) -> tuple[str, ...]:
    """The facts that may be supposed to be different: what the model looks at or the start has,
    nothing sensitive.
    """
    relevant = zip(fitted.schema, fitted.relevant, strict=True)
    return tuple(f.name for f, matters in relevant if matters and not f.sensitive)


def suppose(now: View, then: View) -> tuple[str, list[tuple[str, str, str, bool]]]:
    """What would be otherwise: the verdict in a sentence, and rows of a heading, what is now and
    then, and whether they differ.
    """
    wording, before, after = now.wording, _summary(now), _summary(then)
    rows = [
        (wording(f"suppose.{key}"), b, after[key], after[key] != b) for key, b in before.items()
    ]
    key = "kept" if then.record.decision.outcome == now.record.decision.outcome else "differs"
    return wording(f"suppose.{'same' if before == after else key}", outcome=then.outcome), rows


def _summary(view: View) -> dict[str, str]:
    """Decision, estimate, whether to act, and the plan with the fewest changes."""
    wording, rows = view.wording, min((plan.rows for plan in view.plans), key=len, default=())
    steps = "; ".join(f"{row.label}: {row.before} → {row.after}" for row in rows)
    return {
        "decision": view.outcome,
        "estimate": wording.count(view.record.decision),
        "act": wording(f"standing.{view.light}"),
        "plan": steps or wording("suppose.no_plan"),
    }


def receipt_rows(view: View, receipt: Receipt) -> list[tuple[str, str]]:
    """Rows of a heading and what a receipt says under it."""
    wording, none = view.wording, view.wording("receipt.none")
    signature = "receipt.signed" if receipt.signed else "receipt.not_signed"
    rows = {
        "decision": view.outcome,
        "estimate": view.estimate,
        "standing": f"{wording(f'standing.{view.light}')}. {' '.join(view.standing)}",
        "certificate": receipt.certificate or wording("receipt.no_promise"),
        "chosen": next((plan.name for plan in view.plans if plan.chosen), none),
        "limits": _limits(view) or none,
        "unknown": ", ".join(map(wording.label, receipt.unknown)) or none,
        "made": receipt.time.replace("T", " ").replace("+00:00", " UTC"),
        "advisor": receipt.advisor,
        "signature": wording(signature, key=receipt.key),
    }
    return [(wording(f"receipt.{key}"), text) for key, text in rows.items()]


def _limits(view: View) -> str:
    """The person's own limits, in words."""
    said, wording, interview = [], view.wording, view.record.interview
    for control in make_controls(interview.fitted, wording, interview.overlay):
        parts = [grade.text for grade in control.choices if grade.chosen and grade.value != USUAL]
        if control.low:
            ends = (wording("limits.low"), control.low, wording("limits.high"), control.high)
            parts.append(" ".join(ends))
        said += [f"{control.label}: {', '.join(parts)}"] if parts else []
    return "; ".join(said)
