"""Whether people may act now: one function for a single interview and for a file of a million."""

from typing import NamedTuple

import numpy as np

from edfa.advice.answers import DEVIATIONS, Standing, Status
from edfa.advice.assessment import Assess, Assessment
from edfa.advice.policy_path import PolicyPath, follow_policy
from edfa.typing import Float64Array, IntArray, ObjectArray

__all__ = ["Standings", "find_standing", "find_standings"]


class Standings(NamedTuple):
    """Everybody's status and signal, (people,) each; ``planned`` are the rows that ``path`` is about, if there is one."""

    status: ObjectArray
    signal: Float64Array
    planned: IntArray
    path: PolicyPath | None


def find_standings(assessment: Assessment, k: int, assess: Assess) -> Standings:
    """Whether each person may act now, in the words of ``Standing.status``.

    ``k`` as for plans that were made already; ``assess`` makes the assessments of earlier states.
    """
    refused, signal, tau = assessment.refused, assessment.signal(k), assessment.fitted.tau
    status = np.full(len(assessment), _word("granted"), dtype=object)
    status[refused] = _word("no_plan")
    planned = np.flatnonzero(refused & ~np.isnan(signal))
    if tau is None or not len(planned):
        status[planned] = _word("not_certified")
        return Standings(status, signal, planned, None)
    path = follow_policy(assessment, planned, assess)
    wishes = np.logical_or.reduce([wish[planned] for wish in assessment.wishes.values()])
    on_path = path.on_path & ~wishes
    at_end, low = assessment.next[planned] < 0, signal[planned] <= tau
    passed = path.passed(tau, k, on_path & ~at_end, assess)
    words = np.where(passed, _word("passed"), np.where(at_end | low, _word("act"), _word("ask")))
    status[planned] = np.where(on_path, words, _word("off_path"))
    return Standings(status, signal, planned, path)


def find_standing(assessment: Assessment, k: int, assess: Assess) -> Standing:
    """The standing of the one person of ``assessment``."""
    tau, standings = assessment.fitted.tau, find_standings(assessment, k, assess)
    status: Status = standings.status[0]
    if status in ("granted", "no_plan"):
        return Standing(status, tau=tau)
    signal, path = float(standings.signal[0]), standings.path
    if path is None or tau is None:
        return Standing(status, signal)
    if status == "off_path":
        deviates = {"start": path.missing_start, "order": path.other_order} | assessment.wishes
        return Standing(status, signal, tau, deviations=tuple(name for name in DEVIATIONS if deviates[name][0]))
    since = None
    if status == "passed":
        since = next(i for i, state in enumerate(path.earlier(0)) if assess(state[None]).stops(tau, k)[0])
    return Standing(status, signal, tau, since)


def _word(status: Status) -> Status:
    return status
