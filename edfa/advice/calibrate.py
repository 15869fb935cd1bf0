"""From people who took no part in fitting to an advisor with a certificate, or with one for each
group of people.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from edfa.advice.complete import Complete, encode_complete
from edfa.advice.evaluation import roll_out
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.on_workers import open_crew, roll_out_away
from edfa.advice.promise import certify_records
from edfa.advice.rules import describe_rules
from edfa.advice.twins import check_strangers
from edfa.certification.certificate import Certificate, GroupCertificates
from edfa.certification.records import Records
from edfa.errors import DataError, EmptyTableError
from edfa.typing import Float32Array

__all__ = ["Calibration"]

# than among as many training people: the share of people who may repeat another one's facts
MORE_REPEATS = 0.1


@dataclass(frozen=True, eq=False)
class Calibration:
    """People to certify on, complete and strangers to the advisor, with ``warnings`` about some of
    them.
    """

    fitted: FittedAdvisor
    complete: Complete
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, people: Any, fitted: FittedAdvisor) -> "Calibration":
        """From a table, a frame or encoded rows; DataError for people that no certificate may be
        made on.
        """
        complete = encode_complete(people, fitted)
        if not len(complete.X):
            raise EmptyTableError("there is nobody to certify on")
        _check_independent(complete.X, fitted.train.X)
        moved = [complete.warning] if complete.moved else []
        return cls(fitted, complete, (*moved, *check_strangers(people, complete.X, fitted)))

    def certify(
        self,
        practised: Records,
        levels: dict[str, Any],
        progress: Callable[[int, int], None] | None = None,
        n_jobs: int | None = -1,
        scheduler: str | None = None,
        folder: str | Path | None = None,
    ) -> FittedAdvisor:
        """The advisor with its certificate, or the certificates of its groups.

        ``practised`` are records of training people, on whom it is chosen where the tests start;
        ``levels`` are alpha, delta and the target. ``progress``, ``scheduler`` and ``folder`` are
        those of ``Advisor.certify``.
        """
        fitted, X = self.fitted, self.complete.X  # noqa: N806
        if scheduler is None:
            records = roll_out(fitted, X, progress, n_jobs).records
        else:
            with open_crew(fitted, scheduler=scheduler, folder=folder) as crew:
                records = roll_out_away(crew, X, progress)
        if fitted.groups is not None:
            records = replace(records, group=self.complete.group[records.person])
        made = certify_records(fitted, records, practised, levels)
        if isinstance(made, Certificate):
            return replace(fitted, certificate=self._with_details(made))
        parts = {label: self._with_details(part) for label, part in made.items()}
        return replace(fitted, certificates=GroupCertificates(parts))

    def _with_details(self, certificate: Certificate) -> Certificate:
        """A certificate with the rules that plans kept to, and what else a reader should know."""
        theirs = self.complete.at_edge
        if certificate.group is not None:
            theirs = theirs[self.complete.group == certificate.group]
        return replace(
            certificate,
            rules=describe_rules(self.fitted.rules),
            model=self.fitted.own_model,
            moved=int(theirs.sum()),
            warnings=(*certificate.warnings, *self.warnings),
        )


def _check_independent(X: Float32Array, train: Float32Array) -> None:  # noqa: N803
    """Refuse encoded rows (people, features) that are the same people again and again: a DataError.

    A bound speaks of as many people as there are, so that copies of one person promise what nobody
    has looked at. Where few facts are known, strangers have the same ones, too: training rows, just
    as many of them, show how often.
    """
    shown, size = ~np.isnan(X).any(axis=0), min(len(X), len(train))
    repeated, usual = (_repeated(rows[:, shown], size) for rows in (X, train))
    if repeated - usual > MORE_REPEATS + 1.5 / np.sqrt(
        size
    ):  # which is three standard errors at most
        people = len(X) - len(np.unique(X[:, shown], axis=0))
        raise DataError(
            f"{people} of {len(X)} people repeat the facts of another one, {usual:.0%} "
            "would be usual; certify on "
            "different people, each of them once"
        )


def _repeated(rows: Float32Array, size: int) -> float:
    """The share of ``size`` rows, drawn at random, that repeat another one of them."""
    drawn = rows[np.random.default_rng(0).permutation(len(rows))[:size]]
    return 1 - len(np.unique(drawn, axis=0)) / size
