"""Joint certificates of several searchers, blankets or models: any certified one may be used, the
cheapest included.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from edfa.certification.certificate import Certificate, Guarantee
from edfa.certification.rcps import RecourseCertifier
from edfa.certification.records import Records
from edfa.certification.replay import as_records
from edfa.errors import SettingError
from edfa.recourse.plans import Plans
from edfa.text import html


@dataclass(frozen=True)
class JointCertificate(Guarantee):
    """The certificates of all candidates.

    Parameters
    ----------
    certificates
        The certificate of each candidate, by its name, each at its own share of ``delta``.
    delta
        All certified ones hold together with probability 1 - delta.
    """

    kind: ClassVar[str] = "joint certificate"
    certificates: Mapping[str, Certificate]
    delta: float

    @property
    def best(self) -> str | None:
        """The certified candidate of least mean cost, or None; the guarantee covers this choice."""
        costs = {
            name: c.cost
            for name, c in self.certificates.items()
            if c.certified and c.cost is not None
        }
        return min(costs, key=lambda name: costs[name]) if costs else None

    @property
    def sentence(self) -> str:
        """Which candidates are certified, in words."""
        names = [name for name, certificate in self.certificates.items() if certificate.certified]
        if not names:
            return "No certificate for any of: " + ", ".join(self.certificates) + "."
        promise = f"The certificates of {', '.join(names)} all hold together"
        return (
            f"{promise}, which is wrong with probability at most "
            f"{self.delta:.4g} over the calibration sample."
        )

    def _repr_html_(self) -> str:
        parts = (
            (html.fragment(html.heading(name, 4)), c._repr_html_())
            for name, c in self.certificates.items()
        )
        return "".join(title + shown for title, shown in parts)


def certify_jointly(
    candidates: Mapping[str, Records | Plans],
    certifier: RecourseCertifier | None = None,
) -> JointCertificate:
    """Make one certificate for each candidate, at levels such that all of them hold together.

    Each gets an equal share of delta. A candidate whose thresholds all pass hands its share on
    to the next, so put those that promise most first, before looking at any calibration run.

    Parameters
    ----------
    candidates
        Plans or records by name, with losses; the people may be the same.
    certifier
        The settings of all certificates; by default those of ``RecourseCertifier()``.

    Returns
    -------
    JointCertificate
        The certificates by name; ``best`` is the certified one of least mean cost.

    Examples
    --------
    >>> from edfa.certification.simulate import simulate_records
    >>> joint = certify_jointly({"nearest": simulate_records(200, seed=1),
    ...     "other": simulate_records(200, seed=2)})
    >>> joint.best, [c.delta for c in joint.certificates.values()]
    ('nearest', [0.025, 0.025])
    """
    certifier = certifier or RecourseCertifier()
    if not candidates:
        raise SettingError("a joint certificate is about at least one candidate")
    share, handed_on = certifier.delta / len(candidates), 0.0
    certificates: dict[str, Certificate] = {}
    for name, runs in candidates.items():
        records = as_records(runs, certifier.signal)
        certificate = certifier.certificate_for(records, share + handed_on)
        certificates[name] = certificate
        handed_on = certificate.delta if certificate.complete else 0.0
    return JointCertificate(certificates, certifier.delta)
