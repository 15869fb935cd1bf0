"""What an advisor has learnt and what it promises: everything that interviews, files and
certificates read and nothing changes.

An interview may end in an *ending*: a person is told to act. How that is watched, what counts as
a broken promise and whom the promise is about are the ending's; everything else about a promise
(reference, floors, groups, certificates) is shared by all endings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from edfa.acquisition.base import Policy, never_asked
from edfa.acquisition.loop import Budget
from edfa.advice.receipt import versions
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate, GroupCertificates
from edfa.certification.records import Loss, Reference
from edfa.certification.risk_curve import Target
from edfa.data.encode import Encoder, Levels
from edfa.data.rules import NO_RULES, Rules
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.data.values import exact_text
from edfa.errors import SettingError, did_you_mean
from edfa.fingerprint import canonical, digest, fingerprint
from edfa.people import Background, HasBackground, People
from edfa.predictors.base import Predictor
from edfa.predictors.committee import Committee
from edfa.predictors.monotone import DirectionCheck, check_directions, signs
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import BoolArray, Float32Array, Float64Array, ObjectArray

FINAL_SURVIVAL = 0.95  # that a plan needs after the last of several questions
NEVER_ACTS = 2.0  # the signal of who may not act; all others are at most 1
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
    def ceiling(self) -> float:
        """The largest signal at which anybody is told to act; infinite: there is no such limit."""
        limited = self.ending.signal == "survival" and self.min_survival > 0
        return 1 - self.min_survival if limited else np.inf

    @property
    def covers_everybody(self) -> bool:
        """Whether the promise is about all who have a plan, so that whoever is asked to the end
        may act on the last one.
        """
        made = next(iter(self.certificates.values()), None)
        return made is not None and made.target in ("all", "refused")

    def lacks_final_survival(self, signal: Float64Array, at_last: BoolArray) -> BoolArray:
        """Who has been asked the last question and has no plan that is good enough for that,
        (people,).

        Whoever is asked to the end is a hard case: no earlier plan was good enough. If the promise
        is about another model, they are told to act only on a plan that nearly all models accept.
        Held against the end of the same questions, a plan that is made there cannot fail.

        Parameters
        ----------
        signal
            What the stop rule watches, (people,).
        at_last
            Who has been asked the last of several questions, (people,).
        """
        if self.ending.signal != "survival" or self.reference == "trajectory_end":
            return np.zeros(len(signal), dtype=bool)
        return np.asarray(at_last & (signal > 1 - FINAL_SURVIVAL))

    def check_owner(self, certificate: Certificate, advisor: str) -> bool:
        """Whether a certificate is about the advisor of this fingerprint, what it watches, and
        what its plans are held against.

        Parameters
        ----------
        certificate
            A certificate of everybody or of a group.
        advisor
            The fingerprint of the advisor.
        """
        about = (certificate.advisor, certificate.signal, certificate.reference)
        return about == (advisor, self.ending.signal, self.reference)


NO_PROMISE = Promise()


@dataclass(frozen=True, eq=False)
class FittedAdvisor(HasBackground):
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
        """From fitted parts; the model is shown what the policy says it may see.

        Parameters
        ----------
        train
            The training part.
        model, blanket, policy, searcher
            The parts, fitted on it.
        """
        background = Background.of(
            train, model, policy.blanket, aligned=policy.aligned, support=searcher.support_
        )
        return cls(train, background, blanket, policy, searcher)

    @property
    def model(self) -> Predictor:
        """The model as it was fitted, shown everything."""
        return self.background.fitted_model

    @property
    def decisive(self) -> Blanket | None:
        """The features that may overturn a plan once they are known, as a blanket: those that the
        model looks at. None: any may.
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

    def certificate_for(self, group: str | None) -> Certificate | None:
        """The certificate that speaks of a person; None: nothing is promised.

        Without groups it is the same for everybody. With groups a person relies on the certificate
        of their own group alone.

        Parameters
        ----------
        group
            A label of ``group_of``; None: not known. Then the strictest threshold holds, if every
            group is certified there.
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
        """What is promised to people whose group is not known; None: nothing is.

        They may be in any group, so that each must be certified, at the threshold that is used: the
        strictest there is, which must be among the thresholds that passed in every group. All the
        groups' statements must hold for this one, so that it is wrong with at most the sum of their
        probabilities. What was observed is the groups' own and is left out.
        """
        labels = {**self.promise.certificates, **dict.fromkeys(self.group_of(self.train).tolist())}
        parts = [made for made in map(self.certificate_for, labels) if made is not None]
        tau = min((-np.inf if part.tau is None else part.tau for part in parts), default=np.inf)
        delta = sum(part.delta for part in parts)
        untested = any(part.anchor is not None and tau < part.anchor for part in parts)
        if len(parts) < len(labels) or delta >= 1 or untested:
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

    def tau_for(self, groups: ObjectArray) -> Float64Array:
        """The threshold of each person's certificate, (people,); NaN: no promise is made.

        No signal is at most NaN, so that ``signal <= tau_for(groups)`` tells nobody to act without
        a certificate.

        Parameters
        ----------
        groups
            Labels of ``group_of``, (people,); None: not known.
        """
        taus = {}
        for group in dict.fromkeys(groups.tolist()):
            made = self.certificate_for(group)
            taus[group] = np.nan if made is None or made.tau is None else made.tau
        return np.array([taus[group] for group in groups.tolist()], dtype=float)

    def group_of(self, people: Table | Float32Array) -> ObjectArray:
        """The label of the group of each person, (people,); None: not known. Without groups,
        nobody's is.

        Parameters
        ----------
        people
            A table, whose levels that training never showed are groups, too; or encoded rows,
            (people, features).
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

        Parameters
        ----------
        people
            Partly known people.
        signal
            What the stop rule watches, (people,); nobody above the ceiling, or whose signal is NaN,
            is looked at.
        """
        lacks, least = np.zeros(len(signal), dtype=bool), self.promise.min_need
        watched = self.promise.ending.signal == "survival"
        if not least or not watched or not isinstance(self.searcher, SurvivalSearch):
            return lacks
        rows = np.flatnonzero(signal <= self.promise.ceiling)
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


def sweep_directions(fitted: FittedAdvisor) -> DirectionCheck | None:
    """How a model keeps to directions, as the policy shows it to people.

    Returns
    -------
    DirectionCheck or None
        None for a model that obeys its directions exactly, and where there are no directions. Of a
        user model, which is asked as it is, the card's directions are checked.
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


def check_group(name: str, schema: Schema) -> None:
    """Raise SettingError unless a feature can make groups.

    Parameters
    ----------
    name
        The name of the feature; it must be a categorical or ordinal one of the card.
    schema
        The card.
    """
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
    if len(distinct):
        cells = encoder.decode_cells(name, distinct)
        words = [NOT_RECORDED if value is None else exact_text(value) for value in cells]
        labels[known] = np.array(words, dtype=object)[which]
    column = encoder[name]
    if values is not None and isinstance(column, Levels) and column.words:
        new = (values.notna() & ~values.isin(column.levels)).to_numpy()
        labels[new] = values[new].astype(str).to_numpy()
    return labels
