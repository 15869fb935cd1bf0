"""What an advisor has learnt: everything that interviews, files and certificates read and nothing
changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edfa.acquisition.base import Policy, never_asked
from edfa.acquisition.loop import Budget
from edfa.advice.groups import certificate_of_unknown, label_groups
from edfa.advice.receipt import versions
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate, GroupCertificates
from edfa.certification.records import Reference
from edfa.data.constraints import Constraints
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.fingerprint import canonical, digest, fingerprint
from edfa.people import Background, People
from edfa.predictors.base import Predictor
from edfa.predictors.committee import Committee
from edfa.predictors.monotone import DirectionCheck, check_directions, signs
from edfa.predictors.wrapped import Wrapped
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import BoolArray, Float32Array, Float64Array, ObjectArray

__all__ = [
    "LAST_SURVIVAL",
    "NEVER",
    "NO_RULES",
    "FittedAdvisor",
    "identify_advisor",
    "sweep_directions",
]

NO_RULES = Constraints()
LAST_SURVIVAL = 0.95  # that a plan needs after the last of several questions
NEVER = 2.0  # a signal at which nobody is told to act


@dataclass(frozen=True, eq=False)
class FittedAdvisor:
    """What an advisor has learnt.

    ``train`` are the training people; ``background`` holds the model as the policy shows it;
    ``blanket`` is the one that was found, whether or not the policy keeps to it. ``signal`` is what
    the stop rule watches, ``budget`` what one interview may cost, ``constraints`` the operator's
    rules beyond those of the card. ``directions`` says how a model that took directions as a
    penalty keeps to them.

    The promise: ``reference`` is what plans are held against, ``judges`` are the models learnt
    again that it may be held against, ``min_survival`` is the survival below which nobody is told
    to act, ``min_need`` the chance of being refused without a plan below which nobody is, and
    ``calibration`` are the encoded rows (people, features) of those the certificate was made on.

    With ``groups``, the name of a feature, there are ``certificates`` by group and no
    ``certificate`` of all people together, which nobody could rely on; ``certificate_for`` and
    ``tau_for`` say which one is about a person.

    ``made_with`` are the versions of libraries that it was fitted with; None: those of this
    process.
    """

    train: Table
    background: Background
    blanket: Blanket
    policy: Policy
    searcher: Searcher
    certificate: Certificate | None = None
    fingerprint: str = ""
    signal: str = "uncertainty"
    budget: Budget = "inf"
    directions: DirectionCheck | None = None
    constraints: Constraints = NO_RULES
    reference: Reference = "trajectory_end"
    judges: Committee | None = None
    min_survival: float = 0.5
    min_need: float = 0.0
    calibration: Float32Array | None = None
    groups: str | None = None
    certificates: GroupCertificates | None = None
    made_with: Mapping[str, str] | None = None

    @classmethod
    def of(
        cls, train: Table, model: Predictor, blanket: Blanket, policy: Policy, searcher: Searcher
    ) -> "FittedAdvisor":
        """From fitted parts; the model is shown what the policy says it may see."""
        background = Background.of(
            train, model, policy.blanket, aligned=policy.aligned, support=searcher.support_
        )
        return cls(train, background, blanket, policy, searcher)

    @property
    def schema(self) -> Schema:
        """The features."""
        return self.background.schema

    @property
    def encoder(self) -> Encoder:
        """How facts become numbers."""
        return self.background.encoder

    @property
    def model(self) -> Predictor:
        """The model as it was fitted, shown everything."""
        return self.background.fitted_model

    @property
    def decisive(self) -> Blanket | None:
        """The features that may overturn a plan once they are known: those that the model looks at;
        None: any may.
        """
        if self.policy.aligned:
            return self.blanket
        return self.policy.blanket if isinstance(self.model, Wrapped) else None

    @property
    def own_model(self) -> str:
        """The name of the user's own model and what speaks for it meanwhile; empty if another model
        decides.
        """
        return (
            f"{self.model.own.name}, {self.model.partial}"
            if isinstance(self.model, Wrapped)
            else ""
        )

    @property
    def predictor(self) -> Predictor:
        """The model as the policy shows it."""
        return self.background.predictor

    @property
    def tau(self) -> float | None:
        """The threshold for a person of whom no group is known; None if nothing is promised to
        them.
        """
        certificate = self.certificate_for(None)
        return None if certificate is None else certificate.tau

    def certificate_for(self, group: str | None) -> Certificate | None:
        """The certificate that speaks of a person of ``group``, a label of ``group_of``; None: no
        promise is made.

        Without groups it is the same for everybody. With groups a person relies on the certificate
        of their own group alone. Of whom the group is not known (None), the strictest threshold
        holds, if every group is certified there.
        """
        if self.groups is None:
            return self._valid(self.certificate)
        if self.certificates is None:
            return None
        if group is None:
            return self._of_unknown_group
        return self._valid(self.certificates.certificates.get(group))

    def is_own(self, certificate: Certificate) -> bool:
        """Whether a certificate is about this advisor, what it watches, and what its plans are held
        against.
        """
        about = (certificate.advisor, certificate.signal, certificate.reference)
        return about == (self.fingerprint, self.signal, self.reference)

    def _valid(self, certificate: Certificate | None) -> Certificate | None:
        """A certificate that promises something of this advisor; else None."""
        return (
            certificate
            if certificate is not None and certificate.certified and self.is_own(certificate)
            else None
        )

    @cached_property
    def _of_unknown_group(self) -> Certificate | None:
        seen = set(self.group_of(self.train).tolist())
        if self.certificates is None or not all(map(self.is_own, self.certificates.values())):
            return None
        return certificate_of_unknown(self.certificates, seen)

    def tau_for(self, groups: ObjectArray) -> Float64Array:
        """The threshold of each person's certificate, (people,), from labels of ``group_of``; NaN:
        no promise is made.

        No signal is at most NaN, so that ``signal <= tau_for(groups)`` tells nobody to act without
        a certificate.
        """
        distinct = dict.fromkeys(groups.tolist())
        chosen = {group: self.certificate_for(group) for group in distinct}
        taus = {
            group: np.nan if own is None or own.tau is None else own.tau
            for group, own in chosen.items()
        }
        return np.array([taus[group] for group in groups.tolist()], dtype=float)

    def group_of(self, people: Table | Float32Array) -> ObjectArray:
        """The group of each person of a table, or of encoded rows (people, features); None: not
        known, (people,).

        Without groups, nobody's is.
        """
        if self.groups is None:
            return np.full(len(people), None, dtype=object)
        position = self.schema.index(self.groups)
        if isinstance(people, Table):
            return label_groups(
                people.X[:, position], self.encoder, self.groups, people.frame[self.groups]
            )
        return label_groups(people[:, position], self.encoder, self.groups)

    @property
    def promise_key(self) -> str:
        """All that is promised, as text; two advisors of one fingerprint differ in nothing else."""
        held = self.certificates if self.groups is not None else self.certificate
        return "" if held is None else held.to_json()

    @property
    def promises_everybody(self) -> bool:
        """Whether the promise is about all who have a plan, so that whoever is asked to the end may
        act on the last.
        """
        made = next(iter(self.certificates.values())) if self.certificates else self.certificate
        return made is not None and made.target in ("all", "refused")

    @property
    def ceiling(self) -> float | None:
        """The largest signal at which anybody is told to act; None: there is no such limit."""
        return (
            1 - self.min_survival if self.signal == "survival" and self.min_survival > 0 else None
        )

    def hold_back(self, signal: Float64Array, at_last: BoolArray) -> Float64Array:
        """The signal (people,) with ``NEVER`` for those who have been asked the last question,
        (people,), in vain.

        Whoever is asked to the end is a hard case: no earlier plan was good enough. If the promise
        is about another model, they are told to act only on a plan that nearly all models accept.
        """
        if self.signal != "survival" or self.reference == "trajectory_end":
            # held against the end of the same questions, a plan that is made there cannot fail
            return signal
        return np.where(at_last & (signal > 1 - LAST_SURVIVAL), NEVER, signal)

    def hold_unneeded(self, people: People, signal: Float64Array) -> Float64Array:
        """The signal (people,) with ``NEVER`` for those whose chance of being refused without a
        plan is too small.

        They are asked on: effort that is not needed is nothing to advise.
        """
        if (
            not self.min_need
            or not isinstance(self.searcher, SurvivalSearch)
            or self.signal != "survival"
        ):
            return signal
        rows = np.flatnonzero(signal <= (np.inf if self.ceiling is None else self.ceiling))
        some = People(people.X[rows], people.background, decided=people.decision[rows])
        stays = self.searcher.completions_.decision_stability(some) if len(rows) else np.zeros(0)
        held = signal.copy()
        held[rows[stays < self.min_need]] = NEVER
        return held

    @cached_property
    def favourable(self) -> int:
        """The code of the favourable class."""
        return self.schema.classes.index(self.schema.favourable)

    @cached_property
    def relevant(self) -> BoolArray:
        """The start set and what the model is shown, (features,). Other facts are recorded and
        change nothing.
        """
        return self.background.start | self.background.visible

    @cached_property
    def rules(self) -> Constraints:
        """The card's and the operator's rules together, as they hold for everybody."""
        return self.schema.rules_with(self.constraints)

    @cached_property
    def never_ask(self) -> BoolArray:
        """Which features nobody is asked for, (features,). Who tells them anyway is heard."""
        return never_asked(self.schema, self.constraints)

    @cached_property
    def asked(self) -> BoolArray:
        """What people are asked for, or known by from the start, as far as it matters,
        (features,).
        """
        return np.asarray(self.relevant & ~self.never_ask)

    @property
    def limits(self) -> Constraints | None:
        """What plans are searched under, beyond the card; None if that is nothing."""
        return None if self.constraints == NO_RULES else self.constraints

    @cached_property
    def threshold(self) -> float | None:
        """The probability of the favourable class that is needed; None: the likeliest class is
        decided.
        """
        threshold, about = self.predictor.threshold, self.predictor.favourable
        if threshold is None or (about != self.favourable and len(self.schema.classes) > 2):
            return None
        return float(
            threshold if self.favourable == (1 if about is None else about) else 1 - threshold
        )

    @cached_property
    def card_costs(self) -> Float64Array:
        """The card's prices, (features,)."""
        return self.schema.costs.astype(float)


def sweep_directions(fitted: FittedAdvisor) -> DirectionCheck | None:
    """Sweep a model that only takes a penalty for going the wrong way, or none, as the policy shows
    it to people.
    """
    directions = (
        fitted.model.get_params(deep=False).get("monotone")
        if fitted.model.refits
        else signs(fitted.schema)
    )
    if fitted.model.obeys_directions or not any(directions or ()):
        return None
    return check_directions(fitted.predictor, fitted.train.X, directions, fitted.schema.names)


def identify_advisor(fitted: FittedAdvisor) -> str:
    """One word for all that an advisor's answers depend on, worked out from its content.

    Any change of the model and its trees or weights, the training people and how they are encoded,
    the card, the rules, the blanket, the policy, the searcher, the signal, the budget, the
    threshold, the reference and its judges, the floors, or a library's version changes it. The
    certificate is no part of it: it names the advisor that it is about.
    """
    learnt = {
        "model": fitted.model,
        "blanket": fitted.blanket,
        "policy": fitted.policy,
        "searcher": fitted.searcher,
    }
    people = {"X": fitted.train.X, "y": fitted.train.y, "calibration": fitted.calibration}
    return fingerprint(
        **{name: digest(part) for name, part in learnt.items()},
        people=digest(people),
        encoder=fitted.encoder.to_json(),
        card=canonical(fitted.schema),
        rules=canonical(fitted.constraints),
        watched=(
            f"{fitted.signal} {fitted.budget} {fitted.model.threshold} {fitted.model.favourable}"
        ),
        promise=f"{fitted.reference} {digest(fitted.judges)} {fitted.groups or ''}",
        floors=f"{fitted.min_survival} {fitted.min_need}",
        directions="" if fitted.directions is None else fitted.directions.to_json(),
        versions=str(sorted((fitted.made_with or versions()).items())),
    )
