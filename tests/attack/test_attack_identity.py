"""An advisor is what its fingerprint says: nothing that decides an answer can be changed, or come
from another one.
"""

import json
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from advisors import config, promising, with_endings
from hostile.folders import MANIFEST, ask_people, rehash, tiny
from safetensors.numpy import load_file, save_file

import edfa
from edfa import Advisor, SubsetXGB
from edfa.advice import fitted as fitted_module
from edfa.advice import persist
from edfa.advice.fitted import identify_advisor
from edfa.cli import app
from edfa.data.synthetic import credit_story
from edfa.errors import MismatchError, UnreadableError
from edfa.predictors import boosting
from edfa.predictors.boosting import Trees
from edfa.writing import list_files

NOT_IT = "is not the advisor it says it is"


def other():
    """An advisor of the same card and people as the tiny one, with other trees."""
    return other_advisor(seed=1)


def other_advisor(**settings):
    model = SubsetXGB("mixed", n_estimators=4, max_depth=2, **settings)
    return Advisor(predictor=model, committee=2, threshold="balanced").fit(
        credit_story().table(500), n_jobs=1
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The tiny advisor and another one, saved; not to be changed."""
    place = tmp_path_factory.mktemp("identity")
    for name, advisor in (("tiny", tiny()), ("other", other())):
        advisor.save(place / name)
    return place


@pytest.fixture
def copy(folders, tmp_path):
    return Path(shutil.copytree(folders / "tiny", tmp_path / "advisor"))


def edit_json(path, change):
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def put(*keys, value):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        assert content[keys[-1]] != value
        content[keys[-1]] = value

    return change


DECIDE = {  # what decides an answer, where it is written, and how it is changed
    "the threshold": (MANIFEST, put("predictor", "threshold", value=0.9)),
    "what the threshold is about": (MANIFEST, put("predictor", "favourable", value=0)),
    "the budget": (MANIFEST, put("settings", "budget", value=1.0)),
    "the signal": (MANIFEST, put("signals", "act", value="uncertainty")),
    "the signal of who is granted": (MANIFEST, put("signals", "granted", value="uncertainty")),
    "what counts as a broken promise": (MANIFEST, put("settings", "loss", value="let_down")),
    "the reference": (MANIFEST, put("reference", value="retrained")),
    "the floor of survival": (MANIFEST, put("settings", "min_survival", value=0.0)),
    "a setting of the searcher": (MANIFEST, lambda m: m["searcher"]["settings"].update(seed=9)),
    "a setting of the policy": (MANIFEST, lambda m: m["policy"]["settings"].update(n_draws=2)),
    "a version": (MANIFEST, lambda m: m["made_with"].update(numpy="1.0")),
    "the rules": ("rules.json", lambda c: c.update(locked=["savings"])),
    "a price": ("schema.json", lambda c: c["features"][1].update(cost=7.5)),
    "the order of questions": ("policy/order.json", lambda c: c.reverse()),
    "a level of the encoder": ("encoder.json", lambda c: c[1].update(levels=c[1]["levels"][::-1])),
    "a setting of the model": ("model/manifest.json", put("settings", "max_depth", value=5)),
    "the version that trained the trees": (
        "model/manifest.json",
        put("settings", "xgboost_version", value="1.0.0"),
    ),
}


@pytest.mark.parametrize("what", DECIDE)
def test_nothing_that_decides_an_answer_can_be_edited(what, copy):
    name, change = DECIDE[what]
    edit_json(copy / name, change)
    if name == MANIFEST:
        with pytest.raises(UnreadableError, match=r"manifest\.json has been changed"):
            Advisor.load(copy)
    rehash(copy)
    with pytest.raises(UnreadableError, match=f"{NOT_IT}|no whole advisor"):
        Advisor.load(copy)


PARTS = ("model", "committee", "judges", "policy")


@pytest.mark.parametrize(
    "part",
    [*PARTS, "model/own_1.ubj", "train.parquet", "calibration.safetensors", "outlook.safetensors"],
)
def test_parts_of_another_advisor_are_refused(part, folders, copy, tmp_path):
    """The other one has other trees, and (like this one) valid hashes of its own."""
    theirs = folders / "other" / part
    if part not in ("model", "policy", "model/own_1.ubj"):  # they are the same there
        edfa.Advisor(predictor=SubsetXGB("nan", n_estimators=2), committee=2).fit(
            credit_story().table(500, seed=3), n_jobs=1
        ).save(tmp_path / "third")
        theirs = tmp_path / "third" / part
    if part == "policy":
        edit_json(copy / "policy" / "order.json", lambda steps: steps[0].update(after=0.123))
    elif part == "outlook.safetensors":  # nobody is stuck in either
        stuck = load_file(copy / part)["stuck"]
        save_file({"stuck": 1 - stuck}, copy / part)
    elif theirs.is_dir():
        shutil.rmtree(copy / part)
        shutil.copytree(theirs, copy / part)
    else:
        shutil.copy(theirs, copy / part)
    with pytest.raises(UnreadableError, match=r"has been changed|is missing"):
        Advisor.load(copy)
    rehash(copy)
    with pytest.raises(UnreadableError, match=NOT_IT):
        Advisor.load(copy)


def test_trees_that_are_outside_the_identity_are_not_in_the_folder(tmp_path):
    """One model for each subset, trained when it is needed: none of them is saved, and none that is
    added is used.
    """
    table = credit_story().table(400)
    advisor = Advisor(predictor=SubsetXGB(n_estimators=4), searcher="nearest").fit(table, n_jobs=1)
    expected = ask_people(advisor)
    advisor.save(tmp_path / "advisor")
    assert not list((tmp_path / "advisor").glob("model/*.ubj"))
    assert ask_people(Advisor.load(tmp_path / "advisor")) == expected
    strange = SubsetXGB(n_estimators=1, max_depth=1).fit(table.train.X[::-1], table.train.y)
    everything = np.ones(5, dtype=bool)
    for name in ("own_0.ubj", "masked.ubj"):
        folder = Path(shutil.copytree(tmp_path / "advisor", tmp_path / name))
        (folder / "model" / name).write_bytes(Trees(strange.booster(everything)).content)
        for manifest, part in (
            (folder / "model" / MANIFEST, name),
            (folder / MANIFEST, f"model/{name}"),
        ):
            edit_json(manifest, lambda m, part=part: m["sha256"].update({part: ""}))
        rehash(folder)
        with pytest.raises(UnreadableError, match="others than the 0"):
            Advisor.load(folder)
        edit_json(folder / "model" / MANIFEST, lambda m: m["settings"].pop("xgboost_version"))
        rehash(folder)
        with pytest.raises(UnreadableError, match="'xgboost_version' is missing"):
            Advisor.load(folder)


def test_promises_of_another_advisor_are_refused(folders, copy):
    endings = ("certificate.json", "certificate_granted.json", "certificate_nothing.json")
    for name in (*endings, "evaluation.json"):
        own = (copy / name).read_bytes()
        shutil.copy(folders / "other" / name, copy / name)
        rehash(copy)
        with pytest.raises(UnreadableError, match="of another advisor"):
            Advisor.load(copy)
        (copy / name).write_bytes(own)
    changes = {
        "signal": "uncertainty",
        "reference": "retrained",
        "group": "women",
        "loss": "missed",
    }
    for name, (entry, value) in product(endings, changes.items()):
        if (name, entry) == ("certificate_nothing.json", "loss"):
            continue
        own = (copy / name).read_bytes()
        edit_json(copy / name, put(entry, value=value))
        rehash(copy)
        with pytest.raises(UnreadableError, match="of another advisor"):
            Advisor.load(copy)
        (copy / name).write_bytes(own)
    rehash(copy)
    assert Advisor.load(copy).endings == tiny().endings


def test_a_certificate_of_another_advisor_tells_nobody_to_act():
    fitted = with_endings(tiny().fitted, act=0.3)
    own = fitted.promise.certificate
    foreign = replace(own, advisor="0123456789abcdef")
    assert fitted.certificate_for(None) is not None
    nobody = np.array([None], dtype=object)
    for certificate in (
        foreign,
        replace(foreign, advisor=""),
        replace(own, signal="uncertainty"),
        replace(own, loss="let_down"),
    ):
        assert promising(fitted, ending={"certificate": certificate}).certificate_for(None) is None
        assert np.isnan(
            promising(fitted, ending={"certificate": certificate}).tau_for(nobody)
        ).all()
    groups = edfa.certification.GroupCertificates(
        {"yes": replace(foreign, group="yes"), "no": replace(foreign, group="no")}
    )
    grouped = promising(fitted, groups="telephone", ending={"certificate": groups})
    assert [grouped.certificate_for(group) for group in ("yes", "no", None)] == [None] * 3


def test_an_advisor_that_was_changed_after_the_fit_is_not_saved_under_its_name(tmp_path):
    advisor = other_advisor(seed=2)
    advisor.fitted.model.threshold = 0.99
    with pytest.raises(MismatchError, match="not the one that was fitted"):
        advisor.save(tmp_path / "advisor")
    assert not (tmp_path / "advisor").exists()


def test_the_fingerprint_is_that_of_the_content_before_and_after_a_folder(copy, tmp_path):
    loaded = Advisor.load(copy)
    assert identify_advisor(loaded.fitted) == loaded.fingerprint == tiny().fingerprint
    loaded.save(tmp_path / "again")
    assert {n: (tmp_path / "again" / n).read_bytes() for n in list_files(copy)} == {
        n: (copy / n).read_bytes() for n in list_files(copy)
    }


def test_other_versions_read_it_and_do_not_change_what_it_is(copy, monkeypatch, tmp_path):
    """The versions are those that it was made with, and trees that another XGBoost wrote keep their
    bytes.
    """
    monkeypatch.setattr(fitted_module, "versions", lambda: {"edfa": "9"})
    monkeypatch.setattr(persist, "versions", lambda: {"edfa": "9"})
    monkeypatch.setattr(boosting.xgb, "__version__", "9.9.9")
    loaded = Advisor.load(copy)
    assert loaded.fingerprint == tiny().fingerprint
    loaded.save(tmp_path / "again")
    again = json.loads((tmp_path / "again" / MANIFEST).read_text())
    assert again == json.loads((copy / MANIFEST).read_text())


def test_trees_are_the_same_bytes_after_they_were_read():
    model = tiny().fitted.model
    for mask in model._definite().values():
        trees = model._trees(mask)
        content = trees.content
        file = boosting.BoosterFile("x", content, len(model._shown(mask)), 2)
        for again in (boosting.load_boosters([file])[0], trees):
            again.booster.inplace_predict(np.zeros((1, len(model._shown(mask))), dtype=np.float32))
            assert bytes(again.booster.save_raw("ubj")) == again.content == content
            assert again.hash == trees.hash


@pytest.mark.parametrize(
    "settings",
    [{"seed": np.int64(3)}, {"learning_rate": np.float64(0.25)}, {"class_weight": {0: 1, 1: 2.5}}],
)
def test_settings_that_json_writes_in_another_way_are_the_same_advisor(settings, tmp_path):
    table = credit_story().table(300)
    settings = {n: v.item() if isinstance(v, np.integer) else v for n, v in settings.items()}
    predictor = SubsetXGB("nan", n_estimators=2, **settings)
    advisor = Advisor(predictor=predictor, searcher="nearest", budget=np.float64(4)).fit(
        table, n_jobs=1
    )
    advisor.save(tmp_path / "advisor")
    assert Advisor.load(tmp_path / "advisor").fingerprint == advisor.fingerprint


def test_an_advisor_of_a_bayesian_network_by_name(tmp_path):
    """A card with directions asks for a model that obeys them, and says so; without them it is
    fitted and read.
    """

    def fit(**settings):
        file = str(config(tmp_path, predictor="bn", **settings))
        with pytest.raises(SystemExit) as ended:
            app(["fit", "german", "--config", file, "--quiet", "--out", str(tmp_path / "bn")])
        return ended.value.code or 0

    assert fit() == 2
    assert fit(obey_directions=False, searcher="nearest") == 0
    loaded = Advisor.load(tmp_path / "bn")
    assert isinstance(loaded.fitted.model, edfa.BayesNet)
    assert len(ask_people(loaded, 1)) > 1


def test_whole_numbers_in_rules_and_cards_are_no_other_advisor(tmp_path):
    """12 is read back as 12.0: the same limit, the same price, the same advisor."""
    table = edfa.load("german")
    features = tuple(
        replace(f, cost=int(f.cost), effort=2 if f.name == "duration" else f.effort)
        for f in table.schema
    )
    whole = edfa.Table.from_frame(table.frame, replace(table.schema, features=features))
    settings = {
        "searcher": "nearest",
        "committee": 0,
        "rules": edfa.Rules(max_months=12, max_effort=9),
    }
    advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=5), **settings).fit(whole)
    advisor.save(tmp_path / "advisor")
    assert edfa.Advisor.load(tmp_path / "advisor").fingerprint == advisor.fingerprint
