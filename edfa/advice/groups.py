"""Groups of people, each with a certificate of its own: who is in which, and what holds where that
is not known.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from edfa.certification.certificate import Certificate, GroupCertificates
from edfa.data.encode import Encoder, Levels
from edfa.data.numbers import exact_text
from edfa.data.schema import Schema
from edfa.errors import SettingError, did_you_mean
from edfa.typing import Float32Array, ObjectArray

__all__ = ["NOT_RECORDED", "certificate_of_unknown", "check_group", "label_groups"]

NOT_RECORDED = "not recorded"  # the group of people whose value is truly missing


def check_group(name: str, schema: Schema) -> None:
    """Raise unless ``name`` is a feature of the card that makes groups: a categorical or an ordinal
    one.
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

    ``codes`` (people,) are the encoded values of the feature ``name``, NaN: not known. A level that
    training never showed is encoded as another one, which is not that person's group: with
    ``values`` (people,), the values as they stand in a table, such people keep their own.
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


def certificate_of_unknown(
    certificates: GroupCertificates, groups: Iterable[str]
) -> Certificate | None:
    """What is promised to people whose group is not known; None: nothing is.

    They may be in any of ``groups``, so that each of these must be certified, at the threshold that
    is used: the strictest there is, which must be among the thresholds that passed in every group.
    All the groups' statements must hold for this one, so that it is wrong with at most the sum of
    their probabilities. What was observed is the groups' own and is left out.
    """
    parts = list(certificates.values())
    if not set(groups) <= set(certificates) or not all(part.certified for part in parts):
        return None
    tau, delta = min(_tau(part) for part in parts), sum(part.delta for part in parts)
    if delta >= 1 or any(part.anchor is not None and tau < part.anchor for part in parts):
        return None
    first, act = parts[0], any(part.target == "act" for part in parts)
    return replace(
        first,
        group=None,
        tau=tau,
        delta=round(delta, 12),
        target="act" if act else first.target,
        also_last=first.also_last and not act,
        people=sum(part.people for part in parts),
        n=sum(part.n for part in parts),
        runs=sum(part.runs for part in parts),
        warnings=(
            "the group of the person is not known: the strictest threshold of all groups holds",
        ),
        anchor=None,
        interval=None,
        risk=None,
        bound=None,
        cost=None,
        triggered=None,
        act_risk=None,
        wasted=None,
        curve=(),
        moved=sum(part.moved for part in parts),
    )


def _tau(certificate: Certificate) -> float:
    return -np.inf if certificate.tau is None else certificate.tau
