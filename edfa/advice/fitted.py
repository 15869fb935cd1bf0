"""What an advisor has learnt: everything that interviews, files and certificates read and nothing
changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from edfa.acquisition.base import Policy, never_asked
from edfa.acquisition.loop import Budget
from edfa.advice.receipt import versions
from edfa.advice.terms import NO_PROMISE, Promise, label_groups
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate
from edfa.data.encode import Encoder
from edfa.data.rules import NO_RULES, Rules
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.fingerprint import canonical, digest, fingerprint
from edfa.people import Background, People
from edfa.predictors.base import Predictor
from edfa.predictors.committee import Committee
from edfa.predictors.monotone import DirectionCheck, check_directions, signs
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import BoolArray, Float32Array, Float64Array, ObjectArray

__all__ = ["FittedAdvisor", "identify_advisor", "sweep_directions"]


@dataclass(frozen=True, eq=False)
class FittedAdvisor:
    """What an advisor has learnt.

    Parameters
    ----------
    train
        The training people.
    background
        The model as the policy shows it, with the card and the encoder.
    blanket
        The blanket that was found, whether or not the policy keeps to it.
    policy, searcher
        What is asked next, and how plans are found.
    budget
        What one interview may cost.
    operator_rules
        The operator's rules beyond those of the card.
    promise
        What is promised, and the certificates.
    judges
        Models learnt again that plans may be held against; they choose nothing.
    calibration
        Encoded rows (people, features) of the calibration part of the table.
    directions
        How a model that took directions as a penalty keeps to them; None: exactly, or it has none.
    fingerprint
        One word for all that answers depend on; see ``identify_advisor``.
    made_with
        The versions of libraries that it was fitted with; None: those of this process.
    """

    train: Table
    background: Background
    blanket: Blanket
    policy: Policy
    searcher: Searcher
    budget: Budget = "inf"
    operator_rules: Rules = NO_RULES
    promise: Promise = NO_PROMISE
    judges: Committee | None = None
    calibration: Float32Array = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    directions: DirectionCheck | None = None
    fingerprint: str = ""
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
        return self.policy.blanket if not self.model.refits else None

    @property
    def user_model(self) -> str:
        """The name of a user model and what answers for it meanwhile; empty if another model
        decides.
        """
        return self.model.user_model_name

    @property
    def predictor(self) -> Predictor:
        """The model as the policy shows it."""
        return self.background.predictor

    def certificate_for(self, group: str | None) -> Certificate | None:
        """The certificate that speaks of a person of ``group``, a label of ``group_of``; None:
        nothing is promised.

        Without groups it is the same for everybody. With groups a person relies on the certificate
        of their own group alone; of whom the group is not known (None), the strictest threshold
        holds, if every group is certified there.
        """
        promise = self.promise
        if promise.groups is not None and group is None:
            return self._of_unknown_group
        made = promise.certificates.get(None if promise.groups is None else group)
        if made is None or not made.certified or not promise.check_owner(made, self.fingerprint):
            return None
        return made

    @cached_property
    def _of_unknown_group(self) -> Certificate | None:
        certificates = self.promise.certificates.values()
        if not all(self.promise.check_owner(made, self.fingerprint) for made in certificates):
            return None
        return self.promise.of_unknown_group(set(self.group_of(self.train).tolist()))

    def tau_for(self, groups: ObjectArray) -> Float64Array:
        """The threshold of each person's certificate, (people,), from labels of ``group_of``; NaN:
        no promise is made.

        No signal is at most NaN, so that ``signal <= tau_for(groups)`` tells nobody to act without
        a certificate.
        """
        taus = {}
        for group in dict.fromkeys(groups.tolist()):
            made = self.certificate_for(group)
            taus[group] = np.nan if made is None or made.tau is None else made.tau
        return np.array([taus[group] for group in groups.tolist()], dtype=float)

    def group_of(self, people: Table | Float32Array) -> ObjectArray:
        """The group of each person of a table, or of encoded rows (people, features); None: not
        known, (people,).

        Without groups, nobody's is.
        """
        name = self.promise.groups
        if name is None:
            return np.full(len(people), None, dtype=object)
        position = self.schema.index(name)
        if isinstance(people, Table):
            return label_groups(people.X[:, position], self.encoder, name, people.frame[name])
        return label_groups(people[:, position], self.encoder, name)

    def lacks_need(self, people: People, signal: Float64Array) -> BoolArray:
        """Whose chance of being refused without a plan is too small for a plan to be advised,
        (people,): effort that is not needed is nothing to advise.

        ``signal`` (people,) is what the stop rule watches; nobody above the ceiling, or whose
        signal is NaN, is looked at.
        """
        lacks, least = np.zeros(len(signal), dtype=bool), self.promise.min_need
        watched = self.promise.ending.signal == "survival"
        if not least or not watched or not isinstance(self.searcher, SurvivalSearch):
            return lacks
        ceiling = self.promise.ceiling
        rows = np.flatnonzero(signal <= (np.inf if ceiling is None else ceiling))
        if len(rows):
            some = People(people.X[rows], people.background, decided=people.decision[rows])
            stays = self.searcher.completions_.decision_stability(some)
            lacks[rows[stays < least]] = True
        return lacks

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
    def rules(self) -> Rules:
        """The card's and the operator's rules together, as they hold for everybody."""
        return self.schema.rules_with(self.operator_rules)

    @cached_property
    def never_ask(self) -> BoolArray:
        """Which features nobody is asked for, (features,). Who tells them anyway is heard."""
        return never_asked(self.schema, self.operator_rules)

    @cached_property
    def asked(self) -> BoolArray:
        """What people are asked for, or known by from the start, as far as it matters,
        (features,).
        """
        return np.asarray(self.relevant & ~self.never_ask)

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
    promise = fitted.promise
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
        rules=canonical(fitted.operator_rules),
        watched=(
            f"{promise.ending.signal} {fitted.budget} "
            f"{fitted.model.threshold} {fitted.model.favourable}"
        ),
        promise=f"{promise.reference} {digest(fitted.judges)} {promise.groups or ''}",
        floors=f"{promise.min_survival} {promise.min_need}",
        directions="" if fitted.directions is None else fitted.directions.to_json(),
        versions=str(sorted((fitted.made_with or versions()).items())),
    )
