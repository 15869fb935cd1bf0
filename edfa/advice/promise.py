"""What an advisor promises: held against which reference, judged by whom, and from which threshold
on it is tested.

All of this is settled on training people, so that the calibration people are looked at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from edfa.advice.evaluation import ask, replay_promise
from edfa.advice.fitted import FittedAdvisor
from edfa.certification.anchor import choose_anchor
from edfa.certification.certificate import Certificate, GroupCertificates, by_group
from edfa.certification.rcps import RecourseCertifier
from edfa.certification.records import Records, Reference
from edfa.certification.risk_curve import Target
from edfa.errors import DataError
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import IntArray

__all__ = [
    "REFERENCES",
    "certify_records",
    "choose_reference",
    "make_certifier",
    "practise",
    "rehearse",
]

REFERENCES: tuple[Reference, ...] = (
    "retrained",
    "all_features",
    "trajectory_end",
)  # the strongest first
WORTH = 1.25  # times the cost of the cheapest promise that a stronger one may cost
PRACTISE = 1_000  # training people on whom a promise is tried out
NOTHING_ASKED = (
    "nothing is asked before people act: the promise is about plans that are made at once"
)


def rehearse(fitted: FittedAdvisor, seed: int) -> tuple[FittedAdvisor, IntArray]:
    """The advisor as it meets some training people, who complete nobody meanwhile; and their rows,
    (people,).
    """
    train, searcher = fitted.train, fitted.searcher
    some = np.sort(
        np.random.default_rng(seed).permutation(len(train))[: min(PRACTISE, len(train) // 2)]
    )
    if isinstance(searcher, SurvivalSearch):
        searcher = clone(searcher).fit_without(train, some)
    return replace(fitted, searcher=searcher), some


def practise(
    fitted: FittedAdvisor,
    seed: int,
    n_jobs: int | None,
    references: Sequence[Reference] = REFERENCES,
) -> Mapping[Reference, Records]:
    """Records of some training people under every reference there is."""
    (rehearsal, some), train = rehearse(fitted, seed), fitted.train
    plans = ask(rehearsal, train.X[some], n_jobs=n_jobs)[1]
    tried = [name for name in references if name != "retrained" or fitted.judges is not None]
    records = {
        name: replay_promise(replace(rehearsal, reference=name), plans, train.X[some])
        for name in tried
    }
    if fitted.groups is None:
        return records
    labels = fitted.group_of(train.X[some])
    return {name: replace(part, group=labels[part.person]) for name, part in records.items()}


def choose_reference(
    fitted: FittedAdvisor, records: Mapping[Reference, Records], n: int, levels: dict[str, Any]
) -> Reference:
    """The strongest promise that training people suggest can be kept at no more than 1.25 times the
    least cost.

    ``records`` are those of ``practise``, ``n`` is the number of calibration people, ``levels`` are
    alpha, delta and the target.
    """
    costs = {name: _expected_cost(fitted, part, n, levels) for name, part in records.items()}
    least = min(costs.values())
    worth = [name for name in REFERENCES if name in costs and costs[name] <= WORTH * least < np.inf]
    return worth[0] if worth else REFERENCES[-1]


def _expected_cost(
    fitted: FittedAdvisor, records: Records, n: int, levels: dict[str, Any]
) -> float:
    """The mean cost under the certificates that as many training people would give; infinite if
    they give none.

    A group without a certificate is asked everything.
    """
    few = records.take(records.code < n) if n < len(records.people) else records
    certificates = certify_records(fitted, few, records, levels, n=n)
    parts = [certificates] if isinstance(certificates, Certificate) else list(certificates.values())
    if not any(part.certified for part in parts):
        return np.inf
    last = np.append(few.code[1:] != few.code[:-1], True)
    full = float(few.spent[last].mean())
    costs = [full if part.cost is None or not part.certified else part.cost for part in parts]
    return float(np.average(costs, weights=[part.people for part in parts]))


def certify_records(
    fitted: FittedAdvisor,
    records: Records,
    practised: Records,
    levels: dict[str, Any],
    n: int | None = None,
) -> Certificate | GroupCertificates:
    """The certificate of calibration people's ``records``; with groups one for each, from its own
    people alone.

    Where the tests begin is chosen on the ``practised`` records of training people, for each group
    on its own. ``n`` is the number of calibration people, that of the records unless given.
    """
    share = 1.0 if n is None else n / len(records.people)
    if fitted.groups is None:
        return _certify(fitted, records, practised, share, levels)
    theirs, rehearsed = by_group(records), by_group(practised)
    return GroupCertificates(
        {
            label: _certify(fitted, part, rehearsed.get(label), share, levels, label)
            for label, part in theirs.items()
        }
    )


def _certify(
    fitted: FittedAdvisor,
    records: Records,
    practised: Records | None,
    share: float,
    levels: dict[str, Any],
    group: str | None = None,
) -> Certificate:
    """One certificate, which says so where nothing was asked."""
    expected = max(round(share * len(records.people)), 1)
    certificate = make_certifier(fitted, practised, expected, levels).certificate_for(
        records, group=group
    )
    if not _asks_nothing(records):
        return certificate
    told = (NOTHING_ASKED,) if certificate.target == "act" else ()
    return replace(certificate, asked=False, warnings=(*certificate.warnings, *told))


def make_certifier(
    fitted: FittedAdvisor, records: Records | None, n: int, levels: dict[str, Any]
) -> RecourseCertifier:
    """The certifier of an advisor's promise; where its tests start is chosen on ``records`` of
    training people.

    Where nobody of them acts early, the promise is about all who act, if it can be broken at all:
    held against the end of the same questions, a plan that is made there cannot fail, and nothing
    is promised about it. Where nobody of them acts at all, the loosest rule there may be is the
    only one that is tested.
    """
    target: Target = levels["target"]
    reference = fitted.reference if records is None else records.reference
    if records is not None and _asks_nothing(records) and target != "act":
        target = "early"
    if target not in ("early", "act"):
        return RecourseCertifier(**levels, ceiling=fitted.ceiling)
    anchor = np.inf if fitted.ceiling is None else fitted.ceiling
    options: list[Target] = [target, "act"] if reference != "trajectory_end" else [target]
    for option in options:
        chosen = (
            None
            if records is None
            else _find_anchor(fitted, records, n, levels | {"target": option})
        )
        if chosen is not None:
            target, anchor = option, chosen
            break
    return RecourseCertifier(**(levels | {"target": target}), anchor=anchor, ceiling=fitted.ceiling)


def _find_anchor(
    fitted: FittedAdvisor, records: Records, n: int, levels: dict[str, Any]
) -> float | None:
    """Where the tests start; None if nobody acts."""
    try:
        return choose_anchor(records, n, **levels, ceiling=fitted.ceiling)
    except DataError:
        return None


def _asks_nothing(records: Records) -> bool:
    """Whether every run ends where it begins."""
    return len(records) == len(records.people)
