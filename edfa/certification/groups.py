"""Certificates of several groups of people, each from its own people alone (Mondrian)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import pandas as pd

from edfa.certification.certificate import Certificate, for_this
from edfa.certification.guarantee import Guarantee
from edfa.certification.records import Records
from edfa.certification.replay import Watched
from edfa.certification.stops import Rule, Stops
from edfa.errors import DataError, UnknownNameError

__all__ = ["GroupCertificates", "by_group"]


@dataclass(frozen=True)
class GroupCertificates(Guarantee, Mapping[str, Certificate]):
    """One certificate a group. A group without one has no guarantee: it never borrows that of all people together.

    ``joint`` says that all the certified groups' statements hold together with chance 1 - delta, rather than each.
    """

    kind: ClassVar[str] = "certificate of groups"
    certificates: Mapping[str, Certificate]
    joint: bool = False

    def __getitem__(self, group: str) -> Certificate:
        if str(group) not in self.certificates:
            raise UnknownNameError("group", group, self.certificates)
        return self.certificates[str(group)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.certificates)

    def __len__(self) -> int:
        return len(self.certificates)

    @property
    def sentence(self) -> str:
        """The groups' sentences, one a line."""
        return "\n".join(certificate.sentence for certificate in self.certificates.values())

    def stop(self, runs: Any, rule: Rule = "safe", **options: Unpack[Watched]) -> dict[str, Stops]:
        """Where each group's own certificate stops its people; with plans, name their groups as ``group``."""
        parts = by_group(for_this(next(iter(self.certificates.values())), runs, options))
        return {group: self[group].stop(part, rule) for group, part in parts.items()}

    def _repr_html_(self) -> str:
        return "".join(certificate._repr_html_() for certificate in self.certificates.values())


def by_group(records: Any) -> dict[str, Records]:
    """The records of each group, by its label."""
    if not isinstance(records, Records) or records.group is None:
        raise DataError("certificates of groups need the column 'group' in the records, or group= with plans")
    code, labels = pd.factorize(records.group)
    names = np.array([str(label) for label in labels], dtype=object)
    return {str(name): records.take(names[code] == name) for name in np.unique(names)}
