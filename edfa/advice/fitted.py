"""What an advisor has learnt and what it promises: everything that interviews, files and
certificates read and nothing changes.

An interview ends in one of three *endings*: a person is told that they will be granted, to act, or
that nothing helps. How that is watched, what counts as a broken promise and how often it may be
broken are the ending's; everything else about a promise (delta, reference, groups) is shared by all
endings. With a loss about plans alone ("let_down", "recourse") the only ending is to act.
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
from edfa.certification.endings import EndingName
from edfa.certification.records import Loss, Reference
from edfa.certification.replay import OF_PLANS
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
from edfa.recourse.outlook import Outlook
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.recourse.survival import Completions
from edfa.typing import BoolArray, Float32Array, Float64Array, ObjectArray

FINAL_SURVIVAL = 0.95  # that a plan needs after the last of several questions
EXCESS = 1.5  # times the effort of the plan at the end, from which on a plan is too dear
NEVER_ACTS = 2.0  # the signal of who may not act; all others are at most 1
MOST_UNSURE = 0.5  # the largest signal at which people are told anything else than to act
NOT_RECORDED = "not recorded"  # the group of people whose value is truly missing


@dataclass(frozen=True)
class Ending:
    """One way in which an interview ends with a promise.

    Parameters
    ----------
    name
        What people are told: ``"granted"``, ``"act"`` or ``"nothing"``.
    signal
        What the stop rule watches: a name of ``edfa.certification.replay.SIGNALS``; of the others,
        ``"chance"`` (one minus the probability of the favourable decision) and ``"no_way"`` (one
        minus the share of people like this one who are refused and have no plan in the end).
    loss
        What counts as a broken promise: a name of ``edfa.certification.records.LOSSES``.
    target
        Whom the promise is about: a name of ``edfa.certification.risk_curve.TARGETS``.
    alpha
        The largest share of these people to whom it may be broken.
    certificate
        The certificate of everybody, or those of the groups; None before calibration.
    """

    name: EndingName = "act"
    signal: str = "uncertainty"
    loss: Loss = "let_down"
    target: Target = "early"
    alpha: float = 0.2
    certificate: Certificate | GroupCertificates | None = None

    @property
    def certificates(self) -> dict[str | None, Certificate]:
        """Certificates by group; without groups, the one for everybody under None."""
        if isinstance(self.certificate, GroupCertificates):
            return {str(label): made for label, made in self.certificate.items()}
        return {} if self.certificate is None else {None: self.certificate}


@dataclass(frozen=True)
class Promise:
    """What an advisor promises.

    Parameters
    ----------
    endings
        The endings that it is about; people may be told to act in any case.
    delta
        The probability that any of the certificates of everybody, or of one group, is wrong.
    reference
        What plans are held against: a name of ``edfa.certification.records.REFERENCES``.
    min_survival
        Nobody is told to act on a plan whose survival is below this (signal ``"survival"``), or
        that is less likely than this to help (signal ``"help"``).
    max_excess
        Nobody is told to act while questions are left and their plan is likelier than this to take
        more than 1.5 times the effort of the one that they would have in the end.
    groups
        The feature whose levels each have certificates of their own; None: everybody together.
    ended_by
        Of calibration people who were asked the first question of the path, the second and so on,
        the share whose interview ended with the answer, (questions,).
    """

    endings: tuple[Ending, ...] = (Ending(),)
    delta: float = 0.05
    reference: Reference = "trajectory_end"
    min_survival: float = 0.5
    max_excess: float = 0.2
    groups: str | None = None
    ended_by: tuple[float, ...] = ()

    def __getitem__(self, name: str) -> Ending:
        """The ending of this name."""
        return next(ending for ending in self.endings if ending.name == name)

    @property
    def ending(self) -> Ending:
        """The ending in which people are told to act."""
        return self["act"]

    @property
    def certificate(self) -> Certificate | GroupCertificates | None:
        """What is promised to people who are told to act; None before calibration."""
        return self.ending.certificate

    @property
    def certificates(self) -> dict[str | None, Certificate]:
        """The same by group; without groups, the one for everybody under None."""
        return self.ending.certificates

    @property
    def certificate_id(self) -> str:
        """The digest of all certificates together; empty without any."""
        digests = {e.name: e.certificate.digest for e in self.endings if e.certificate is not None}
        return digests["act"] if [*digests] == ["act"] else digest(digests) if digests else ""

    def with_certificates(self, made: Mapping[str, Certificate | GroupCertificates]) -> "Promise":
        """The promise with the certificates of its endings, by name."""
        endings = (replace(ending, certificate=made[ending.name]) for ending in self.endings)
        return replace(self, endings=tuple(endings))

    def ceiling_of(self, name: EndingName) -> float:
        """The largest signal at which anybody is told this ending; infinite: there is no such
        limit.
        """
        if name != "act":
            return MOST_UNSURE
        limited = self.ending.signal in OF_PLANS and self.min_survival > 0
        return 1 - self.min_survival if limited else np.inf

    @property
    def ceiling(self) -> float:
        """The largest signal at which anybody is told to act; infinite: there is no such limit."""
        return self.ceiling_of("act")

    @property
    def covers_everybody(self) -> bool:
        """Whether the promise is about all who have a plan, so that whoever is asked to the end
        may act on the last one.
        """
        made = next(iter(self.certificates.values()), None)
        return made is not None and made.target in ("all", "refused")

    def lacks_final_survival(self, survival: Float64Array, at_last: BoolArray) -> BoolArray:
        """Who has been asked the last question and has no plan that is good enough for that,
        (people,).

        Whoever is asked to the end is a hard case: no earlier plan was good enough. If the promise
        is about another model, they are told to act only on a plan that nearly all models accept.
        Held against the end of the same questions, a plan that is made there cannot fail.

        Parameters
        ----------
        survival
            The survival of each person's plan, (people,).
        at_last
            Who has been asked the last of several questions, (people,).
        """
        if self.ending.signal not in OF_PLANS or self.reference == "trajectory_end":
            return np.zeros(len(survival), dtype=bool)
        return np.asarray(at_last & (survival < FINAL_SURVIVAL))

    def check_owner(self, certificate: Certificate, advisor: str, ending: Ending) -> bool:
        """Whether a certificate is about the advisor of this fingerprint, what it watches, and
        what its plans are held against.

        Parameters
        ----------
        certificate
            A certificate of everybody or of a group.
        advisor
            The fingerprint of the advisor.
        ending
            The ending that it should be about.
        """
        about = (certificate.advisor, certificate.signal, certificate.reference, certificate.loss)
        return about == (advisor, ending.signal, self.reference, ending.loss)


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
    outlook
        How training people stand when everything is known; None where nobody is told that nothing
        helps.
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
    outlook: Outlook | None = None
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

    def certificate_for(self, group: str | None, name: EndingName = "act") -> Certificate | None:
        """The certificate that speaks of a person; None: nothing is promised.

        Without groups it is the same for everybody. With groups a person relies on the certificate
        of their own group alone.

        Parameters
        ----------
        group
            A label of ``group_of``; None: not known. Then the strictest threshold holds, if every
            group is certified there.
        name
            The ending that it is about.
        """
        promise, ending = self.promise, self.promise[name]
        if promise.groups is not None and group is None:
            return self._of_unknown_group(name)
        made = ending.certificates.get(None if promise.groups is None else group)
        own = made is not None and promise.check_owner(made, self.fingerprint, ending)
        return made if made is not None and own and made.certified else None

    def _of_unknown_group(self, name: EndingName) -> Certificate | None:
        """What is promised to people whose group is not known; None: nothing is.

        They may be in any group, so that each must be certified, at the threshold that is used: the
        strictest there is, which must be among the thresholds that passed in every group. All the
        groups' statements must hold for this one, so that it is wrong with at most the sum of their
        probabilities. What was observed is the groups' own and is left out.
        """
        labels = {**self.promise[name].certificates, **dict.fromkeys(self._groups_of_training)}
        found = (self.certificate_for(label, name) for label in labels)
        parts = [made for made in found if made is not None]
        tau = min((-np.inf if part.tau is None else part.tau for part in parts), default=np.inf)
        delta = sum(part.delta for part in parts)
        together = sum(part.family_delta or 0.0 for part in parts)
        untested = any(part.anchor is not None and tau < part.anchor for part in parts)
        if len(parts) < len(labels) or delta >= 1 or untested:
            return None
        first, act = parts[0], any(part.target == "act" for part in parts)
        return replace(
            first.without_observations(),
            group=None,
            tau=tau,
            delta=round(delta, 12),
            family_delta=round(together, 12) or None,
            target="act" if act else first.target,
            include_last_step=first.include_last_step and not act,
            people=sum(part.people for part in parts),
            n=sum(part.n for part in parts),
            moved=sum(part.moved for part in parts),
            warnings=(
                "the group of the person is not known: the strictest threshold of all groups holds",
            ),
        )

    @cached_property
    def _groups_of_training(self) -> list[str | None]:
        """The groups of the training people, one after the other."""
        return list(self.group_of(self.train))

    def tau_for(self, groups: ObjectArray, name: EndingName = "act") -> Float64Array:
        """The threshold of each person's certificate, (people,); NaN: no promise is made.

        No signal is at most NaN, so that ``signal <= tau_for(groups)`` tells nobody to act without
        a certificate.

        Parameters
        ----------
        groups
            Labels of ``group_of``, (people,); None: not known.
        name
            The ending that it is about.
        """
        taus = {}
        for group in dict.fromkeys(groups.tolist()):
            made = self.certificate_for(group, name)
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

    @property
    def completions(self) -> Completions:
        """What completes partly known people: the searcher's training people and models, or the
        background's.
        """
        if isinstance(self.searcher, SurvivalSearch):
            return self.searcher.completions_
        return Completions(self.background.neighbours)

    def chance(self, people: People) -> Float64Array:
        """The probability that each person is granted when everything is known, (people,)."""
        if isinstance(self.searcher, SurvivalSearch):
            return self.searcher.chance(people, self.favourable)
        return self.completions.chance(people, self.favourable)

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
            f"{[(ending.signal, ending.loss) for ending in promise.endings]} {fitted.budget} "
            f"{fitted.model.threshold} {fitted.model.favourable}"
        ),
        promise=f"{promise.reference} {digest(fitted.judges)} {promise.groups or ''}",
        outlook="" if fitted.outlook is None else digest(fitted.outlook.stuck),
        floors=f"{promise.min_survival} {promise.max_excess}",
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
