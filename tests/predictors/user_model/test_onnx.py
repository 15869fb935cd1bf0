"""Models in ONNX files: asked like any other, and nothing in them is guessed."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hostile.user_models import NUMBERS, WORDS, outcome, people, pipeline
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import OneHotEncoder

from edfa.errors import ModelError, UnreadableError
from edfa.predictors.user_model.ask import ENCODED, FittedModel
from edfa.predictors.user_model.files import compare_answers, open_model, read_model, write_model
from edfa.predictors.user_model.onnx import OnnxModel

pytestmark = pytest.mark.filterwarnings("ignore")  # skl2onnx's own
onnx = pytest.importorskip("onnx")
skl2onnx = pytest.importorskip("skl2onnx")


def whole_people():
    """People without gaps, words as words."""
    return people().assign(
        debt=people()["debt"].fillna(0.0), **{word: people()[word].astype(str) for word in WORDS}
    )


def matrix():
    return whole_people()[NUMBERS].to_numpy(dtype=np.float32)


def convert(model, zipmap=False, types=None):
    options = None if zipmap is None else {id(model): {"zipmap": zipmap}}
    types = types or [("X", skl2onnx.common.data_types.FloatTensorType([None, 2]))]
    return skl2onnx.convert_sklearn(
        model, initial_types=types, options=options, target_opset=17
    ).SerializeToString()


@pytest.fixture(scope="module")
def columns():
    """A Pipeline on a frame, and its graph with an input for each column."""
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    model = pipeline(LogisticRegression(), OneHotEncoder(handle_unknown="ignore")).fit(
        whole_people(), outcome()
    )
    types = [(name, FloatTensorType([None, 1])) for name in NUMBERS]
    types += [(name, StringTensorType([None, 1])) for name in WORDS]
    return model, {zipmap: convert(model, zipmap, types) for zipmap in (True, False)}


@pytest.mark.parametrize("zipmap", [True, False])
def test_a_graph_with_an_input_for_each_column_answers_as_its_pipeline(columns, zipmap):
    model, graphs = columns
    own = FittedModel.of(graphs[zipmap])
    assert own.columns == ("age", "debt", "job", "city")
    assert own.classes == ("bad", "good")
    np.testing.assert_allclose(
        own.ask(whole_people()), model.predict_proba(whole_people()), atol=1e-5
    )
    turned = whole_people()[["city", "job", "debt", "age"]]
    np.testing.assert_array_equal(own.ask(turned), own.ask(whole_people()))
    renamed = whole_people().set_axis(["a", "b", "c", "d"], axis=1)
    np.testing.assert_array_equal(own.ask(renamed), own.ask(whole_people()))


def test_a_graph_of_a_matrix_answers_as_its_forest():
    model = RandomForestClassifier(5, random_state=0).fit(
        matrix(), np.where(outcome() == "good", 2, 1)
    )
    own = FittedModel.of(convert(model), columns=ENCODED)
    assert own.classes == (1, 2)
    np.testing.assert_allclose(own.ask(matrix()), model.predict_proba(matrix()), atol=1e-6)
    with pytest.raises(ModelError, match="wants 2 columns, not 1"):
        own.ask(matrix()[:, :1])


def test_only_the_node_that_writes_the_label_is_believed_about_classes():
    """The graph of a vote numbers its members' classes from 0, whatever they are."""
    members = [("a", LogisticRegression()), ("b", GaussianNB())]
    vote = VotingClassifier(members, voting="soft", flatten_transform=False).fit(
        matrix(), codes_from_one()
    )
    assert not hasattr(OnnxModel.open(convert(vote)), "classes_")


def codes_from_one():
    return np.where(outcome() == "good", 2, 1)


def test_a_graph_is_kept_as_it_was_given(columns, tmp_path):
    content = columns[1][False]
    own = FittedModel.of(content)
    assert write_model(own) == ("model.onnx", content)
    (tmp_path / "loans.onnx").write_bytes(content)
    opened = FittedModel.of(open_model(tmp_path / "loans.onnx"))
    by_path = FittedModel.of(tmp_path / "loans.onnx")
    copied = FittedModel.of(pickle.loads(pickle.dumps(own.model)))  # noqa: S301 - our own, as workers get it
    for again in (opened, by_path, copied, FittedModel.of(read_model("model.onnx", content))):
        np.testing.assert_array_equal(again.ask(whole_people()), own.ask(whole_people()))


def test_what_a_conversion_changed_is_measured():
    """A graph of other trees than the model's: the share of other decisions is told."""
    first = RandomForestClassifier(3, random_state=0).fit(matrix(), outcome())
    second = RandomForestClassifier(3, random_state=1).fit(matrix(), outcome())
    graph = FittedModel.of(convert(first), columns=NUMBERS)
    frame = pd.DataFrame(matrix(), columns=NUMBERS)
    assert compare_answers(graph, FittedModel.of(first, columns=NUMBERS), frame) == 0
    share = (first.predict(matrix()) != second.predict(matrix())).mean()
    assert share > 0.02
    assert compare_answers(graph, FittedModel.of(second, columns=NUMBERS), frame) == pytest.approx(
        share, abs=0.02
    )


def test_graphs_without_probabilities_are_refused():
    classifier = LogisticRegression().fit(matrix(), outcome())
    with pytest.raises(ModelError, match="there is several"):
        OnnxModel.open(convert(classifier, "columns"))
    graph = onnx.load_from_string(convert(classifier))
    del graph.graph.output[1]
    with pytest.raises(ModelError, match="there is none"):
        OnnxModel.open(graph.SerializeToString())
    regression = FittedModel.of(
        convert(LinearRegression().fit(matrix(), matrix()[:, 0]), None), columns=ENCODED
    )
    with pytest.raises(ModelError, match="no probabilities"):
        regression.ask(matrix())


def test_values_that_an_input_cannot_have_are_named(columns):
    own = FittedModel.of(columns[1][False])
    with pytest.raises(ModelError, match="'city' has a gap"):
        own.ask(whole_people().assign(city=None))
    with pytest.raises(ModelError, match="'age' has values that are no numbers"):
        own.ask(whole_people().assign(age="old"))
    whole = convert(
        LogisticRegression().fit(matrix(), outcome()),
        types=[("X", skl2onnx.common.data_types.Int64TensorType([None, 2]))],
    )
    with pytest.raises(ModelError, match="gaps or fractions"):
        FittedModel.of(whole, columns=ENCODED).ask(matrix() + 0.5)


def test_a_graph_that_names_other_files_is_refused_before_it_is_run(tmp_path, monkeypatch):
    from onnx.external_data_helper import convert_model_to_external_data

    monkeypatch.chdir(tmp_path)
    graph = onnx.load_from_string(convert(GaussianNB().fit(matrix(), outcome())))
    for tensor in graph.graph.initializer:
        tensor.raw_data = onnx.numpy_helper.to_array(tensor).tobytes()
        for name in ("float_data", "int64_data", "int32_data"):
            tensor.ClearField(name)
    convert_model_to_external_data(graph, location="secret", size_threshold=0)
    onnx.save_model(graph, tmp_path / "loans.onnx")
    with pytest.raises(UnreadableError, match="keeps numbers in other files"):
        OnnxModel.open(tmp_path / "loans.onnx")


def test_an_operator_of_somebody_elses_is_refused():
    graph = onnx.load_from_string(convert(LogisticRegression().fit(matrix(), outcome())))
    graph.graph.node[0].domain = "evil"
    with pytest.raises(UnreadableError, match="cannot be run"):
        OnnxModel.open(graph.SerializeToString())


def test_asking_leaves_nothing_behind(columns, capfd):
    own = FittedModel.of(columns[1][True])
    own.ask(whole_people())
    assert own.ask(whole_people().iloc[:0]).shape == (0, 2)
    assert capfd.readouterr() == ("", "")
