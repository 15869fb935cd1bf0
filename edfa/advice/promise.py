"""What an advisor promises: held against which reference, judged by whom, and from which threshold on it is tested.

All of this is settled on training people, so that the calibration people are looked at once.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from edfa.advice.assessment import FittedAdvisor
from edfa.advice.evaluation import replay_promise, roll_out
from edfa.certification.anchor import choose_anchor
from edfa.certification.rcps import RecourseCertifier
from edfa.certification.records import Records, Reference
from edfa.certification.risk_curve import Target
from edfa.errors import DataError
from edfa.recourse.searchers.survival import SurvivalSearch

__all__ = ["REFERENCES", "choose_reference", "make_certifier", "practise"]

REFERENCES: tuple[Reference, ...] = ("retrained", "all_features", "trajectory_end")  # the strongest first
WORTH = 1.25  # times the cost of the cheapest promise that a stronger one may cost
PRACTISE = 1_000  # training people on whom a promise is tried out


def practise(fitted: FittedAdvisor, seed: int, n_jobs: int | None) -> Mapping[Reference, Records]:
    """Records of some training people under every reference there is; they complete nobody meanwhile."""
    train, searcher = fitted.train, fitted.searcher
    some = np.sort(np.random.default_rng(seed).permutation(len(train))[: min(PRACTISE, len(train) // 2)])
    if isinstance(searcher, SurvivalSearch):
        searcher = clone(searcher).fit_without(train, some)
    rehearsal = replace(fitted, searcher=searcher)
    rollout = roll_out(rehearsal, train.X[some], n_jobs=n_jobs)
    tried = [name for name in REFERENCES if name != "retrained" or fitted.judges is not None]
    return {name: replay_promise(replace(rehearsal, reference=name), rollout.plans, train.X[some]) for name in tried}


def choose_reference(
    fitted: FittedAdvisor, records: Mapping[Reference, Records], n: int, levels: Mapping[str, Any]
) -> Reference:
    """The strongest promise that training people suggest can be kept at no more than 1.25 times the least cost.

    ``records`` are those of ``practise``, ``n`` is the number of calibration people, ``levels`` are alpha, delta and
    the target.
    """
    costs = {name: _expected_cost(fitted, part, n, levels) for name, part in records.items()}
    least = min(costs.values())
    worth = [name for name in REFERENCES if name in costs and costs[name] <= WORTH * least < np.inf]
    return worth[0] if worth else REFERENCES[-1]


def _expected_cost(fitted: FittedAdvisor, records: Records, n: int, levels: Mapping[str, Any]) -> float:
    """The mean cost under the certificate that as many training people would give; infinite if they give none."""
    few = records.take(records.code < n) if n < len(records.people) else records
    try:
        certificate = make_certifier(fitted, records, n, levels).certificate_for(few)
    except DataError:  # nobody acts early
        return np.inf
    return certificate.cost if certificate.certified and certificate.cost is not None else np.inf


def make_certifier(
    fitted: FittedAdvisor, records: Records | None, n: int, levels: Mapping[str, Any]
) -> RecourseCertifier:
    """The certifier of an advisor's promise; where its tests start is chosen on ``records`` of training people."""
    target: Target = levels["target"]
    ceiling = fitted.ceiling
    anchor = None
    if target in ("early", "act") and records is not None:
        anchor = choose_anchor(records, n, levels["alpha"], levels["delta"], ceiling=ceiling, target=target)
    return RecourseCertifier(**levels, anchor=anchor, ceiling=ceiling)
