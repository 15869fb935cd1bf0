"""How an advisor does on people it has not met: what it costs, how often it is right, whether its plans last."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from edfa.acquisition.loop import run_policy
from edfa.acquisition.trajectory import Trajectory
from edfa.advice.assessment import FittedAdvisor
from edfa.advice.judges import draw_judges
from edfa.certification.records import Records
from edfa.certification.replay import replay
from edfa.data.table import Table
from edfa.parsing import parse
from edfa.predictors.base import UnfittedError
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.typing import Float32Array, IntArray

__all__ = ["AdvisorEvaluation", "Rollout", "ask_and_replay", "evaluate", "replay_promise", "roll_out"]


@dataclass(frozen=True, eq=False)
class Rollout:
    """People who were asked to the end: what was asked, the plans at every step, and what became of each."""

    trajectory: Trajectory
    plans: Plans
    records: Records


def roll_out(
    fitted: FittedAdvisor,
    X: Float32Array,  # noqa: N803
    progress: Callable[[int, int], None] | None = None,
    n_jobs: int | None = -1,
) -> Rollout:
    """Ask everybody in the policy's order, to the end; then hold each step's first plan against what is known there.

    The operator's rules hold for questions and plans.

    ``X`` are complete encoded rows, (people, features). ``progress`` is called with the numbers of states that have
    been searched for plans, and of all.
    """
    trajectory = run_policy(X, fitted.policy, fitted.background, fitted.budget, fitted.limits)
    plans = find_recourse(
        trajectory,
        fitted.searcher,
        constraints=fitted.limits,
        desired_class=fitted.favourable,
        n_jobs=n_jobs,
        progress=progress,
    )
    return Rollout(trajectory, plans, replay_promise(fitted, plans, X))


def ask_and_replay(fitted: FittedAdvisor, X: Float32Array, judge: IntArray) -> Records:  # noqa: N803
    """The records of some people by themselves, with the judge of each (people,), to be joined with those of others."""
    plans = roll_out(fitted, X, n_jobs=1).plans
    return replay_promise(fitted, plans, X, judge)


def replay_promise(
    fitted: FittedAdvisor,
    plans: Plans,
    X: Float32Array,  # noqa: N803
    judge: IntArray | None = None,
) -> Records:
    """Hold plans of complete encoded people X (people, features) against what the advisor's promise is about.

    A loss is a person who did the plan and is still refused. ``judge`` (people,) is each person's, drawn unless given.
    """
    signal: Any = fitted.signal if len(plans) else np.ones(len(plans.people))  # there is nothing to watch
    against: dict[str, Any] = {"reference": fitted.reference}
    if fitted.reference != "trajectory_end":
        against["whole"] = X
    if fitted.reference == "retrained":
        against |= {"judges": fitted.judges, "judge": draw_judges(fitted, X) if judge is None else judge}
    records = replay(
        plans,
        favourable=fitted.favourable,
        signal=signal,
        advisor=fitted.fingerprint,
        loss="let_down",
        **against,
    )
    return replace(records, signal_name=fitted.signal)


@dataclass(frozen=True)
class AdvisorEvaluation:
    """An advisor on people it has not met.

    ``accuracy`` is that of the decision where people stop (early under the certificate, or at the end),
    ``accuracy_end`` at the end of the policy's order, ``accuracy_all`` of the model that knows every feature.
    ``cost`` is what a person costs until they stop, ``cost_end`` to the end, ``cost_all`` for everything.

    Of ``n`` people who were told to act, a share ``risk`` did the plan and were still refused by what the promise is
    held against, with the standard error ``risk_error``, and a share ``wasted`` would have been granted without it.
    ``early`` is the share of people with a plan who were told to act before their last question, ``acting`` of those
    who were told to act at all; ``changes`` and ``effort`` are the means of what they do. Nobody is told to act by an
    advisor without a certificate.

    ``refused`` is the share of people refused at the end, ``coverage`` the share of those who have a plan there.
    ``base_rate`` is the share of the commonest class, which somebody who knows nothing is right about, and ``auroc``
    how well the model at the end tells the favourable class from the rest (0.5: not at all).
    """

    people: int
    accuracy: float
    accuracy_end: float
    accuracy_all: float
    cost: float
    cost_end: float
    cost_all: float
    n: int
    risk: float | None
    risk_error: float | None
    early: float | None
    refused: float
    coverage: float | None
    base_rate: float | None = None
    auroc: float | None = None
    wasted: float | None = None
    acting: float | None = None
    changes: float | None = None
    effort: float | None = None

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

    def __str__(self) -> str:
        risk = f"of {self.n} people told to act {self.risk:.1%} were let down" if self.n else "nobody is told to act"
        known = f"{self.accuracy_all:.1%} knowing everything"
        known += "" if self.base_rate is None else f", {self.base_rate:.1%} knowing nothing"
        auroc = "" if self.auroc is None else f"AUROC {self.auroc:.3f}, "
        return (
            f"{self.people} people: right about {self.accuracy:.1%} ({known}), {auroc}"
            f"{self.saved:.0%} of the cost saved; {risk}."
        )


def evaluate(fitted: FittedAdvisor, people: Table, rollout: Rollout) -> AdvisorEvaluation:
    """Compare what ``roll_out`` found about some people with their true outcomes."""
    trajectory, certificate = rollout.trajectory, fitted.certificate
    if certificate is None:
        raise UnfittedError("there is no certificate to check; call certify(people) first")
    last, truth, decided = trajectory.last, people.y, trajectory.decision
    stops = certificate.stop(rollout.records)
    acts = stops.triggered & certificate.certified
    ended = np.where(acts, trajectory.at(0) + np.maximum(stops.step, 0), last)
    refused = decided[last] != fitted.favourable
    return AdvisorEvaluation(
        people=len(people),
        accuracy=float((decided[ended] == truth).mean()),
        accuracy_end=float((decided[last] == truth).mean()),
        accuracy_all=float((fitted.model.predict(people.X) == truth).mean()),
        cost=float(trajectory.spent[ended].mean()),
        cost_end=float(trajectory.spent[last].mean()),
        cost_all=float(fitted.schema.costs.sum()),
        refused=float(refused.mean()),
        coverage=float(rollout.plans.legal[last][refused].mean()) if refused.any() else None,
        base_rate=float(np.bincount(truth).max() / len(truth)),
        auroc=float(roc_auc_score(truth == fitted.favourable, trajectory.probabilities[last, fitted.favourable])),
        **_who_acts(rollout, ended[acts], last),
    )


def _who_acts(rollout: Rollout, row: IntArray, last: IntArray) -> dict[str, Any]:
    """What becomes of those who were told to act at the rows ``row`` (acting,) of the trajectory."""
    plans, records, n = rollout.plans, rollout.records, len(row)
    planned = np.add.reduceat(plans.legal, np.append(0, last[:-1] + 1)) > 0
    if not n or not planned.any():
        return {"n": 0, "risk": None, "risk_error": None, "early": 0.0 if planned.any() else None}
    risk, plan = float(np.asarray(records.loss)[row].mean()), plans.first[row]
    return {
        "n": n,
        "risk": risk,
        "risk_error": float(np.sqrt(risk * (1 - risk) / n)),
        "early": float((~np.isin(row, last)).sum() / planned.sum()),
        "acting": float(n / planned.sum()),
        "wasted": float(np.asarray(records.wasted)[row].mean()),
        "changes": float(plans.l0[plan].mean()),
        "effort": float(plans.effort[plan].mean()),
    }
