"""What cells share: keys that say what it was made from, and entries that are whole, the same for
all and made once.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edfa_studies import products
from edfa_studies.cells import Cell, Part
from edfa_studies.measures import measure
from edfa_studies.products import Materials, ProductFolder, make

SETTINGS = {"people": 12, "budget": 0.9, "cap": 0, "split": 0, "reading": "paper"}
SMALL_XGB = Part("xgb", "xgb", {"n_estimators": 20})


def cell(
    policy="edfa", blanket="hiton-mb", searcher="nearest", seed=0, measure="growth", **settings
) -> Cell:
    parts = [Part(name, name) for name in (blanket, policy, searcher)]
    return Cell(measure, Part("german", "german"), SMALL_XGB, *parts, seed, SETTINGS | settings)


def keys(cell: Cell) -> dict[str, str]:
    return {product.kind: product.key for product in products.products(cell)}


def test_one_trajectory_serves_all_searchers():
    assert keys(cell(searcher="nearest")) == keys(cell(searcher="nice"))


def test_a_policy_without_a_blanket_shares_its_trajectory_among_blankets():
    assert keys(cell("random"))["trajectory"] == keys(cell("random", blanket="eamb"))["trajectory"]
    assert keys(cell("edfa"))["trajectory"] != keys(cell("edfa", blanket="eamb"))["trajectory"]


def test_what_a_network_learns_depends_on_neither_model_nor_blanket():
    one, other = cell("eddi"), replace(cell("eddi", blanket="eamb"), predictor=Part("ftt", "ftt"))
    assert keys(one)["policy"] == keys(other)["policy"]
    assert keys(cell("survival"))["policy"] != keys(cell("survival", blanket="eamb"))["policy"]


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"budget": 0.5}, {"people": 13}, {"split": 1}, {"reading": "card"}]
)
def test_whatever_a_trajectory_depends_on_is_in_its_key(change):
    assert keys(cell())["trajectory"] != keys(cell(**change))["trajectory"]


def test_names_are_no_part_of_a_key():
    renamed = replace(cell(), predictor=replace(SMALL_XGB, name="mine"))
    assert keys(renamed) == keys(cell())
    assert renamed.key == cell().key


def test_each_product_comes_after_what_it_needs():
    made: set[str] = set()
    for product in products.products(cell("survival", measure="promise", calibration=20, test=20)):
        assert set(product.needs) <= made
        made.add(product.key)


def test_results_are_the_same_bits_from_an_empty_and_a_filled_cache(tmp_path):
    cold = measure(cell("survival"), str(tmp_path / "one"))
    for product in products.products(cell("survival")):
        make(product, str(tmp_path / "other"))
    assert measure(cell("survival"), str(tmp_path / "other")) == cold
    assert measure(cell("survival"), str(tmp_path / "one")) == cold


def test_a_damaged_entry_is_made_anew(tmp_path):
    first = measure(cell(), str(tmp_path))
    for kind in ("blanket", "predictor", "trajectory"):
        entry = ProductFolder(tmp_path).folder(kind, keys(cell())[kind])
        for path in entry.rglob("*"):
            if path.is_file() and path.suffix != ".ubj":
                path.write_bytes(b"damaged")
    assert measure(cell(), str(tmp_path)) == first


def test_an_entry_is_whole_or_not_there(tmp_path):
    cache = ProductFolder(tmp_path)

    def fill_half() -> None:
        with cache.fill("blanket", "k") as folder:
            (folder / "half").write_text("x", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill_half()
    assert not cache.has("blanket", "k")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_who_comes_second_keeps_the_first_entry(tmp_path):
    cache = ProductFolder(tmp_path)
    with cache.fill("blanket", "k") as slow:
        (slow / "a").write_text("slow", encoding="utf-8")
        with cache.fill("blanket", "k") as quick:
            (quick / "a").write_text("quick", encoding="utf-8")
    assert (cache.folder("blanket", "k") / "a").read_text(encoding="utf-8") == "quick"


def test_every_policy_meets_the_same_people_and_every_seed_others(tmp_path):
    def people(**changes):
        return Materials(cell(**changes), Path(tmp_path)).people("test")

    assert np.array_equal(people(policy="edfa"), people(policy="random", blanket="eamb"))
    assert not np.array_equal(people(), people(seed=1))
    assert len(np.unique(people())) == 12


def test_a_trajectory_that_is_read_is_the_one_that_was_written(tmp_path):
    made = Materials(cell(), tmp_path).trajectory("test")
    back = Materials(cell(), tmp_path).trajectory("test")
    assert made.frame().equals(back.frame())
    assert np.array_equal(made.X, back.X, equal_nan=True)


def test_networks_may_learn_from_fewer_rows(tmp_path):
    few = replace(cell("eddi"), policy=Part("eddi", "eddi", {"train_rows": 50, "epochs": 1}))
    assert keys(few)["policy"] != keys(cell("eddi"))["policy"]
    assert Materials(few, tmp_path).policy.epochs == 1
