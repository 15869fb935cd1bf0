import numpy as np
import pytest
import torch

import edfa
from edfa import FTTransformer, MaskedMLP
from edfa.data.synthetic import credit_story
from edfa.errors import SettingError, UnknownNameError, UnreadableError
from edfa.testing import check_predictor

TABLE = edfa.load("german")
X, Y = TABLE.train.X, TABLE.train.y
MODELS = [
    lambda **o: MaskedMLP(**{"epochs": 12, **o}),
    lambda **o: FTTransformer(**{"epochs": 3, **o}),
]
each_model = pytest.mark.parametrize("make", MODELS, ids=["mlp", "ftt"])


@each_model
def test_the_contract(make):
    check_predictor(make, X[:200], Y[:200])


@each_model
def test_three_classes_keep_the_contract(make):
    check_predictor(make, X[:200], np.arange(200) % 3)


@pytest.mark.parametrize(
    "make",
    [MaskedMLP, pytest.param(lambda: FTTransformer(epochs=25), marks=pytest.mark.long)],
    ids=["mlp", "ftt"],
)
def test_it_comes_close_to_the_exact_posterior(make):
    story = credit_story()
    table = story.table(6000)
    model = make().fit(table.train.X, table.train.y)
    rows = table.test.X[:400].astype(float)
    rows[np.random.default_rng(0).random(rows.shape) < 0.5] = np.nan
    assert np.abs(model.predict_proba(rows) - story.posterior(rows)).mean() < 0.04


@each_model
def test_packing_gives_what_masking_gives(make):
    """Only the known columns, against all of them with the others masked out and filled with
    garbage.
    """
    model = make().fit(X, Y)
    mask = np.zeros(20, dtype=bool)
    mask[[0, 3, 4, 11]] = True
    packed = model.predict_proba(np.where(mask, X[:50], np.nan))
    coded = model._encode(X[:50], np.arange(20))
    coded[:, ~mask] = np.array([len(knots) - 1 for knots in model.knots_])[~mask]
    with torch.no_grad():
        logits = model.network_(
            torch.from_numpy(coded), torch.arange(20), torch.from_numpy(np.tile(mask, (50, 1)))
        )
    np.testing.assert_allclose(packed, logits.double().softmax(dim=1).numpy(), atol=1e-6)


def test_masks_have_a_uniform_number_of_known_features_and_the_start_set():
    model = MaskedMLP(start=(2, 7))
    known = torch.ones(20_000, 20, dtype=torch.bool)
    known[:, 5] = False
    mask = model._draw_masks(known, torch.Generator().manual_seed(0))
    assert mask[:, [2, 7]].all()
    assert not mask[:, 5].any(), "what the training rows do not know cannot be shown"
    counts = (
        np.bincount(mask[:, [0, 1, 3, 4, 6, *range(8, 20)]].sum(dim=1).numpy(), minlength=18)
        / 20_000
    )
    np.testing.assert_allclose(counts, 1 / 18, atol=0.01)


@each_model
def test_progress_and_early_stopping(make):
    steps = []
    make(epochs=200, patience=1).fit(X, Y, progress=lambda done, total: steps.append((done, total)))
    assert steps[0] == (1, 200)
    assert len(steps) < 200, "it stops by itself"


def test_a_value_between_two_knots_lies_on_the_line_between_them():
    column = np.concatenate([np.repeat([0.0, 1.0, 4.0], 20), np.zeros(1)])
    model = MaskedMLP(epochs=1).fit(column[:, None], np.arange(61) % 2)
    at = model._encode(np.array([[0], [1], [2.5], [4], [-9], [9]], dtype=np.float32), np.arange(1))
    np.testing.assert_allclose(at[:, 0], [0, 1, 1.5, 2, 0, 2])
    with torch.no_grad():
        tokens = model.network_.tokens(torch.from_numpy(at), torch.arange(1))[:, 0]
    torch.testing.assert_close(tokens[2], (tokens[1] + tokens[3]) / 2)
    assert not torch.allclose(tokens[1], (tokens[0] + tokens[3]) / 2), "the line bends at a knot"


def test_knots_lie_where_the_rows_are_and_where_the_values_are():
    random = np.random.default_rng(0)
    gains = np.where(random.random(5000) < 0.95, 0.0, random.lognormal(8, 1, 5000))
    model = MaskedMLP(epochs=1).fit(
        np.column_stack([gains, random.integers(0, 60, 5000)]), np.arange(5000) % 2
    )
    mostly_zero, codes = model.knots_
    assert len(mostly_zero) >= 15
    assert mostly_zero[-1] == pytest.approx(gains.max())
    np.testing.assert_array_equal(codes, np.arange(60))


@each_model
def test_a_level_never_seen_is_answered(make):
    model = make().fit(X, Y)
    rows = X[:3].copy()
    rows[:, 0] = 77
    assert np.isfinite(model.predict_proba(rows)).all()


@each_model
def test_bad_settings_and_folders(make, tmp_path):
    with pytest.raises(SettingError, match="epochs, batch_size and patience"):
        make(epochs=0).fit(X, Y)
    with pytest.raises(UnknownNameError, match="no size named 'smal'; did you mean 'small'"):
        FTTransformer("smal").fit(X, Y)
    model = make().fit(X, Y)
    model.to_folder(tmp_path / "model")
    part = tmp_path / "model" / "model.safetensors"
    content = bytearray(part.read_bytes())
    content[-1] ^= 1
    part.write_bytes(content)
    with pytest.raises(UnreadableError, match="has been changed"):
        type(model).from_folder(tmp_path / "model")


def test_threads_are_given_back():
    before = torch.get_num_threads()
    MaskedMLP(epochs=1).fit(X, Y).predict_proba(X)
    assert torch.get_num_threads() == before


def test_the_callers_random_state_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    MaskedMLP(epochs=1).fit(X, Y)
    assert torch.equal(torch.rand(3), expected)
