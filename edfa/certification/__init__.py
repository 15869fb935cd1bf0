"""May one act early: certificates that hold for every model, policy and searcher, from calibration people alone."""

from edfa.certification.betting import wsr_p_value, wsr_ucb
from edfa.certification.bounds import cp_p_value, cp_ucb, hb_p_value, hb_ucb, hoeffding_p_value, hoeffding_ucb
from edfa.certification.certificate import Certificate, Point
from edfa.certification.conformal_risk import AverageCertificate, certify_on_average
from edfa.certification.cost import CostCertificate, certify_cost
from edfa.certification.groups import GroupCertificates
from edfa.certification.joint import JointCertificate, certify_jointly
from edfa.certification.loss import NO_PLAN, recourse_loss
from edfa.certification.monitor import Monitor
from edfa.certification.rcps import Evaluation, RecourseCertifier, certify
from edfa.certification.records import Records
from edfa.certification.replay import replay, watch
from edfa.certification.sample_size import Required, critical_losses, floor, n_for_power, n_required, power
from edfa.certification.signals import SurvivalScore, plan_uncertainty, uncertainty
from edfa.certification.stops import Stops
from edfa.certification.zones import Zones, zones
from edfa.fingerprint import digest, fingerprint, identify

__all__ = [
    "NO_PLAN",
    "AverageCertificate",
    "Certificate",
    "CostCertificate",
    "Evaluation",
    "GroupCertificates",
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
    "certify_jointly",
    "certify_on_average",
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
