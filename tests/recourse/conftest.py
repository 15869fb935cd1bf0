"""German credit and two models of it, made once for all tests of recourse."""

import pytest
from advisors import plain_german

import edfa


@pytest.fixture(scope="session")
def table():
    return plain_german()


@pytest.fixture(scope="session")
def trees(table):
    return edfa.SubsetXGB(n_estimators=40).fit(table.train.X, table.train.y)


@pytest.fixture(scope="session")
def network(table):
    return edfa.MaskedMLP(epochs=12, class_weight="balanced").fit(table.train.X, table.train.y)


@pytest.fixture(scope="session")
def german(table, trees):
    return table, trees
