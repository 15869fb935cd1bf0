"""What the page shows of an interview: its record, sorted for templates, which only lay it out.

The main entry is ``View``. Headings stand in the templates; what is said of plans, questions and
standing comes from ``edfa.text.record.InterviewRecord``, as everywhere else.
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

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LIGHTS: Mapping[str, str] = {
    "act": "yes",
    "ask": "wait",
    "pending": "wait",
    "granted": "granted",
    "nothing": "nothing",
}
"""The sign that stands for a standing; of others "none"."""


@dataclass(frozen=True)
class Row:
    """One changed fact of a plan.

    Parameters
    ----------
    feature, label
        The feature and its label.
    before, after
        Its value now and by the plan, in words.
    works
        What else would be enough, or that it comes by waiting; empty: nothing else is known.
    """

    feature: str
    label: str
    before: str
    after: str
    works: str


@dataclass(frozen=True)
class PlanView:
    """The card of a plan.

    Parameters
    ----------
    id
        The id of the plan.
    letter, name
        The letter it is called by, and its name with that letter.
    rows
        Its changes.
    facts
        What else is said of it, by the last part of the key of the heading: ``plans.<key>``.
    notes
        Sentences on what speaks against relying on it.
    chosen
        Whether the person follows it.
    first
        Whether it is the first plan, and the person may act on it.
    """

    id: str
    letter: str
    name: str
    rows: tuple[Row, ...]
    facts: Mapping[str, str]
    notes: tuple[str, ...]
    chosen: bool
    first: bool


@dataclass(frozen=True)
class Answer:
    """One fact that was told or declined.

    Parameters
    ----------
    name, label
        The feature and its label.
    value
        The value in words, or that it was declined.
    undo
        Whether it can be taken back.
    """

    name: str
    label: str
    value: str
    undo: bool


@dataclass(frozen=True, eq=False)
class View:
    """An interview as a page shows it.

    Parameters
    ----------
    record
        The interview in facts and words.
    wording
        The words of the page.
    chosen
        The id of the plan that the person follows, if any.
    contact
        Whom people can talk to, in the operator's words; empty: nobody is named.
    """

    record: InterviewRecord
    wording: Wording
    chosen: str | None = None
    contact: str = ""

    @property
    def outcome(self) -> str:
        """The decision in words, or that it is too early to say."""
        if self.record.too_early:
            return self.wording("decision.open")
        return self.wording.outcome(self.record.decision.outcome)

    @property
    def headline(self) -> str:
        """How the interview ends, where that is promised; else the decision as far as is known."""
        record, wording = self.record, self.wording
        if record.too_early:
            return wording("decision.open")
        if record.several_endings and record.standing.promised:
            return wording(f"decision.{record.standing.status}", outcome=self.outcome)
        return wording("decision.title", outcome=self.outcome)

    @property
    def decided(self) -> str:
        """The decision as far as is known, where the headline is another; else empty."""
        title = self.wording("decision.title", outcome=self.outcome)
        standing = self.record.standing
        refused = standing.promised and standing.status != "granted"
        return title if refused and title != self.headline else ""

    @property
    def estimate(self) -> str:
        """The estimate and what is needed, as a sentence."""
        wording = self.wording
        return narrate.estimate(self.record.decision, wording.schema, wording.language)

    @property
    def light(self) -> str:
        """The sign of whether the person may act: ``"yes"``, ``"wait"``, ``"granted"``,
        ``"nothing"`` or ``"none"``; ``standing.<light>`` is the key of its word.
        """
        status = self.record.standing.status
        if status == "not_certified" and self.record.too_early:
            return "wait"
        if status == "no_plan":
            return "nothing" if self.record.question is None else "wait"
        return LIGHTS.get(status, "none")

    @property
    def standing(self) -> list[str]:
        """Sentences on whether the interview may end, and why."""
        standing, several = self.record.standing, self.record.several_endings
        sentences = self.record.say_standing(standing, self.contact)
        if self.light == "granted" and self.record.question is not None and not several:
            sentences.append(self.wording("standing.still_open"))
        if standing.since is not None and not standing.promised:
            key = "standing.earlier_ending" if several else "standing.earlier"
            sentences.append(self.wording(key, since=standing.since))
        return sentences

    @property
    def promise(self) -> str:
        """The promise in short; empty if none is made to people who are told so."""
        certificate, wording = self.record.interview.certificate, self.wording
        if certificate is None or certificate.loss == "recourse":
            return ""
        key = "promise" if certificate.loss == "let_down" else f"promise_{certificate.loss}"
        share = round(100 * certificate.alpha)
        return wording(f"standing.{key}", share, wanted=wording.wanted)

    @cached_property
    def plans(self) -> tuple[PlanView, ...]:
        """The cards of the plans that are offered now, the best first."""
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
        """The plans, at least one, side by side.

        Under a heading for each changed fact, and for each part of ``PlanView.facts``, stands a
        cell for each plan: what it says, and whether this is a change.
        """
        now, same = self.wording("now"), self.wording("plans.same")
        labels = {row.feature: row for plan in self.plans for row in plan.rows}
        goals = [{row.feature: row.after for row in plan.rows} for plan in self.plans]
        changes = [
            (
                f"{row.label} ({now}: {row.before})",
                [(goal.get(feature, same), feature in goal) for goal in goals],
            )
            for feature, row in labels.items()
        ]
        return changes + [
            (self.wording(f"plans.{key}"), [(plan.facts[key], False) for plan in self.plans])
            for key in self.plans[0].facts
        ]

    @property
    def lists(self) -> Mapping[str, list[str]]:
        """What is said of single facts, in three lists.

        ``turning`` would turn the decision, ``waiting`` would not yet, each with why; ``free`` made
        no difference. A person with the favourable decision is not told how to turn it.
        """
        wording, facts, person = self.wording, self.record.facts, self.record.interview.partition
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
                declined = name in self.record.interview.log.declined
                key = "declined" if declined else "unknown"
                waiting.append(wording(f"lists.{key}", label=label))
            elif reason is not None and name not in planned:
                waiting.append(wording("lists.not_alone", label=label))
        free = [wording.label(n) for n in person.alterfactual if n not in person.violations]
        return {"turning": turning, "waiting": waiting, "free": free}

    @cached_property
    def steps(self) -> tuple[timeline.Step, ...]:
        """The steps of the interview."""
        return timeline.show_steps(self.record.interview, self.wording)

    @property
    def drawing(self) -> timeline.Drawing:
        """A drawing of the steps."""
        return timeline.draw(self.steps)

    @property
    def answers(self) -> list[Answer]:
        """What was told and declined, in order. What was told at the start cannot be taken back."""
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
    if step.today:
        key = "plans.works_later" if step.today == step.before else "plans.works_today"
        lasts = wording(key, today=step.today)
        works = "; ".join(filter(None, [works, lasts]))
    elif isinstance(step.enough, tuple):
        works = wording("plans.works", low=step.enough[0], high=step.enough[1])
    elif step.enough:
        works = wording("plans.works_open", bound=step.enough)
    before, after = (
        phrases.unquoted(value, wording.language) for value in (step.before, step.after)
    )
    return Row(step.feature.name, wording.label(step.feature.name), before, after, works)


def _facts(offered: PlanRecord, wording: Wording) -> dict[str, str]:
    """What is said of a plan beside its changes, by the last part of the heading's key."""
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
    return {
        "after": wording("plans.after_value", before=before, after=after),
        "holds": holds,
        "people": people,
        "effort": wording("plans.effort_value", effort=effort),
        "time": time,
    }


def supposable(fitted: FittedAdvisor) -> tuple[str, ...]:
    """The facts that may be supposed to be different, in the order of the card: what the model
    looks at or the start has, unless it is sensitive.
    """
    relevant = zip(fitted.schema, fitted.relevant, strict=True)
    return tuple(f.name for f, matters in relevant if matters and not f.sensitive)


def suppose(now: View, then: View) -> tuple[str, Mapping[str, tuple[str, str]]]:
    """Compare an interview with one in which something is supposed.

    Parameters
    ----------
    now, then
        The interview as it stands, and as it would be.

    Returns
    -------
    verdict : str
        What would be otherwise, in a sentence.
    rows : Mapping
        What is now and what would be, by the last part of the key of the heading:
        ``suppose.<key>``.
    """
    before, after = _summary(now), _summary(then)
    key = "kept" if then.outcome == now.outcome else "differs"
    key = "open" if then.record.too_early else key
    verdict = now.wording(f"suppose.{'same' if before == after else key}", outcome=then.outcome)
    return verdict, {key: (text, after[key]) for key, text in before.items()}


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


def receipt_rows(view: View, receipt: Receipt) -> dict[str, str]:
    """Say what is on a receipt.

    Parameters
    ----------
    view
        The interview.
    receipt
        Its receipt.

    Returns
    -------
    dict
        Texts by the last part of the key of their heading: ``receipt.<key>``.
    """
    wording, none = view.wording, view.wording("receipt.none")
    signature = "receipt.signed" if receipt.signed else "receipt.not_signed"
    return {
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
