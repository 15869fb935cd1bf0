"""Who is never told to act is asked to the end, and a plan that nobody was told to follow cannot fail."""

import numpy as np

import edfa
from edfa.certification.replay import replay
from edfa.checkup import run


def test_an_end_without_a_plan_is_no_failure_and_changes_nothing_else():
    table = edfa.load("german")
    advisor = edfa.Advisor(blanket="eamb", predictor=edfa.SubsetXGB(trees=20), threshold="balanced").fit(table)
    found = run(advisor.fitted, table.test.X)
    bare = replay(found.plans, favourable=1, advisor=advisor.fingerprint)
    last, who = found.trajectory.last, found.trajectory.who
    planned = np.array([bare.legal[who == i].any() for i in range(len(last))])
    granted = found.trajectory.decision[last] == 1
    assert (planned & granted).sum() > 10, "people who had a plan, went on, and needed none"
    assert (found.records.legal[last] == planned).all()
    assert not found.records.loss[last][planned].any()
    before = np.delete(np.arange(len(who)), last)
    assert np.array_equal(found.records.legal[before], bare.legal[before])
    assert np.array_equal(found.records.loss[before], bare.loss[before])
    assert advisor.certificate.last.risk == 0
