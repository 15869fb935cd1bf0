"""German credit, asked and searched for plans once for all tests of this folder."""

from dataclasses import replace
from functools import cached_property

import pytest

import edfa
from edfa import EDFA, Blanket, Nearest, Rules, SubsetXGB, acquire, find_recourse
from edfa.certification import RecourseCertifier


class German:
    """Trajectories and plans of a small advisor; each part is made when a test first asks for
    it.
    """

    blanket = Blanket(
        "class",
        {
            "checking_status": ("savings_status",),
            "duration": ("credit_amount",),
            "credit_history": (),
        },
    )
    other_blanket = Blanket(
        "class",
        {
            "checking_status": (),
            "duration": ("credit_amount",),
            "credit_history": ("savings_status",),
        },
    )
    rules = Rules(reading="paper")

    @cached_property
    def table(self):
        return edfa.load("german")

    @cached_property
    def model(self):
        return SubsetXGB(n_estimators=40).fit(self.table.train.X, self.table.train.y)

    @cached_property
    def searcher(self):
        return Nearest(self.table.train)

    def ask(self, table, policy=None, model=None, seed=0, **rules):
        """The trajectory of a table's people."""
        return acquire(
            table,
            policy or EDFA(self.blanket),
            model or self.model,
            **{"budget": 0.9, "seed": seed} | rules,
        )

    def find_plans(self, trajectory, searcher=None, rules=None, **settings):
        return find_recourse(
            trajectory,
            searcher or self.searcher,
            rules=rules or self.rules,
            **settings,
        )

    @cached_property
    def calibration(self):
        return self.ask(self.table.calibration)

    @cached_property
    def test(self):
        return self.ask(self.table.test)

    @cached_property
    def plans(self):
        return self.find_plans(self.calibration)

    @cached_property
    def test_plans(self):
        return self.find_plans(self.test)

    @cached_property
    def certifier(self):
        return RecourseCertifier(alpha=0.5).calibrate(self.plans)

    @staticmethod
    def first_rows(table, rows):
        return replace(table, frame=table.frame.iloc[:rows])


@pytest.fixture(scope="session")
def german():
    return German()
