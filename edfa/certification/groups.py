"""Certificates of several groups of people, each from its own people alone (Mondrian)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from edfa.certification.certificate import Certificate
from edfa.certification.records import Records
from edfa.certification.stops import Rule, Stops
from edfa.errors import DataError, UnknownNameError

__all__ = ["GroupCertificates", "by_group"]


@dataclass(frozen=True)
class GroupCertificates(Mapping[str, Certificate]):
    """One certificate a group. A group without one has no guarantee: it never borrows that of all people together.

    ``joint`` says that all the certified groups' statements hold together with chance 1 - delta, rather than each.
    """

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

    def stop(self, records: Records, rule: Rule = "safe") -> dict[str, Stops]:
        """Where each group's own certificate stops its people."""
        parts = by_group(records)
        return {group: self[group].stop(part, rule) for group, part in parts.items()}

    def __str__(self) -> str:
        return self.sentence

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        told = {group: json.loads(certificate.to_json()) for group, certificate in self.certificates.items()}
        return json.dumps({"version": 1, "joint": self.joint, "certificates": told}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "GroupCertificates":
        """Read what ``to_json`` wrote."""
        told = json.loads(text)
        read = {group: Certificate.from_json(json.dumps(values)) for group, values in told["certificates"].items()}
        return cls(read, told["joint"])

    def _repr_html_(self) -> str:
        return "".join(certificate._repr_html_() for certificate in self.certificates.values())


def by_group(records: Records) -> dict[str, Records]:
    """The records of each group, by its label."""
    if records.group is None:
        raise DataError("certificates of groups need the column 'group' in the records")
    code, labels = pd.factorize(records.group)
    names = np.array([str(label) for label in labels], dtype=object)
    return {str(name): records.take(names[code] == name) for name in np.unique(names)}
