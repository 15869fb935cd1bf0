"""When one may act early: certificates that hold for every model, policy and searcher.

Runs of calibration people become ``Records`` (``replay``: what became of each step's first plan,
held ``Against`` a reference); ``RecourseCertifier`` tests thresholds of a stop rule on them and
issues a ``Certificate``. Read ``records.py`` first, then ``replay.py`` and ``rcps.py``;
``bounds.py`` has the p-values, ``risk_curve.py`` the tests.
"""

from edfa.certification.bounds import (
    cp_p_value,
    cp_ucb,
    floor,
    hb_p_value,
    hb_ucb,
    wsr_p_value,
    wsr_ucb,
)
from edfa.certification.certificate import Certificate, GroupCertificates, Point
from edfa.certification.conformal_risk import ConformalRiskCertificate, certify_expected_risk
from edfa.certification.cost import CostCertificate, certify_cost
from edfa.certification.joint import JointCertificate, certify_jointly
from edfa.certification.monitor import Monitor
from edfa.certification.rcps import HeldOutRisk, RecourseCertifier, certify, choose_anchor
from edfa.certification.records import Records, Stops
from edfa.certification.replay import (
    NO_PLAN,
    Against,
    let_down,
    plan_uncertainty,
    recourse_loss,
    replay,
    uncertainty,
    watch,
)
from edfa.certification.sample_size import (
    Required,
    critical_losses,
    n_for_power,
    n_required,
    power,
    zones,
)

__all__ = [
    "NO_PLAN",
    "Against",
    "Certificate",
    "ConformalRiskCertificate",
    "CostCertificate",
    "GroupCertificates",
    "HeldOutRisk",
    "JointCertificate",
    "Monitor",
    "Point",
    "Records",
    "RecourseCertifier",
    "Required",
    "Stops",
    "certify",
    "certify_cost",
    "certify_expected_risk",
    "certify_jointly",
    "choose_anchor",
    "cp_p_value",
    "cp_ucb",
    "critical_losses",
    "floor",
    "hb_p_value",
    "hb_ucb",
    "let_down",
    "n_for_power",
    "n_required",
    "plan_uncertainty",
    "power",
    "recourse_loss",
    "replay",
    "uncertainty",
    "watch",
    "wsr_p_value",
    "wsr_ucb",
    "zones",
]
