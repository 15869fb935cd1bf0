"""Several searchers, blankets or models on trial at once: any certified one may be taken, the cheapest included."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from edfa.certification.certificate import Certificate
from edfa.certification.guarantee import Guarantee
from edfa.certification.rcps import certify
from edfa.certification.records import Records
from edfa.certification.settings import level
from edfa.errors import SettingError
from edfa.recourse.plans import Plans

__all__ = ["JointCertificate", "certify_jointly"]


@dataclass(frozen=True)
class JointCertificate(Guarantee):
    """The certificates of all candidates; all certified ones hold together with chance 1 - ``delta``."""

    kind: ClassVar[str] = "joint certificate"
    certificates: Mapping[str, Certificate]
    delta: float

    @property
    def best(self) -> str | None:
        """The certified candidate of least mean cost; choosing it after the fact costs nothing."""
        costs = {name: c.cost for name, c in self.certificates.items() if c.certified and c.cost is not None}
        return min(costs, key=lambda name: costs[name]) if costs else None

    @property
    def sentence(self) -> str:
        """Which candidates are certified, in words."""
        names = [name for name, certificate in self.certificates.items() if certificate.certified]
        if not names:
            return "No certificate for any of: " + ", ".join(self.certificates) + "."
        told = f"The certificates of {', '.join(names)} all hold together"
        return f"{told}, which is wrong with probability at most {self.delta:.4g} over the calibration sample."

    def _repr_html_(self) -> str:
        return "".join(certificate._repr_html_() for certificate in self.certificates.values())


def certify_jointly(
    candidates: Mapping[str, Records | Plans], alpha: float = 0.2, delta: float = 0.05, **settings: Any
) -> JointCertificate:
    """One certificate for each candidate, at a level of its own such that all hold together.

    Each gets an equal share of ``delta``; one whose walk never fails hands its share on to the next, so put those that
    promise most first, before looking at any calibration run. ``settings`` are those of ``certify``.

    Examples
    --------
    >>> from edfa.certification.examples import people
    >>> found = certify_jointly({"nearest": people(200, seed=1), "other": people(200, seed=2)})
    >>> found.best, [c.delta for c in found.certificates.values()]
    ('nearest', [0.025, 0.025])
    """
    level(delta)
    if not candidates or settings.get("groups"):
        raise SettingError("a joint certificate is about at least one candidate, and not about groups")
    share, handed_on = delta / len(candidates), 0.0
    certificates: dict[str, Certificate] = {}
    for name, found in candidates.items():
        certificates[name] = certificate = certify(found, alpha, share + handed_on, **settings)
        handed_on = certificate.delta if certificate.complete else 0.0
    return JointCertificate(certificates, delta)
