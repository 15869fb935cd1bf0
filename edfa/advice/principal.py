"""The principal reasons of one refusal, as a letter names them.

``find_reasons`` works them out, and refuses to name sensitive features without a legal basis.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edfa.errors import DataError
from edfa.explanation.principal_reasons import (
    Effort,
    PrincipalReasons,
    Shortfall,
    principal_reasons,
)
from edfa.typing import BoolArray

if TYPE_CHECKING:
    from edfa.advice.assessment import Assessment
    from edfa.advice.fitted import FittedAdvisor

OTHERS = 1_000  # training people to compare with, where each is asked about in many completions
FEWER = Effort(compared=16, exact=8, permutations=16)  # questions, for the same reason


@dataclass(frozen=True)
class NamedReason:
    """One principal reason.

    Parameters
    ----------
    features
        The features that it is made of, tell against the person and are unfavourable.
    contribution, share
        What it contributes to the score, and its share of all that tells against the person.
    basis
        The legal basis on which a sensitive feature among them is named; empty if there is none.
    """

    features: tuple[str, ...]
    contribution: float
    share: float
    basis: str = ""


@dataclass(frozen=True, eq=False)
class Reasons:
    """The principal reasons of one refusal.

    Parameters
    ----------
    named
        The reasons, the strongest first; none if no fact is unfavourable by itself.
    values
        What every fact contributes.
    audit
        What they were worked out from as plain data, for the operator's files.
    """

    named: tuple[NamedReason, ...]
    values: PrincipalReasons
    audit: Mapping[str, Any]


def find_reasons(assessment: "Assessment", nameable: Mapping[str, str]) -> Reasons:
    """The principal reasons why the one person of ``assessment`` is refused, from what is known of
    them.

    Facts with the same ``reason`` on the card are one reason. While facts are missing that a user
    model uses, its score is the log odds of its decision in the person's completions.

    Parameters
    ----------
    assessment
        One person, who is refused.
    nameable
        Sensitive features that may be named, with the legal basis of each.

    Raises
    ------
    DataError
        If a sensitive feature that is not nameable is among them, the person is granted, or nothing
        is known.
    """
    fitted, predictor = assessment.fitted, assessment.majority()
    reasons = [feature.reason for feature in fitted.schema]
    by_completions = assessment.shares is not None
    values = principal_reasons(
        assessment.X[0],
        predictor,
        fitted.train.X[:OTHERS] if by_completions else fitted.train.X,
        fitted.favourable,
        threshold=predictor.threshold if by_completions else fitted.threshold,
        groups=[reasons.index(own) if own else number for number, own in enumerate(reasons)],
        best=_at_best(assessment),
        effort=FEWER if by_completions else Effort(),
    )
    chosen = values.principal() or values.ranked[:1]  # of many small ones the first is named
    named = tuple(_named(shortfall, values, fitted, nameable) for shortfall in chosen)
    return Reasons(named, values, _audit(fitted, values))


def _at_best(assessment: "Assessment") -> BoolArray:
    """Which facts of the one person are the best level of an ordinal feature whose card says which
    way is good, (features,).
    """
    fitted, best = assessment.fitted, np.zeros(len(assessment.X[0]), dtype=bool)
    for i, feature in enumerate(fitted.schema):
        if feature.kind == "ordinal" and feature.monotone and assessment.known[0, i]:
            level = fitted.encoder.decode_cells(feature.name, assessment.X[:1, i])[0]
            best[i] = level == feature.levels[-1 if feature.monotone == "up" else 0]
    return best


def _named(
    shortfall: Shortfall,
    values: PrincipalReasons,
    fitted: "FittedAdvisor",
    nameable: Mapping[str, str],
) -> NamedReason:
    """A reason by the names of its features.

    Parameters
    ----------
    shortfall
        A reason by the positions of its features.
    values
        What every fact contributes.
    fitted
        The advisor.
    nameable
        The legal basis of naming sensitive features, by name.

    Raises
    ------
    DataError
        For a sensitive feature without a basis.
    """
    against = [position for position in shortfall.features if values.speaks_against(position)]
    names = tuple(fitted.schema.names[position] for position in against)
    sensitive = [name for name in names if fitted.schema[name].sensitive]
    for name in sensitive:
        if not nameable.get(name, "").strip():
            raise DataError(
                f"{name} is sensitive and among the principal reasons of this refusal; none may be "
                f"left out, so there is no letter: fit the advisor without {name}, or give the "
                "legal basis for naming it under [nameable] in letter.toml"
            )
    basis = "; ".join(dict.fromkeys(nameable[name] for name in sensitive))
    return NamedReason(names, shortfall.contribution, shortfall.share, basis)


def _audit(fitted: "FittedAdvisor", values: PrincipalReasons) -> dict[str, Any]:
    """What every fact contributed, with what the person was compared, and one hash of all those
    people's rows, as plain data.

    A hash of a single row could be found out by trying: few facts have few values.
    """
    known = ~np.isnan(values.contributions)
    rows = fitted.train.X[values.compared][:, known]
    names = np.array(fitted.schema.names)[known].tolist()
    return {
        "contributions": dict(zip(names, values.contributions[known].tolist(), strict=True)),
        "standard_errors": dict(zip(names, values.errors[known].tolist(), strict=True)),
        "margin": values.margin,
        "baseline": values.baseline,
        "people": values.people,
        "baseline_sha256": hashlib.sha256(np.ascontiguousarray(rows).tobytes()).hexdigest(),
    }
