"""When one may act early: certificates that hold for every model, policy and searcher, from
calibration people.
"""

from edfa.certification.anchor import choose_anchor
from edfa.certification.bounds import (
    cp_p_value,
    cp_ucb,
    hb_p_value,
    hb_ucb,
    hoeffding_p_value,
    hoeffding_ucb,
    wsr_p_value,
    wsr_ucb,
)
from edfa.certification.certificate import Certificate, GroupCertificates, Point
from edfa.certification.conformal_risk import ConformalRiskCertificate, certify_expected_risk
from edfa.certification.cost import CostCertificate, certify_cost
from edfa.certification.joint import JointCertificate, certify_jointly
from edfa.certification.loss import NO_PLAN, let_down, recourse_loss
from edfa.certification.monitor import Monitor
from edfa.certification.rcps import HeldOutRisk, RecourseCertifier, certify
from edfa.certification.records import Records
from edfa.certification.replay import SurvivalScore, plan_uncertainty, replay, uncertainty, watch
from edfa.certification.sample_size import (
    Required,
    Zones,
    critical_losses,
    floor,
    n_for_power,
    n_required,
    power,
    zones,
)
from edfa.certification.stopping import Stops
from edfa.fingerprint import digest, fingerprint, identify

__all__ = [
    "NO_PLAN",
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
    "SurvivalScore",
    "Zones",
    "certify",
    "certify_cost",
    "certify_expected_risk",
    "certify_jointly",
    "choose_anchor",
    "cp_p_value",
    "cp_ucb",
    "critical_losses",
    "digest",
    "fingerprint",
    "floor",
    "hb_p_value",
    "hb_ucb",
    "hoeffding_p_value",
    "hoeffding_ucb",
    "identify",
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
