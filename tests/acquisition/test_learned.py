import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from random_worlds import Cube

import edfa
from edfa import MaskedMLP, acquire
from edfa.acquisition import POLICIES
from edfa.acquisition.dime import DIME
from edfa.acquisition.eddi import EDDI, _Belief
from edfa.acquisition.fixed import Fixed
from edfa.acquisition.gsmrl import GSMRL, _with_advantages
from edfa.acquisition.random import Random
from edfa.artifacts import SEAL, seal
from edfa.errors import SettingError, UnknownNameError, UnreadableError
from edfa.people import Background, People
from edfa.predictors.base import UnfittedError
from edfa.testing import check_policy

TABLE = edfa.load("german", cap=400)
MODEL = edfa.SubsetXGB("nan", n_estimators=20).fit(TABLE.train.X, TABLE.train.y)
QUICK = {
    "dime": lambda **o: DIME(**{"pretrain": 3, "epochs": 1, "steps": 4, **o}),
    "gsmrl": lambda **o: GSMRL(**{"pretrain": 3, "rounds": 4, "steps": 4, **o}),
    "eddi": lambda **o: EDDI(**{"epochs": 3, "samples": 8, **o}),
    "eddi label": lambda **o: EDDI(**{"epochs": 3, "samples": 8, "reward": "label", **o}),
}
each = pytest.mark.parametrize("make", QUICK.values(), ids=QUICK.keys())


@cache
def fitted(make):
    """A policy that has learnt from the training part; tests share it and leave it as it is."""
    return make().fit(TABLE.train)


@each
def test_the_contract(make):
    check_policy(fitted(make), TABLE.test, MODEL, budget=8)


@each
def test_the_same_seed_learns_the_same_and_a_folder_keeps_it(make, tmp_path):
    first, second = fitted(make), make().fit(TABLE.train)
    first.to_folder(tmp_path / "policy")
    again = type(first).from_folder(tmp_path / "policy")
    people = TABLE.test.X[:20]
    orders = [
        acquire(people, p, MODEL, 8, reference=TABLE.train, explain=False)
        for p in (first, second, again)
    ]
    for person in range(len(people)):
        assert orders[0].order(person) == orders[1].order(person) == orders[2].order(person)
    np.testing.assert_array_equal(orders[0].scores, orders[2].scores)
    part = tmp_path / "policy" / "policy.safetensors"
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(UnreadableError, match="has been changed"):
        type(first).from_folder(tmp_path / "policy")


def learnt(policy):
    """All arrays that were learnt, by path."""

    def flat(value, name):
        if isinstance(value, np.ndarray):
            return {name: (str(value.dtype), value.shape, np.ascontiguousarray(value).tobytes())}
        return {
            path: leaf for key in value for path, leaf in flat(value[key], f"{name}/{key}").items()
        }

    return flat(policy.learnt_state(), "")


@each
def test_the_learnt_state_tells_one_fit_from_another(make, tmp_path):
    policy = make()
    settings = set(vars(policy))
    assert policy.learnt_state() == {}
    first = learnt(policy.fit(TABLE.train))
    assert all(
        name.endswith("_")
        for name in vars(policy)
        if name not in settings and not name.startswith("_")
    )
    assert learnt(policy.fit(TABLE.train)) == first, "fitted again it is the same"
    policy.to_folder(tmp_path / "policy")
    assert learnt(type(policy).from_folder(tmp_path / "policy")) == first
    assert learnt(make(seed=1).fit(TABLE.train)) != first
    assert learnt(make().fit(replace(TABLE.train, frame=TABLE.train.frame[1:]))) != first
    path = tmp_path / "policy" / "manifest.json"
    manifest = json.loads(path.read_text().replace('"learning_rate"', '"rate"'))
    path.write_text(json.dumps(manifest | {SEAL: seal(manifest)}))
    with pytest.raises(UnreadableError, match="has no setting 'rate'"):
        type(policy).from_folder(tmp_path / "policy")


@each
def test_progress_bad_settings_and_wrong_tables(make):
    steps, policy = [], make()
    with pytest.raises(UnfittedError, match="has learnt nothing yet"):
        acquire(TABLE.test, policy, MODEL, 8)
    with pytest.raises(UnfittedError, match="has learnt nothing yet"):
        policy.to_folder("nowhere")
    policy.fit(TABLE.train, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] == len(steps)
    with pytest.raises(SettingError, match="learning_rate must be above zero"):
        make(learning_rate=0.0)


def test_names_of_settings():
    for bad in (
        lambda: EDDI(reward="latents"),
        lambda: GSMRL(reward="papers"),
    ):
        with pytest.raises(UnknownNameError, match="did you mean"):
            bad()


def test_dimes_values_lie_between_zero_and_the_entropy_that_is_left():
    policy = fitted(QUICK["dime"])
    rows = np.where(
        np.random.default_rng(0).random((50, 20)) < 0.3, TABLE.test.X[:50], np.float32(np.nan)
    )
    people = People(rows, Background.of(TABLE.train, MODEL), costs=np.ones(rows.shape))
    scores = policy.score(people)
    assert (scores[people.askable] >= 0).all()
    assert (scores[people.askable] <= np.log(2)).all()


def test_the_divergence_of_beliefs_is_that_of_gaussians():
    random = torch.Generator().manual_seed(0)
    first, second = (_Belief(*torch.randn(2, 5, 3, generator=random)) for _ in range(2))
    expected = torch.distributions.kl_divergence(
        *(torch.distributions.Normal(b.mean, (0.5 * b.log_variance).exp()) for b in (first, second))
    ).sum(dim=-1)
    torch.testing.assert_close(first.divergence(second), expected)


def test_advantages_are_those_of_the_definition():
    """GAE by its sum, for two episodes."""
    steps, rows, mix = 4, 2, 0.95 * 0.95
    random = torch.Generator().manual_seed(1)
    reward, worth = (
        torch.rand(steps, rows, generator=random),
        torch.rand(steps, rows, generator=random),
    )
    blank = torch.zeros(rows, 1)
    log = [(blank, blank, blank[:, 0], blank[:, 0], reward[t], worth[t]) for t in range(steps)]
    episodes = _with_advantages(log)
    expected = []
    for t, row in [(t, r) for t in range(steps) for r in range(rows)]:
        total = 0.0
        for k in range(t, steps):
            following = 0.0 if k == steps - 1 else float(worth[k + 1, row])
            total += mix ** (k - t) * (
                float(reward[k, row]) + 0.95 * following - float(worth[k, row])
            )
        expected.append(total + float(worth[t, row]))
    torch.testing.assert_close(episodes.target, torch.tensor(expected))


@pytest.mark.long
def test_learning_beats_a_random_order_on_cube():
    table = Cube(0.1).table(4000, seed=2, shares=(0.8, 0.05, 0.15))
    model = MaskedMLP(epochs=30).fit(table.train.X, table.train.y)
    learned = {"DIME": DIME(epochs=2, steps=5), "GSMRL": GSMRL(rounds=50, steps=5), "EDDI": EDDI()}
    accuracy = {}
    for name, policy in {"random": Random(), **learned}.items():
        trajectory = acquire(
            table.test,
            policy.fit(table.train) if name in learned else policy,
            model,
            3.5,
            explain=False,
        )
        accuracy[name] = (trajectory.decision[trajectory.at(3)] == table.test.y).mean()
    for name in learned:
        assert accuracy[name] > accuracy["random"] + 0.06, (
            accuracy
        )  # two standard errors of a share of 600 people


def test_fixed_asks_in_its_order_and_the_dict_knows_every_policy():
    check_policy(Fixed(("housing", "duration", "job")), TABLE.test, MODEL)
    with pytest.raises(UnknownNameError, match="did you mean 'housing'"):
        acquire(TABLE.test, Fixed(("housings",)), MODEL)
    names = {
        "edfa",
        "survival",
        "random",
        "random-blanket",
        "greedy",
        "fixed",
        "dime",
        "eddi",
        "gsmrl",
    }
    assert set(POLICIES) == names
    assert POLICIES["dime"] is DIME
