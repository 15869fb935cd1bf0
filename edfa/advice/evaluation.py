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
from edfa.certification.rcps import RecourseCertifier
from edfa.certification.records import Records
from edfa.certification.replay import replay
from edfa.data.table import Table
from edfa.parsing import parse
from edfa.predictors.base import UnfittedError
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.typing import Float32Array, IntArray

__all__ = ["AdvisorEvaluation", "Rollout", "ask_and_replay", "count_granted", "evaluate", "roll_out"]


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
    trajectory, plans, records = _ask_to_the_end(fitted, X, progress, n_jobs)
    return Rollout(trajectory, plans, count_granted(records, trajectory.last))


def ask_and_replay(fitted: FittedAdvisor, X: Float32Array) -> Records:  # noqa: N803
    """The records of some people by themselves, to be joined with those of others and finished by ``count_granted``."""
    return _ask_to_the_end(fitted, X, None, 1)[2]


def _ask_to_the_end(
    fitted: FittedAdvisor,
    X: Float32Array,  # noqa: N803
    progress: Callable[[int, int], None] | None,
    n_jobs: int | None,
) -> tuple[Trajectory, Plans, Records]:
    """The steps of everybody, the plans at each, and the records of these."""
    trajectory = run_policy(X, fitted.policy, fitted.background, fitted.budget, fitted.limits)
    plans = find_recourse(
        trajectory,
        fitted.searcher,
        constraints=fitted.limits,
        desired_class=fitted.favourable,
        n_jobs=n_jobs,
        progress=progress,
    )
    signal: Any = fitted.signal if len(plans) else np.ones(len(plans.people))  # there is nothing to watch
    records = replay(plans, favourable=fitted.favourable, signal=signal, advisor=fitted.fingerprint)
    return trajectory, plans, replace(records, signal_name=fitted.signal)


def count_granted(records: Records, last: IntArray) -> Records:
    """Who had a plan on the way and is granted at the end needs none there: the last step is a stop without a loss."""
    # DEVIATION: Algorithm 2 falls back on the last plan there was; an advisor who goes to the end reads the decision.
    count = np.diff(last, prepend=-1)
    hopeful = np.add.reduceat(records.legal.astype(int), last - count + 1) > 0
    granted = last[hopeful & ~np.asarray(records.refused)[last]]
    legal, loss, signal = records.legal.copy(), np.array(records.loss), records.signal.copy()
    highest = float(signal[legal].max(initial=0.0))
    legal[granted], loss[granted], signal[granted] = True, 0.0, highest
    return replace(records, legal=legal, loss=loss, signal=signal)


@dataclass(frozen=True)
class AdvisorEvaluation:
    """An advisor on people it has not met.

    ``accuracy`` is that of the decision where people stop (early under the certificate, or at the end),
    ``accuracy_end`` at the end of the policy's order, ``accuracy_all`` of the model that knows every feature.
    ``cost`` is what a person costs until they stop, ``cost_end`` to the end, ``cost_all`` for everything. ``risk`` is
    the share, of ``n`` people of whom the certificate speaks, whose plan or decision did not last, ``risk_error`` its
    standard error, ``early`` the share who stop early. ``refused`` is the share of people refused at the end,
    ``coverage`` the share of those who have a plan there. ``base_rate`` is the share of the commonest class, which
    somebody who knows nothing is right about, and ``auroc`` how well the model at the end tells the favourable class
    from the rest (0.5: not at all); an evaluation of an older version has neither.
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
        risk = "nobody had a plan" if self.risk is None else f"{self.risk:.1%} of {self.n} plans did not last"
        known = f"{self.accuracy_all:.1%} knowing everything"
        known += "" if self.base_rate is None else f", {self.base_rate:.1%} knowing nothing"
        auroc = "" if self.auroc is None else f"AUROC {self.auroc:.3f}, "
        return (
            f"{self.people} people: right about {self.accuracy:.1%} ({known}), {auroc}"
            f"{self.saved:.0%} of the cost saved; {risk}."
        )


def evaluate(fitted: FittedAdvisor, people: Table, rollout: Rollout) -> AdvisorEvaluation:
    """Compare what ``roll_out`` found about some people with their true outcomes."""
    trajectory, records, certificate = rollout.trajectory, rollout.records, fitted.certificate
    if certificate is None:
        raise UnfittedError("there is no certificate to check; call certify(people) first")
    last, truth, stops = trajectory.last, people.y, certificate.stop(records)
    levels = (certificate.alpha, certificate.delta)
    certifier = RecourseCertifier(*levels, target=certificate.target, anchor=certificate.anchor)
    certifier.certificate_ = certificate
    ended = np.where(stops.triggered, trajectory.at(0) + np.maximum(stops.step, 0), last)
    decided = trajectory.decision
    held = certifier.evaluate(records)
    refused = decided[last] != fitted.favourable
    measured = held if not isinstance(held, dict) else None
    return AdvisorEvaluation(
        people=len(people),
        accuracy=float((decided[ended] == truth).mean()),
        accuracy_end=float((decided[last] == truth).mean()),
        accuracy_all=float((fitted.model.predict(people.X) == truth).mean()),
        cost=float(stops.spent.mean()),
        cost_end=float(trajectory.spent[last].mean()),
        cost_all=float(fitted.schema.costs.sum()),
        n=measured.n if measured else 0,
        risk=measured.risk if measured else None,
        risk_error=float(np.sqrt(measured.risk * (1 - measured.risk) / measured.n)) if measured else None,
        early=measured.triggered if measured else None,
        refused=float(refused.mean()),
        coverage=float(rollout.plans.legal[last][refused].mean()) if refused.any() else None,
        base_rate=float(np.bincount(truth).max() / len(truth)),
        auroc=float(roc_auc_score(truth == fitted.favourable, trajectory.probabilities[last, fitted.favourable])),
    )
