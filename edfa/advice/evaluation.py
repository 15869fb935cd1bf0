"""How an advisor does on people it has not met: what it costs, how often it is right, whether its
plans last; and what it costs its model to obey the card's directions.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from edfa.acquisition.trajectory import Trajectory
from edfa.advice.fitted import EXCESS, FittedAdvisor
from edfa.advice.promise import Rollout
from edfa.certification.endings import Ends, stop_endings
from edfa.certification.records import Loss, Records
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.people import Background
from edfa.predictors.base import Predictor, UnfittedError
from edfa.predictors.user_model.fidelity import Fidelity, measure_fidelity
from edfa.reading import parse
from edfa.typing import BoolArray, Float32Array

OTHERS_TOLD = {"granted": "they are granted", "nothing": "nothing helps"}


@dataclass(frozen=True, kw_only=True)
class EndingOutcomes:
    """What becomes of people who are told one ending.

    Parameters
    ----------
    n, share
        How many were told so, at any step, and their share of all people.
    early
        How many of them were told so before their last question.
    wrong, wrong_error
        The share of those told early to whom the promise was broken, and its standard error; None:
        nobody was told so early.
    """

    n: int
    share: float
    early: int
    wrong: float | None = None
    wrong_error: float | None = None


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """What becomes of some people whom an advisor has not met.

    Parameters
    ----------
    people
        Their number.
    cost
        The mean of what a person costs until they stop.
    refused
        The share of people who are refused at the end.
    coverage
        The share of those who have a plan there; None: nobody is refused.
    n
        How many were told to act; 0 for an advisor without a certificate.
    early, acting
        Of people with a plan, the share told to act before their last question, and at all.
    risk, risk_error
        Of the ``n``, the share to whom the promise about plans was broken, and its standard error:
        who acted in vain, or with the loss "let_down" did the plan and were still refused.
    wasted
        Of the ``n``, the share who would have been granted without a plan.
    changes, effort
        The means of what the ``n`` change, and of its effort.
    excess
        Of those told to act before their last question who have a plan in the end, the share whose
        plan takes more than 1.5 times the effort of that one.
    endings
        What becomes of people who are told each ending, by its name.
    loss
        What counts as a broken promise about plans.
    """

    people: int
    cost: float
    refused: float
    coverage: float | None
    n: int
    early: float | None
    risk: float | None = None
    risk_error: float | None = None
    wasted: float | None = None
    acting: float | None = None
    changes: float | None = None
    effort: float | None = None
    excess: float | None = None
    endings: Mapping[str, EndingOutcomes] = field(default_factory=dict)
    loss: Loss = "let_down"

    @property
    def broken(self) -> str:
        """What the promise about plans calls its failures."""
        return "in vain" if self.loss == "in_vain" else "were let down"


@dataclass(frozen=True, kw_only=True)
class GroupEvaluation(Outcomes):
    """An advisor on people of one group whom it has not met.

    Parameters
    ----------
    certified
        Whether the group has a certificate; if not, nobody of it is told to act.
    """

    certified: bool

    def __str__(self) -> str:
        plans = (
            "nobody is refused"
            if self.coverage is None
            else f"{self.coverage:.0%} of the refused have a plan"
        )
        acts = "nobody is told to act" if self.certified else "no certificate for this group"
        if self.n:
            acts = (
                f"of {self.n} told to act {self.risk:.1%} {self.broken} "
                f"({self.wasted:.1%} needed no plan)"
            )
        does = (
            ""
            if self.changes is None
            else f", {self.changes:.2f} changes, effort {self.effort:.2f}"
        )
        return f"{self.people} people, cost {self.cost:.2f}; {plans}; {acts}{does}"


@dataclass(frozen=True, kw_only=True)
class AdvisorEvaluation(Outcomes):
    """An advisor on people it has not met; ``evaluate`` makes it.

    Parameters
    ----------
    accuracy
        That of the decision where people stop (early under the certificate, or at the end).
    accuracy_end, accuracy_all
        That at the end of the policy's order, and of the model that knows every feature.
    cost_end, cost_all
        The mean of what a person costs to the end, and the price of everything.
    base_rate
        The share of the commonest class, which somebody who knows nothing is right about.
    balanced
        The mean accuracy of the classes at the end of the policy's order.
    auroc
        How well the model at the end tells the favourable class from the rest (0.5: not at all).
    groups
        What becomes of each group of people, by its label, if the advisor has groups.
    fidelity
        How near what is said before everything is known comes to a user model, if one decides.
    """

    accuracy: float
    accuracy_end: float
    accuracy_all: float
    cost_end: float
    cost_all: float
    base_rate: float | None = None
    balanced: float = 0.5
    auroc: float | None = None
    groups: Mapping[str, GroupEvaluation] = field(default_factory=dict)
    fidelity: Fidelity | None = None

    @property
    def saved(self) -> float:
        """The share of the cost of everything that people are spared."""
        return 1 - self.cost / self.cost_all if self.cost_all else 0.0

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "AdvisorEvaluation":
        """Read what ``to_json`` wrote."""
        return parse(cls, json.loads(text), "evaluation")

    @property
    def sentence(self) -> str:
        """The most important measures of all people together, in words."""
        risk = (
            f"of {self.n} people told to act {self.risk:.1%} {self.broken}"
            if self.n
            else "nobody is told to act"
        )
        for name, words in OTHERS_TOLD.items():
            told = self.endings.get(name)
            if told is not None and told.wrong is not None:
                risk += f", of {told.early} told early that {words} {told.wrong:.1%} wrongly"
        auroc = "" if self.auroc is None else f"AUROC {self.auroc:.3f}, "
        return (
            f"{self.people} people: balanced accuracy {self.balanced:.3f} when all is asked "
            f"(0.5 knowing nothing), {auroc}{self.saved:.0%} of the cost saved; {risk}."
        )

    def __str__(self) -> str:
        return "\n".join(
            [self.sentence, *(f"{label}: {group}" for label, group in self.groups.items())]
        )


def evaluate(fitted: FittedAdvisor, people: Table, rollout: Rollout) -> AdvisorEvaluation:
    """Compare what ``roll_out`` found about some people with their true outcomes.

    Parameters
    ----------
    fitted
        The advisor, with its certificate.
    people
        The people, with their outcomes: the test part of the advisor's table.
    rollout
        What was asked, planned and found of them, in the same order.

    Raises
    ------
    UnfittedError
        If the advisor has no certificate.
    """
    trajectory, labels = rollout.trajectory, fitted.group_of(people)
    if fitted.promise.certificate is None:
        raise UnfittedError("there is no certificate to check; call certify(people) first")
    last, truth, decided = trajectory.last, people.y, trajectory.decision
    ends = stop_endings(
        rollout.endings, {name: fitted.tau_for(labels, name) for name in rollout.endings}
    )
    ended = ends.row
    everybody = np.ones(len(people), dtype=bool)
    return AdvisorEvaluation(
        accuracy=float((decided[ended] == truth).mean()),
        accuracy_end=float((decided[last] == truth).mean()),
        accuracy_all=float((fitted.model.predict(people.X) == truth).mean()),
        cost_end=float(trajectory.spent[last].mean()),
        cost_all=float(fitted.schema.costs.sum()),
        balanced=float(balanced_accuracy_score(truth, decided[last])),
        base_rate=float(np.bincount(truth).max() / len(truth)),
        auroc=float(
            roc_auc_score(
                truth == fitted.favourable, trajectory.probabilities[last, fitted.favourable]
            )
        ),
        **_measure(fitted, rollout, ends, everybody),
        groups={
            label: GroupEvaluation(
                certified=fitted.certificate_for(label) is not None,
                **_measure(fitted, rollout, ends, labels == label),
            )
            for label in sorted(set(labels.tolist()) - {None})
        },
        fidelity=fidelity_of(fitted.model, people.X, trajectory),
    )


def fidelity_of(model: Predictor, X: Float32Array, trajectory: Trajectory) -> Fidelity | None:  # noqa: N803
    """How near the answers before everything is known come to a user model; None for any other
    model.

    Parameters
    ----------
    model
        The advisor's model.
    X
        Complete encoded people who took no part in fitting, (people, features).
    trajectory
        How they were asked.
    """
    if model.refits:
        return None
    states = trajectory.people()
    missing = ~model.is_enough(states.known)
    return measure_fidelity(model, X, (states.X[missing], X[states.person[missing]]))


def _measure(
    fitted: FittedAdvisor, rollout: Rollout, ends: Ends, some: BoolArray
) -> dict[str, Any]:
    """The fields of ``Outcomes`` for some people.

    Parameters
    ----------
    fitted, rollout
        The advisor, and what was asked, planned and found of everybody.
    ends
        Where each person stops, and what they are told, (people,) each.
    some
        Who is measured, (people,).
    """
    ended, acts = ends.row, ends.ending == "act"
    trajectory, plans = rollout.trajectory, rollout.plans
    last = trajectory.last
    refused = (trajectory.decision[last] != fitted.favourable) & some
    planned = (np.add.reduceat(plans.legal, np.append(0, last[:-1] + 1)) > 0) & some
    early, n_planned = int((acts & some & (ended < last)).sum()), int(planned.sum())
    row = ended[acts & some]
    n, plan = len(row), plans.first[row]
    measures: dict[str, Any] = {
        "people": int(some.sum()),
        "cost": float(trajectory.spent[ended][some].mean()),
        "refused": float(refused.sum() / some.sum()),
        "coverage": float(plans.legal[last][refused].mean()) if refused.any() else None,
        "early": early / n_planned if n_planned else None,
        "n": n,
        "loss": fitted.promise.ending.loss,
        "endings": {
            name: _measure_ending(
                records, ends, (ends.ending == name) & some, ended < last, int(some.sum())
            )
            for name, records in rollout.endings.items()
        },
    }
    if n:
        risk = float(np.asarray(rollout.records.loss)[row].mean())
        measures |= {
            "risk": risk,
            "risk_error": float(np.sqrt(risk * (1 - risk) / n)),
            "acting": n / n_planned,
            "wasted": float(np.asarray(rollout.records.wasted)[row].mean()),
            "changes": float(plans.l0[plan].mean()),
            "effort": float(plans.effort[plan].mean()),
        }
    both = acts & some & (ended < last) & plans.legal[last]
    if both.any():
        now, then = (plans.effort[plans.first[rows[both]]] for rows in (ended, last))
        measures["excess"] = float((now > EXCESS * then).mean())
    return measures


def _measure_ending(
    records: Records, ends: Ends, some: BoolArray, early: BoolArray, size: int
) -> EndingOutcomes:
    """What becomes of some people (people,) who are told an ending with these records.

    ``early`` says who stops before their last question, (people,); ``size`` is the number of people
    among whom they are.
    """
    rows = ends.row[some & early]
    told = EndingOutcomes(n=int(some.sum()), share=int(some.sum()) / size, early=len(rows))
    if not len(rows):
        return told
    wrong = float(np.asarray(records.loss)[rows].mean())
    return replace(told, wrong=wrong, wrong_error=float(np.sqrt(wrong * (1 - wrong) / len(rows))))


@dataclass(frozen=True)
class Comparison:
    """How well two models order some people by their chance of the favourable class: with
    directions, and without.

    Parameters
    ----------
    people
        The number of people.
    auroc, auroc_free
        The chances that of two people, one with the favourable outcome and one without, the former
        is given the higher probability: with directions, and without.
    """

    people: int
    auroc: float
    auroc_free: float

    @property
    def lost(self) -> float:
        """What the directions cost; below zero where they help."""
        return self.auroc_free - self.auroc

    @property
    def sentence(self) -> str:
        """Both figures and their difference, in one line."""
        verb = "cost" if self.lost >= 0 else "gain"
        return (
            f"Directions of the card {verb} {abs(self.lost):.4f} of the AUROC: {self.auroc:.4f} "
            f"with them, {self.auroc_free:.4f} without ({self.people} people)."
        )

    def to_json(self) -> str:
        """As JSON, with ``lost``."""
        return json.dumps(asdict(self) | {"lost": self.lost})


def check_comparable(schema: Schema, obey_directions: bool = True) -> None:
    """Raise SettingError where ``compare_free`` has nothing to compare.

    Parameters
    ----------
    schema
        The card; it must have directions.
    obey_directions
        Whether the advisor's model obeys them.
    """
    if not obey_directions:
        raise SettingError(
            "a model that ignores the directions of the card cannot be compared with one "
            "that is free"
        )
    if not any(feature.monotone for feature in schema):
        raise SettingError(
            "the card has no directions to compare with; say which way is good: monotone = 'up'"
        )


def compare_free(fitted: FittedAdvisor, people: Table) -> Comparison:
    """Fit the advisor's model once more without directions, and compare the two.

    Parameters
    ----------
    fitted
        The advisor. Both models are shown what its policy shows, with everything of it known.
    people
        People of whom neither has learnt, with their outcomes: the test part of a table.
    """
    if not any(fitted.model.get_params(deep=False).get("monotone") or ()):
        raise SettingError(f"this {type(fitted.model).__name__} has no directions to compare with")
    train, policy = fitted.train, fitted.policy
    free: Predictor = clone(fitted.model).set_params(monotone=None).fit(train.X, train.y)
    other = Background.of(train, free, policy.blanket, aligned=policy.aligned).predictor
    good, aurocs = people.y == fitted.favourable, []
    for model in (fitted.predictor, other):
        chances = model.predict_proba(people.X)[:, fitted.favourable]
        aurocs.append(float(roc_auc_score(good, chances)))
    return Comparison(len(people), *aurocs)
