"""Populations whose risk at every threshold is known exactly, and draws of calibration people from them.

A draw is an array of losses, one row a person and one column a rule: column 0 is "never stop early", column j the rule
with threshold j. ``as_records`` makes runs that behave just so.
"""

from dataclasses import dataclass

import numpy as np

from edfa.certification import Records

ALPHA, DELTA, DRAWS = 0.2, 0.05, 10_000
MOST = 569  # more false certificates than this in 10,000 draws happen by chance in 0.1 % of cases at a true 5 %


@dataclass(frozen=True)
class World:
    """``risks`` of each rule; thresholds ``tied`` to one latent number a person, or independent; ``undefined`` share.

    With several seeds, a person's runs agree but for a share of ``noise`` of independent ones.
    """

    risks: tuple[float, ...]
    tied: bool = True
    undefined: float = 0.0
    seeds: int = 1
    noise: float = 0.4

    def draw(self, n, draws, seed=0):
        """Losses of shape (draws, people, rules), the means over seeds; and which people have a plan at all."""
        random = np.random.default_rng(seed)
        risks = np.array(self.risks)
        rules = 1 if self.tied else len(risks)
        person = random.random((draws, n, rules, 1), dtype=np.float32)
        own = random.random((draws, n, rules, self.seeds), dtype=np.float32)
        alone = random.random(own.shape, dtype=np.float32) < self.noise if self.seeds > 1 else False
        luck = np.where(alone, own, person)
        losses = (luck < risks[:, None].astype(np.float32)).sum(axis=-1, dtype=np.int16)
        return losses, random.random((draws, n)) >= self.undefined

    def violated(self, passed):
        """Whether any certified rule has a risk above alpha."""
        worst = np.maximum.accumulate(np.append(0.0, self.risks))
        return worst[passed] > ALPHA


MONOTONE = World((0.0, 0.05, 0.201, 0.35))
WANDERING = World((0.02, 0.05, 0.203, 0.1, 0.203, 0.1), tied=False)
HALF = World((0.0, 0.05, 0.201, 0.35), undefined=0.5)
WORLDS = {"monotone": MONOTONE, "non-monotone": WANDERING, "half undefined": HALF}


def rules_passed(found, rules):
    """How many of the rules a walk certifies: "never" first, then those with thresholds 1, 2, ..."""
    return int(found.passed > 0 and 1 + (np.arange(1, rules) <= found.tau).sum())


def as_records(losses, defined, seeds=1):
    """Runs of one draw; ``losses`` counts the lost seeds. The early steps have the large signals."""
    rules = losses.shape[1]
    lost = np.arange(seeds)[None, :, None] < losses[:, None, ::-1]  # the first so many seeds are lost
    person, seed, step = (axis.ravel() for axis in np.indices(lost.shape))
    signal = (rules - step).astype(float)
    return Records(
        person=person,
        seed=seed,
        step=step,
        spent=step.astype(float),
        signal=np.where(step == rules - 1, rules + 1.0, signal - 1),  # the last step never triggers before the others
        loss=lost.ravel().astype(float),
        legal=defined[person],
    )
