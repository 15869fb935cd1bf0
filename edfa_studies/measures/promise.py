"""Phase 2: can acting early be certified, at which cost, and does the promise hold for test people?

A promise is a mapping of settings: ``alphas`` and ``methods`` (bounds) are tried one by one;
``signal``, ``reference`` and ``loss`` go to ``replay``, all others to ``RecourseCertifier``, so
that a new target needs no change here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from edfa.certification.certificate import Certificate
from edfa.certification.rcps import HeldOutRisk, RecourseCertifier
from edfa.certification.records import Records
from edfa.certification.replay import Against, replay
from edfa.certification.sample_size import n_required
from edfa.typing import IntArray
from edfa_studies.measures import Payload
from edfa_studies.measures.growth import normalised_cost
from edfa_studies.products import Materials, PartName

__all__ = ["measure_promise"]

CURVE = 40  # points of a risk curve that are kept
REPLAYED = ("signal", "reference", "loss")


def measure_promise(materials: Materials) -> Payload:
    """Certificates, stop rules, risk curves, and certificates by group, for every alpha and bound
    of the promise.
    """
    promise = {
        name: value for name, value in materials.cell.settings["promise"].items() if name != "name"
    }
    alphas, methods = promise.pop("alphas"), promise.pop("methods")
    replayed = {name: promise.pop(name) for name in REPLAYED if name in promise}
    calibration = _records(materials, "calibration", replayed)
    test = _records(materials, "test", replayed)
    delta = materials.cell.settings["delta"]
    payload: Payload = {"certificate": [], "rule": [], "curve": [], "group": []}
    for alpha in alphas:
        for method in methods:
            result = _Result.of(
                RecourseCertifier(alpha, delta, bound=method, **promise), calibration, test, method
            )
            payload["certificate"].append(result.row())
            payload["rule"] += result.rules()
            payload["curve"] += result.curve()
        certifier = RecourseCertifier(alpha, delta, bound=methods[0], **promise)
        payload["group"] += [
            row
            for feature in materials.table.schema
            if feature.sensitive and feature.kind == "categorical"
            for row in _groups(materials, feature.name, certifier, calibration, test, methods[0])
        ]
    return payload


def _records(materials: Materials, part: PartName, replayed: dict[str, Any]) -> Records:
    """Whether the first plan of every step of everybody in a part lasts; what was spent is a share,
    as in phase 1.
    """
    trajectory = materials.trajectory(part)
    plans = materials.plans(trajectory)
    whole = getattr(materials.table, part).X[materials.people(part)]
    signal: Any = (
        replayed.get("signal", "uncertainty") if len(plans) else np.ones(len(plans.people))
    )
    records = replay(
        plans,
        signal=signal,
        against=Against(replayed.get("reference", "trajectory_end"), whole),
        loss=replayed.get("loss", "recourse"),
        advisor=materials.cell.key,
        favourable=materials.desired_class,
    )
    records = replace(
        records,
        spent=np.maximum(normalised_cost(trajectory), 0.0),
        signal_name=replayed.get("signal", "uncertainty"),
    )
    return records if materials.desired_class is None else _count_granted(records, trajectory.last)


def _count_granted(records: Records, last: IntArray) -> Records:
    """Who had a plan on the way and is granted at the end needs none there: the last step is a stop
    without a loss.
    """
    # DEVIATION: Algorithm 2 falls back on the last plan there was; whoever goes to the end reads
    # the decision.
    count = np.diff(last, prepend=-1)
    hopeful = np.add.reduceat(records.legal.astype(int), last - count + 1) > 0
    granted = last[hopeful & ~np.asarray(records.refused)[last]]
    legal, loss, signal = records.legal.copy(), np.array(records.loss), records.signal.copy()
    highest = float(signal[legal].max(initial=0.0))
    legal[granted], loss[granted], signal[granted] = True, 0.0, highest
    return replace(records, legal=legal, loss=loss, signal=signal)


@dataclass(frozen=True, eq=False)
class _Result:
    """A certificate, what its rule does to test people (None if none of them has a plan), and the
    method's name.
    """

    certificate: Certificate
    held_out: HeldOutRisk | None
    method: str

    @classmethod
    def of(
        cls, certifier: RecourseCertifier, calibration: Records, test: Records | None, method: str
    ) -> "_Result":
        """Certify from calibration people and look at test people."""
        certifier.calibrate(calibration)
        held_out: Any = None if test is None else certifier.evaluate(test)
        return cls(cast(Certificate, certifier.certificate_), held_out, method)

    def row(self) -> dict[str, Any]:
        """Everything about the certificate in one row."""
        made, test = self.certificate, self.held_out
        row = self._names() | {
            "status": made.status,
            "tau": _finite(made.tau),
            "n": made.n,
            "people": made.people,
            "risk": made.risk,
            "upper": made.bound,
            "cost": made.cost,
            "early": made.triggered,
        }
        if made.curve:
            strictest = made.curve[0]
            needed = n_required(made.alpha, strictest.risk, made.delta)
            row |= {
                "full_cost": strictest.cost,
                "strictest_risk": strictest.risk,
                "floor": needed.floor,
            }
            row |= {
                "n_first": needed.first,
                "n_stable": needed.stable,
                "n_closed": needed.closed_form,
            }
        if test is not None:
            row |= {
                "test_n": test.n,
                "test_risk": test.risk,
                "test_cost": test.cost,
                "test_early": test.triggered,
            }
        return row

    def rules(self) -> list[dict[str, Any]]:
        """The three stop rules: at the first plan, at the certified threshold, at the end."""
        made, test = self.certificate, self.held_out
        if not made.curve:
            return []
        first, last = made.curve[-1], made.curve[0]
        rows: list[dict[str, Any]] = [
            {
                "rule": "first",
                "cost": first.cost,
                "valid": 1 - first.risk,
                "lower": 1 - first.bound,
            },
            {"rule": "last", "cost": last.cost, "valid": 1 - last.risk, "lower": 1 - last.bound},
        ]
        rows[0] |= {"test_valid": None if test is None else 1 - test.first}
        rows[1] |= {"test_valid": None if test is None else 1 - test.last}
        if made.certified and made.risk is not None and made.bound is not None:
            safe: dict[str, Any] = {
                "rule": "safe",
                "cost": made.cost,
                "valid": 1 - made.risk,
                "lower": 1 - made.bound,
            }
            safe |= {} if test is None else {"test_valid": 1 - test.risk, "test_cost": test.cost}
            rows.append(safe)
        return [
            self._names() | {"n": made.n, "test_n": None if test is None else test.n} | row
            for row in rows
        ]

    def curve(self) -> list[dict[str, Any]]:
        """Some points of the risk curve, with both ends."""
        points = self.certificate.curve
        if not points:
            return []
        kept = np.unique(
            np.linspace(0, len(points) - 1, min(CURVE, len(points))).round().astype(int)
        )
        return [
            self._names()
            | {"tau": _finite(points[i].tau), "cost": points[i].cost}
            | {"valid": 1 - points[i].risk, "lower": 1 - points[i].bound}
            for i in kept
        ]

    def _names(self) -> dict[str, Any]:
        return {"alpha": self.certificate.alpha, "method": self.method}


def _groups(
    materials: Materials,
    feature: str,
    certifier: RecourseCertifier,
    calibration: Records,
    test: Records,
    method: str,
) -> Iterator[dict[str, Any]]:
    """A certificate for each group that a feature makes, and what its rule does to test people of
    the group.
    """
    labels = {}
    for part, records in (("calibration", calibration), ("test", test)):
        words = (
            getattr(materials.table, part).frame[feature].fillna("not known").astype(str).to_numpy()
        )
        labels[part] = words[np.asarray(records.person, dtype=np.int64)]
    for group in np.unique(labels["calibration"]):
        members, tested = labels["calibration"] == group, labels["test"] == group
        held_out = test.take(tested) if tested.any() else None
        result = _Result.of(replace(certifier), calibration.take(members), held_out, method)
        row = result.row()
        kept = ("alpha", "method", "n", "status", "risk", "upper", "test_n", "test_risk")
        yield {"feature": feature, "group": str(group)} | {name: row.get(name) for name in kept}


def _finite(tau: float | None) -> float | None:
    """A threshold as JSON; None for "never stop early" and "at the first plan" alike."""
    return None if tau is None or not np.isfinite(tau) else float(tau)
