"""The terms of an advisor's promise, and the certificates that were made under them.

An interview may end in an *ending*: a person is told to act. How that is watched, what counts as
a broken promise and whom the promise is about are the ending's; everything else about a promise
(reference, floors, groups, certificates) is shared by all endings.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from edfa.certification.certificate import Certificate, GroupCertificates
from edfa.certification.records import Loss, Reference
from edfa.certification.risk_curve import Target
from edfa.data.encode import Encoder, Levels
from edfa.data.schema import Schema
from edfa.data.values import exact_text
from edfa.errors import SettingError, did_you_mean
from edfa.typing import BoolArray, Float32Array, Float64Array, ObjectArray

__all__ = [
    "NEVER",
    "NOT_RECORDED",
    "NO_PROMISE",
    "Ending",
    "Promise",
    "check_group",
    "label_groups",
]

FINAL_SURVIVAL = 0.95  # that a plan needs after the last of several questions
NEVER = 2.0  # the signal of who may not act; all others are at most 1
NOT_RECORDED = "not recorded"  # the group of people whose value is truly missing


@dataclass(frozen=True)
class Ending:
    """One way in which an interview ends with a promise.

    Parameters
    ----------
    name
        What people are told: ``"act"``.
    signal
        What the stop rule watches: a name of ``edfa.certification.replay.SIGNALS``.
    loss
        What counts as a broken promise: a name of ``edfa.certification.records.LOSSES``.
    target
        Whom the promise is about: a name of ``edfa.certification.risk_curve.TARGETS``.
    alpha
        The largest share of these people to whom it may be broken.
    """

    name: str = "act"
    signal: str = "uncertainty"
    loss: Loss = "let_down"
    target: Target = "early"
    alpha: float = 0.2


@dataclass(frozen=True)
class Promise:
    """What an advisor promises.

    Parameters
    ----------
    ending
        The ending that the promise is about.
    delta
        The probability that a certificate is wrong.
    reference
        What plans are held against: a name of ``edfa.certification.records.REFERENCES``.
    min_survival
        Nobody is told to act on a plan whose survival is below this (signal ``"survival"``).
    min_need
        Nobody is told to act whose chance of being refused without a plan is below this.
    groups
        The feature whose levels each have a certificate of their own; None: one for everybody.
    certificate
        The certificate of everybody, or those of the groups; None before calibration.
    """

    ending: Ending = Ending()
    delta: float = 0.05
    reference: Reference = "trajectory_end"
    min_survival: float = 0.5
    min_need: float = 0.0
    groups: str | None = None
    certificate: Certificate | GroupCertificates | None = None

    @property
    def certificates(self) -> dict[str | None, Certificate]:
        """Certificates by group; without groups, the one for everybody under None."""
        if isinstance(self.certificate, GroupCertificates):
            return {str(label): made for label, made in self.certificate.items()}
        return {} if self.certificate is None else {None: self.certificate}

    @property
    def certificate_id(self) -> str:
        """The digest of all certificates together; empty without any."""
        return "" if self.certificate is None else self.certificate.digest

    @property
    def ceiling(self) -> float | None:
        """The largest signal at which anybody is told to act; None: there is no such limit."""
        limited = self.ending.signal == "survival" and self.min_survival > 0
        return 1 - self.min_survival if limited else None

    @property
    def covers_everybody(self) -> bool:
        """Whether the promise is about all who have a plan, so that whoever is asked to the end
        may act on the last one.
        """
        made = next(iter(self.certificates.values()), None)
        return made is not None and made.target in ("all", "refused")

    def lacks_final_survival(self, signal: Float64Array, at_last: BoolArray) -> BoolArray:
        """Who has been asked the last question, ``at_last`` (people,), and has no plan that is
        good enough for that, (people,).

        Whoever is asked to the end is a hard case: no earlier plan was good enough. If the promise
        is about another model, they are told to act only on a plan that nearly all models accept.
        Held against the end of the same questions, a plan that is made there cannot fail.
        """
        if self.ending.signal != "survival" or self.reference == "trajectory_end":
            return np.zeros(len(signal), dtype=bool)
        return np.asarray(at_last & (signal > 1 - FINAL_SURVIVAL))

    def check_owner(self, certificate: Certificate, advisor: str) -> bool:
        """Whether a certificate is about the advisor of this fingerprint, what it watches, and
        what its plans are held against.
        """
        about = (certificate.advisor, certificate.signal, certificate.reference)
        return about == (advisor, self.ending.signal, self.reference)

    def of_unknown_group(self, groups: Collection[str]) -> Certificate | None:
        """What is promised to people whose group is not known; None: nothing is.

        They may be in any of ``groups``, so that each of these must be certified, at the threshold
        that is used: the strictest there is, which must be among the thresholds that passed in
        every group. All the groups' statements must hold for this one, so that it is wrong with at
        most the sum of their probabilities. What was observed is the groups' own and is left out.
        """
        parts = list(self.certificates.values())
        if not set(groups) <= set(self.certificates) or not all(p.certified for p in parts):
            return None
        tau = min(-np.inf if part.tau is None else part.tau for part in parts)
        delta = sum(part.delta for part in parts)
        if delta >= 1 or any(part.anchor is not None and tau < part.anchor for part in parts):
            return None
        first, act = parts[0], any(part.target == "act" for part in parts)
        return replace(
            first.without_observations(),
            group=None,
            tau=tau,
            delta=round(delta, 12),
            target="act" if act else first.target,
            include_last_step=first.include_last_step and not act,
            people=sum(part.people for part in parts),
            n=sum(part.n for part in parts),
            moved=sum(part.moved for part in parts),
            warnings=(
                "the group of the person is not known: the strictest threshold of all groups holds",
            ),
        )


NO_PROMISE = Promise()


def check_group(name: str, schema: Schema) -> None:
    """Raise SettingError unless ``name`` is a categorical or ordinal feature of the card."""
    able = [feature.name for feature in schema if feature.kind != "continuous"]
    if name in schema.names and name not in able:
        raise SettingError(
            f"groups: {name} is continuous; a categorical or ordinal feature makes groups"
        )
    if name not in able:
        nearest = did_you_mean(name, able) or f"; known: {', '.join(able) or 'none'}"
        raise SettingError(f"groups: no categorical or ordinal feature named {name!r}{nearest}")


def label_groups(
    codes: Float32Array, encoder: Encoder, name: str, values: pd.Series | None = None
) -> ObjectArray:
    """The group of each person as a text, (people,); None where it is not known.

    Parameters
    ----------
    codes
        Encoded values of the feature, (people,); NaN: not known.
    encoder, name
        The encoder, and the feature that makes groups.
    values
        The values as they stand in a table, (people,). A level that training never showed is
        encoded as another one, which is not that person's group: such people keep their own.
    """
    known = ~np.isnan(codes)
    distinct, which = np.unique(codes[known], return_inverse=True)
    labels = np.full(len(codes), None, dtype=object)
    words = (
        [_text(value) for value in encoder.decode_cells(name, distinct)] if len(distinct) else []
    )
    labels[known] = np.array([*words, None], dtype=object)[which]
    column = encoder[name]
    if (
        values is not None
        and isinstance(column, Levels)
        and all(isinstance(level, str) for level in column.levels)
    ):
        new = (values.notna() & ~values.isin(column.levels)).to_numpy()
        labels[new] = values[new].astype(str).to_numpy()
    return labels


def _text(value: object) -> str:
    return NOT_RECORDED if value is None else exact_text(value)
