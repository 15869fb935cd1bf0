"""Phase 2: can acting early be certified, at which cost, and does the promise hold for test people?

A promise is a mapping of settings: ``alphas`` and ``methods`` (bounds) are tried one by one;
``signal``, ``reference`` and ``loss`` go to ``replay``, all others to ``RecourseCertifier``, so
that a new target needs no change here. The entry is ``measure_promise``.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from edfa.certification.certificate import Certificate
from edfa.certification.rcps import HeldOutRisk, RecourseCertifier, measure
from edfa.certification.records import Records
from edfa.certification.replay import Against, replay
from edfa.typing import IntArray
from edfa_studies.measures import Payload
from edfa_studies.measures.growth import normalised_cost
from edfa_studies.products import Materials, PartName

Row = dict[str, Any]
REPLAYED = ("signal", "reference", "loss")
GROUP = ("alpha", "method", "n", "status", "risk", "upper", "test_n", "test_risk")


def measure_promise(materials: Materials) -> Payload:
    """Certify acting early, for every alpha and bound of the promise.

    Parameters
    ----------
    materials
        Those of a cell whose settings have ``promise``, ``delta``, and the numbers of
        ``calibration`` and ``test`` people.

    Returns
    -------
    dict of lists of rows
        ``certificate``: one row for each alpha and bound, with the risk and cost of the certified
        rule among calibration and among test people. ``rule``: the same for the rules "at the first
        plan", "at the last step" and, where there is one, the certified rule. ``group``: for each
        alpha, certificates under the first bound for each level of each sensitive categorical
        feature.
    """
    promise = dict(materials.cell.settings["promise"])
    del promise["name"]
    alphas, methods = promise.pop("alphas"), promise.pop("methods")
    replayed = {name: promise.pop(name) for name in REPLAYED if name in promise}
    calibration = _records(materials, "calibration", replayed)
    test = _records(materials, "test", replayed)
    delta = materials.cell.settings["delta"]
    payload: Payload = {"certificate": [], "rule": [], "group": []}
    for alpha in alphas:
        certifiers = [RecourseCertifier(alpha, delta, bound=name, **promise) for name in methods]
        for method, certifier in zip(methods, certifiers, strict=True):
            made = certifier.certificate_for(calibration)
            held_out = measure(made, test)
            payload["certificate"].append(_row(made, held_out, method))
            names = {"alpha": alpha, "method": method}
            payload["rule"] += [names | row for row in _rules(made, held_out)]
        for feature in materials.table.schema:
            if feature.sensitive and feature.kind == "categorical":
                rows = _groups(materials, feature.name, certifiers[0], calibration, test)
                payload["group"] += rows
    return payload


def _records(materials: Materials, part: PartName, replayed: dict[str, Any]) -> Records:
    """Whether the first plan of every step of everybody in a part lasts; what was spent is a share,
    as in phase 1.
    """
    trajectory = materials.trajectory(part)
    plans = materials.plans(trajectory)
    whole = getattr(materials.table, part).X[materials.people(part)]
    name = replayed.get("signal", "uncertainty")
    records = replay(
        plans,
        signal=name if len(plans) else np.ones(len(plans.people)),
        against=Against(replayed.get("reference", "trajectory_end"), whole),
        loss=replayed.get("loss", "recourse"),
        advisor=materials.cell.key,
        favourable=materials.desired_class,
    )
    spent = np.maximum(normalised_cost(trajectory), 0.0)
    records = replace(records, spent=spent, signal_name=name)
    return records if materials.desired_class is None else _count_granted(records, trajectory.last)


def _count_granted(records: Records, last: IntArray) -> Records:
    """Who had a plan on the way and is granted at the end needs none there: the last step is a stop
    without a loss.
    """
    # DEVIATION: Algorithm 2 falls back on the last plan there was; a person who goes to the end
    # reads the decision.
    count = np.diff(last, prepend=-1)
    hopeful = np.add.reduceat(records.legal.astype(int), last - count + 1) > 0
    granted = last[hopeful & ~np.asarray(records.refused)[last]]
    legal, loss, signal = records.legal.copy(), np.array(records.loss), records.signal.copy()
    highest = float(signal[legal].max(initial=0.0))
    legal[granted], loss[granted], signal[granted] = True, 0.0, highest
    return replace(records, legal=legal, loss=loss, signal=signal)


def _row(made: Certificate, test: HeldOutRisk | None, method: str) -> Row:
    """A certificate in one row, with what its rule does to test people if any of them has a plan.

    The threshold ``tau`` is None for "never stop early" and "at the first plan" alike.
    """
    tau = None if made.tau is None or not np.isfinite(made.tau) else float(made.tau)
    row = {"alpha": made.alpha, "method": method, "status": made.status, "tau": tau}
    row |= {"n": made.n, "people": made.people}
    row |= {"risk": made.risk, "upper": made.bound, "cost": made.cost}
    if made.curve:
        row |= {"full_cost": made.curve[0].cost, "strictest_risk": made.curve[0].risk}
    if test is not None:
        row |= {"test_n": test.n, "test_risk": test.risk, "test_cost": test.cost}
    return row


def _rules(made: Certificate, test: HeldOutRisk | None) -> Iterator[Row]:
    """The three stop rules: at the first plan, at the end, at the certified threshold."""
    if not made.curve:
        return
    rules: dict[str, Any] = {"first": made.curve[-1], "last": made.curve[0]}
    if made.certified and made.risk is not None and made.bound is not None:
        rules["safe"] = made
    for name, rule in rules.items():
        row: Row = {"n": made.n, "test_n": None if test is None else test.n, "rule": name}
        row |= {"cost": rule.cost, "valid": 1 - rule.risk, "lower": 1 - rule.bound}
        if test is not None and rule is made:
            row |= {"test_valid": 1 - test.risk, "test_cost": test.cost}
        elif test is not None:
            row |= {"test_valid": 1 - getattr(test, name)}
        yield row


def _groups(
    materials: Materials,
    feature: str,
    certifier: RecourseCertifier,
    calibration: Records,
    test: Records,
) -> Iterator[Row]:
    """A certificate for each group that a feature makes, and what its rule does to test people of
    the group.
    """

    def labels(part: PartName, records: Records) -> Any:
        column = getattr(materials.table, part).frame[feature]
        words = column.fillna("not known").astype(str).to_numpy()
        return words[np.asarray(records.person, dtype=np.int64)]

    of_calibration, of_test = labels("calibration", calibration), labels("test", test)
    for group in np.unique(of_calibration):
        made = certifier.certificate_for(calibration.take(of_calibration == group))
        tested = of_test == group
        held_out = measure(made, test.take(tested)) if tested.any() else None
        row = _row(made, held_out, str(certifier.bound))
        yield {"feature": feature, "group": str(group)} | {name: row.get(name) for name in GROUP}
