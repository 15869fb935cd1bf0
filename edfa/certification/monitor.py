"""Monitoring of a deployed certificate by random audits, with an alarm that is valid at any time.

For some people drawn at random among those the certificate is about, the rest is acquired after all
and the loss becomes known. A bettor bets against "the risk is at most alpha"; if that still holds,
the capital ever reaches 1/delta with probability at most delta, however long one watches and
whenever one looks.

Draw the audits at random: complaints are not a random sample.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from edfa.certification.bounds import check_level, check_share
from edfa.certification.certificate import Certificate, Guarantee
from edfa.errors import MismatchError, SettingError
from edfa.typing import Float64Array

# A small stake detects a small excess late, a large one a large excess soon; the capital is spread
# over both.
STAKES: Float64Array = np.geomspace(0.05, 0.6, 6)
NEARLY = 1e-9  # difference of two logarithms that may be rounding


@dataclass(frozen=True)
class Monitor(Guarantee):
    """The state of the audits so far; immutable, ``audit`` returns the next state.

    Parameters
    ----------
    alpha
        The risk that the certificate promises.
    delta
        Probability of a false alarm, ever.
    advisor, certificate
        Fingerprint of the advisor that is watched, and digest of its certificate.
    audits, lost
        Number of audited people, and the sum of their losses.
    log_capital, peak
        Logarithm of the capital of each stake, and of the largest mean capital so far.
    alarm_at
        The audit at which the alarm was raised, counted from 1; None without an alarm.

    Examples
    --------
    >>> monitor = Monitor(alpha=0.2)
    >>> monitor.audit([0, 0, 1, 0, 0]).alarm
    False
    >>> print(monitor.audit([1, 1, 0, 1, 1, 1, 1, 0, 1, 1]))
    Alarm after 6 audits: the risk is above 0.2; this is a mistake with probability at most 0.05.
    """

    kind: ClassVar[str] = "monitor"
    alpha: float
    delta: float = 0.05
    advisor: str = ""
    audits: int = 0
    lost: float = 0.0
    log_capital: tuple[float, ...] = (0.0,) * len(STAKES)
    peak: float = 0.0
    alarm_at: int | None = None
    certificate: str = ""

    def __post_init__(self) -> None:
        check_level("alpha", self.alpha)
        check_level("delta", self.delta)
        if self.audits < 0 or not 0 <= self.lost <= self.audits:
            raise SettingError(f"{self.lost:g} of {self.audits} audits cannot be lost")
        if len(self.log_capital) != len(STAKES):
            raise SettingError(
                f"log_capital: {len(STAKES)} stakes are bet, not {len(self.log_capital)}"
            )
        if self.alarm_at is not None and not 0 < self.alarm_at <= self.audits:
            raise SettingError(
                f"alarm_at: one of {self.audits} audits raises it, not number {self.alarm_at}"
            )
        reached = self.peak + np.log(self.delta)  # of the capital 1/delta
        if reached > NEARLY if self.alarm_at is None else reached < -NEARLY:
            raise SettingError(
                "alarm_at: the alarm is raised where the capital reaches 1/delta, and only there"
            )

    @classmethod
    def of(cls, certificate: Certificate, delta: float = 0.05) -> "Monitor":
        """Start to monitor a certificate.

        Parameters
        ----------
        certificate
            The certificate; it must promise something.
        delta
            The probability of a false alarm, ever.

        Raises
        ------
        SettingError
            If nothing is certified.
        """
        if not certificate.certified:
            raise SettingError("there is nothing to monitor: the certificate promises nothing")
        return cls(certificate.alpha, delta, certificate.advisor, certificate=certificate.digest)

    @property
    def alarm(self) -> bool:
        """Whether the certificate has been refuted; once it is, it stays so."""
        return self.alarm_at is not None

    @property
    def p_value(self) -> float:
        """P-value of "the risk is at most alpha": one over the largest capital so far."""
        return float(np.exp(-self.peak))

    def check_watches(self, certificate: Certificate) -> None:
        """Refuse a certificate that is not the one that is monitored.

        Raises
        ------
        MismatchError
            If the certificate is of another advisor, or another one.
        """
        if certificate.advisor != self.advisor:
            raise MismatchError(
                f"the monitor watches advisor {self.advisor!r}, not {certificate.advisor!r}"
            )
        if certificate.digest != self.certificate:
            watched = self.certificate or "an unnamed one"
            raise MismatchError(
                f"the monitor watches certificate {watched}, not {certificate.digest}"
            )

    def audit(self, losses: Any, *, advisor: str | None = None) -> "Monitor":
        """Return the state after more audits.

        Parameters
        ----------
        losses
            Losses in [0, 1], in the order in which the people were drawn, (audits,); one number
            will do.
        advisor
            The fingerprint of the audited advisor; None: it is not checked.

        Returns
        -------
        Monitor
            The next state. An alarm, once raised, stays.

        Raises
        ------
        MismatchError
            If the advisor is not the monitor's.
        """
        if advisor is not None and advisor != self.advisor:
            raise MismatchError(f"the monitor watches advisor {self.advisor!r}, not {advisor!r}")
        audited = np.atleast_1d(check_share("a loss", losses))
        if audited.ndim != 1:
            raise SettingError("audits are a list of losses")
        if not len(audited):
            return self
        gains = np.log1p(np.outer(STAKES / self.alpha, audited - self.alpha))
        paths = np.array(self.log_capital)[:, None] + np.cumsum(gains, axis=1)
        capital = np.logaddexp.reduce(paths, axis=0) - np.log(len(STAKES))
        refuted = np.exp(-capital) <= self.delta
        alarm_at = self.alarm_at
        if alarm_at is None and refuted.any():
            alarm_at = self.audits + int(np.argmax(refuted)) + 1
        return replace(
            self,
            audits=self.audits + len(audited),
            lost=self.lost + float(audited.sum()),
            log_capital=tuple(paths[:, -1].tolist()),
            peak=max(self.peak, float(capital.max())),
            alarm_at=alarm_at,
        )

    @property
    def sentence(self) -> str:
        """The result of the audits, in words."""
        if self.alarm:
            mistake = f"this is a mistake with probability at most {self.delta:.4g}"
            return (
                f"Alarm after {self.alarm_at} audits: the risk is above "
                f"{self.alpha:.4g}; {mistake}."
            )
        return (
            f"No alarm in {self.audits} audits, {self.lost:.4g} of them "
            f"lost; p-value {self.p_value:.2g}."
        )
