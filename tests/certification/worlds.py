"""Records for tests: small ones by hand or at random, and draws from worlds whose risk is known at
every threshold.

A draw from a ``World`` is an array of losses, (people, rules): column 0 is "never stop early",
column j the rule with threshold j. ``as_records`` makes runs that behave just so.
"""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from edfa.certification import Records, RecourseCertifier
from edfa.certification.simulate import simulate_records

ALPHA, DELTA, DRAWS = 0.2, 0.05, 10_000
# more false certificates than this in 10,000 draws happen by chance in 0.1 % of cases at a true 5 %
MOST = 569


@dataclass(frozen=True)
class World:
    """``risks`` of each rule; thresholds ``tied`` to one latent number a person, or independent;
    ``undefined`` share.

    With several seeds, a person's runs agree but for a share of ``noise`` of independent ones.
    """

    risks: tuple[float, ...]
    tied: bool = True
    undefined: float = 0.0
    seeds: int = 1
    noise: float = 0.4

    def draw(self, n, draws, seed=0):
        """Losses (draws, people, rules), as numbers of lost seeds; and which people have a plan at
        all.
        """
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


def rules_passed(result, rules):
    """How many of the rules are certified: "never" first, then those with thresholds 1, 2, ..."""
    return int(result.passed > 0 and 1 + (np.arange(1, rules) <= result.tau).sum())


def as_records(losses, defined, seeds=1):
    """Runs of one draw; ``losses`` counts the lost seeds. The early steps have the large
    signals.
    """
    rules = losses.shape[1]
    person, seed, step = (axis.ravel() for axis in np.indices((len(losses), seeds, rules)))
    signal = (rules - step).astype(float)
    return Records(
        person=person,
        seed=seed,
        step=step,
        spent=step.astype(float),
        signal=np.where(
            step == rules - 1, rules + 1.0, signal - 1
        ),  # the last step never triggers before the others
        loss=_loss_column(losses, seeds),
        legal=defined[person],
    )


def _loss_column(losses, seeds):
    lost = np.arange(seeds)[None, :, None] < losses[:, None, ::-1]  # the lost seeds come first
    return lost.ravel().astype(float)


def records_of_draws(losses, defined, seeds=1, refused=None):
    """Records of each draw, (draws, people, rules), of people who all have a plan: one object,
    checked once.
    """
    records = replace(as_records(losses[0], defined[0], seeds), refused=refused)
    for draw in losses:
        object.__setattr__(
            records, "loss", _loss_column(draw, seeds)
        )  # new losses on the same runs
        yield records


def three_people(**columns):
    """Three people, two steps each; every column can be replaced."""
    base = {
        "person": ["a", "a", "b", "b", "c", "c"],
        "seed": [0] * 6,
        "step": [0, 1] * 3,
        "spent": [0.0, 2.0] * 3,
        "signal": [0.4, 0.1, 0.3, 0.2, 0.2, 0.3],
        "loss": [1.0, 0.0] * 3,
        "legal": [True] * 6,
    }
    return Records(**base | columns)


def without_plans(n=5):
    """Simulated people none of whom has a plan."""
    return Records.from_frame(simulate_records(n).frame().assign(legal=False))


@st.composite
def random_records(draw, most=8, fractions=False):
    """Small, ragged, full of ties and illegal steps; always a legal step somewhere."""
    rows = []
    for person in range(draw(st.integers(1, most))):
        for seed in range(draw(st.integers(1, 3))):
            rows += [(person, seed, step) for step in range(draw(st.integers(1, 4)))]
    losses = st.sampled_from([0.0, 0.25, 0.5, 1.0] if fractions else [0.0, 1.0])
    cells = [
        (draw(st.integers(0, 4)) / 4, draw(losses), draw(st.booleans()), draw(st.booleans()))
        for _ in rows
    ]
    signal, loss, legal, refused = (np.array(column) for column in zip(*cells, strict=True))
    legal[draw(st.integers(0, len(rows) - 1))] = True
    person, seed, step = (np.array(column) for column in zip(*rows, strict=True))
    shuffled = np.random.default_rng(draw(st.integers(0, 99))).permutation(len(rows))
    columns = [person, seed, step, 2.0 * step, signal, loss, legal]
    return Records(*(column[shuffled] for column in columns), refused=refused[shuffled])


def one_run(records):
    """The first run of each person, in the order of the rows."""
    seed = records.frame().groupby("person")["seed"].transform("first")
    return records.take(records.seed == seed.to_numpy())


def as_lists(stops):
    """What a rule did, in a form that can be compared."""
    return stops.step.tolist(), stops.triggered.tolist(), stops.spent.tolist(), stops.sentence


def certified(records, alpha=0.2, delta=0.05, **settings):
    """The certificate of a certifier with these settings."""
    return RecourseCertifier(alpha, delta, **settings).certificate_for(records)
