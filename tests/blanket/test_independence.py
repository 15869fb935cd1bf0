"""Each test against closed forms, permutation and simulated nulls."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from edfa.blanket import DataTester, Search, discover
from edfa.blanket.columns import CategoricalColumn, ContinuousColumn
from edfa.blanket.contingency import ContingencyTable, cmh, g2, x2mm
from edfa.blanket.sources import MemoryRows, open_source


def make_tester(columns, test="auto", **options):
    """A tester over named arrays: integers are levels, floats are numbers."""
    return DataTester(make_source(columns), test, **options)


def make_source(columns):
    """The columns in memory as ``open_source`` reads them, without a frame: there are thousands of
    draws.
    """
    pairs = [read(name, np.asarray(columns[name])) for name in sorted(columns)]
    return MemoryRows([column for column, _ in pairs], [values for _, values in pairs])


def read(name, values):
    if values.dtype.kind == "f":
        return ContinuousColumn.fit(name, values), values
    counts = np.bincount(values)
    levels = np.flatnonzero(counts)
    column = CategoricalColumn.fit(
        name, {str(level): int(counts[level]) for level in levels}, False
    )
    codes = np.zeros(len(counts), dtype=np.int64)
    codes[[int(level) for level in column.levels]] = np.arange(len(levels))
    return column, codes[values]


def test_arrays_are_read_as_frames_are():
    random = np.random.default_rng(15)
    columns = {
        "a": random.integers(0, 30, 500),
        "b": random.standard_normal(500),
        "c": random.choice([2, 7, 11], 500, p=[0.2, 0.5, 0.3]),
        "unused": np.resize([0, 1], 500),
    }
    words = {name: v.astype(str) if v.dtype.kind == "i" else v for name, v in columns.items()}
    mine, expected = (
        make_source(columns),
        open_source(pd.DataFrame(words), "unused", None, False)[0],
    )
    assert mine.columns == expected.columns
    np.testing.assert_array_equal(mine.correlation().matrix, expected.correlation().matrix)
    for x, y, conditions in ((0, 1, (2,)), (1, 2, (0,)), (0, 2, ())):
        left, right = (s.contingency_table(x, y, conditions, 5) for s in (mine, expected))
        np.testing.assert_array_equal(left.counts, right.counts)


def ask(tester, x, y, *given):
    return tester.test(
        *(tester.names.index(n) for n in (x, y)), [tester.names.index(g) for g in given]
    )


def rejections(make, draws, *tests, given=(), alpha=0.01, seed=0):
    """How often each test rejects a true null, on the same draws; and the standard error of that
    share at the level.
    """
    random = np.random.default_rng(seed)
    hits = np.empty((draws, len(tests)))
    for draw in range(draws):
        source = make_source(make(random))
        for i, test in enumerate(tests):
            hits[draw, i] = (
                ask(DataTester(source, test, min_effect=0.0), "x", "y", *given).p <= alpha
            )
    return *hits.mean(axis=0), np.sqrt(alpha * (1 - alpha) / draws)


def cut(values, bins):
    """Which of so many quantile bins of equal shares each value is in."""
    return np.searchsorted(np.quantile(values, np.arange(1, bins) / bins), values)


def confounded(n, levels, k):
    """X and a binary Y, both driven by k five-level columns and by nothing else."""

    def make(random):
        s = random.integers(0, 5, (n, k))
        push = s.sum(axis=1) / max(4 * k, 1)
        x = np.minimum((random.random(n) * 0.7 + 0.3 * push) * levels, levels - 1).astype(int)
        y = (random.random(n) < 0.3 + 0.4 * push).astype(int)
        return {"x": x, "y": y} | {f"s{i}": s[:, i] for i in range(k)}

    return make


GRID = [  # n, levels of X, number of five-level conditions, draws
    (1000, 5, 2, 300),
    (10_000, 5, 3, 150),
    (10_000, 500, 0, 100),
    (10_000, 500, 1, 100),
    (50_000, 50, 2, 40),
    (50_000, 500, 1, 30),
]


@pytest.mark.parametrize(("n", "levels", "k", "draws"), GRID)
def test_sparse_and_wide_tables_keep_the_level(n, levels, k, draws):
    tests = ("x2mm", "auto") if levels <= 50 else ("x2mm",)
    *shares, error = rejections(
        confounded(n, levels, k), draws, *tests, given=[f"s{i}" for i in range(k)]
    )
    for test, share in zip(tests, shares, strict=True):
        assert share <= 0.01 + 3 * error, test


@pytest.mark.parametrize(("n", "levels", "k"), [(2000, 3, 0), (5000, 3, 1), (10_000, 4, 1)])
def test_g2_keeps_its_level_where_cells_are_well_filled(n, levels, k):
    share, error = rejections(
        confounded(n, levels, k), 300, "g2", given=[f"s{i}" for i in range(k)]
    )
    assert abs(share - 0.01) <= 3 * error


def smooth(n, levels_x=0, classes=0):
    """X and Y, each a smooth function of one number plus noise; words where levels are asked
    for.
    """

    def make(random):
        s = random.standard_normal(n)
        x, y = np.tanh(s) + random.standard_normal(n), 0.5 * s + random.standard_normal(n)
        return {
            "x": cut(x, levels_x) if levels_x else x,
            "y": cut(y, classes) if classes else y,
            "s": s,
        }

    return make


def unrelated(n, levels, classes):
    return lambda random: {"x": random.integers(0, levels, n), "y": random.integers(0, classes, n)}


@pytest.mark.parametrize("words", [(0, 0), (5, 0), (5, 3)])
def test_lrt_keeps_its_level_on_smooth_mixed_nulls(words):
    share, error = rejections(smooth(1000, *words), 300, "lrt", given=("s",))
    assert share <= 0.01 + 3 * error


@pytest.mark.parametrize(("levels", "classes"), [(300, 10), (100, 4), (100, 100)])
def test_wide_categories_keep_the_level_of_lrt(levels, classes):
    share, error = rejections(unrelated(1000, levels, classes), 200, "lrt")
    assert share <= 0.01 + 3 * error


def test_a_wide_condition_keeps_the_level_of_lrt():
    def make(random):
        return {c: random.integers(0, k, 1000) for c, k in (("x", 100), ("y", 4), ("s", 100))}

    share, error = rejections(make, 200, "lrt", given=("s",))
    assert share <= 0.01 + 3 * error


def test_a_quadratic_condition_as_strong_as_the_noise_keeps_the_level_of_lrt():
    def make(random):
        s = random.standard_normal((1000, 2))
        x, y = (s[:, 0] ** 2 / 2 + random.standard_normal(1000) for _ in range(2))
        return {"x": x, "y": y, "s0": s[:, 0], "s1": s[:, 1]}

    share, error = rejections(make, 300, "lrt", given=("s0", "s1"))
    assert share <= 0.01 + 3 * error


def test_fisher_z_keeps_its_level():
    def linear(random):
        s = random.standard_normal(500)
        return {"x": s + random.standard_normal(500), "y": random.standard_normal(500) - s, "s": s}

    share, error = rejections(linear, 400, "fisher_z", given=("s",))
    assert abs(share - 0.01) <= 3 * error
    assert rejections(linear, 20, "fisher_z", given=())[0] == 1.0


def test_auto_is_not_fooled_by_interacting_conditions():
    """A product of two conditions drives both: the likelihood ratio alone rejects, stratification
    does not.
    """

    def make(random):
        s = random.standard_normal((20_000, 2))
        push = s[:, 0] * s[:, 1]
        x, y = (push + random.standard_normal(20_000) for _ in range(2))
        return {"x": x, "y": y, "s0": s[:, 0], "s1": s[:, 1]}

    fooled, share, error = rejections(make, 20, "lrt", "auto", given=("s0", "s1"))
    assert fooled == 1.0
    assert share <= 0.01 + 3 * error


SHAPES = {
    "linear": lambda s: s[:, 0],
    "sum": lambda s: np.tanh(s[:, 0]) + s[:, 1],
    "quadratic": lambda s: s[:, 0] ** 2 / 2,
    "product": lambda s: s[:, 0] * s[:, 1],
    "step": lambda s: (s[:, 0] > 0.3) * 1.0 + s[:, 1] / 2,
    "lognormal": lambda s: np.minimum(np.exp(s[:, 0]), 6) / 2,
    "wave": lambda s: np.sin(2 * s[:, 0]),
}


@pytest.mark.parametrize(
    ("n", "draws", "shape"),
    [
        *((2000, 100, shape) for shape in SHAPES),
        *((20_000, 60, shape) for shape in ("sum", "wave")),
        *(
            pytest.param(*sizes, shape, marks=pytest.mark.long)
            for sizes in ((20_000, 60), (50_000, 20))
            for shape in SHAPES
            if (*sizes, shape) not in ((20_000, 60, "sum"), (20_000, 60, "wave"))
        ),
    ],
)
def test_auto_keeps_its_level_under_confounding_as_strong_as_the_noise(shape, n, draws):
    def make(random):
        s = random.standard_normal((n, 2))
        x, y = (SHAPES[shape](s) + random.standard_normal(n) for _ in range(2))
        return {"x": cut(x, 4), "y": y, "s0": s[:, 0], "s1": s[:, 1]}

    share, error = rejections(make, draws, "auto", given=("s0", "s1"))
    assert share <= 0.01 + 3 * error


def test_auto_sees_a_weak_dependence_behind_strong_confounders():
    def make(random):
        s = random.standard_normal((5000, 2))
        x = s.sum(axis=1) + (own := random.standard_normal(5000))
        y = s.sum(axis=1) + 0.15 * own + random.standard_normal(5000)
        return {"x": cut(x, 4), "y": y, "s0": s[:, 0], "s1": s[:, 1]}

    assert rejections(make, 30, "auto", given=("s0", "s1"))[0] >= 0.9


def test_cmh_is_mantel_and_haenszels_on_two_by_two_tables():
    tables = np.random.default_rng(10).integers(0, 6, (40, 2, 2))
    tables[0], tables[1] = [[1, 0], [0, 0]], [[0, 0], [0, 0]]
    n = tables.sum(axis=(1, 2))
    used, m = tables[n > 1], n[n > 1]
    row, column = used.sum(axis=2), used.sum(axis=1)
    apart = (used[:, 1, 1] - row[:, 1] * column[:, 1] / m).sum()
    variance = (row.prod(axis=1) * column.prod(axis=1) / (m**2 * (m - 1))).sum()
    result = cmh(ContingencyTable(tables.ravel(), tables.shape, tables.size))
    assert result.statistic == pytest.approx(apart**2 / variance)
    assert result.dof == 1


def test_cmh_of_one_table_is_pearsons_less_one_row():
    """With fixed margins the covariance is that of sampling without replacement: (n - 1) / n of
    Pearson's.
    """
    table = np.random.default_rng(11).integers(1, 30, (1, 4, 3))
    pearson = stats.chi2_contingency(table[0], correction=False)
    result = cmh(ContingencyTable(table.ravel(), table.shape, table.size))
    assert result.statistic == pytest.approx(pearson.statistic * (table.sum() - 1) / table.sum())
    assert result.dof == pearson.dof


def test_cmh_keeps_its_level_in_strata_of_three_rows():
    random = np.random.default_rng(12)
    hits = 0
    for _ in range(600):
        x, y = (random.integers(0, 4, 1500) + np.arange(1500) // 3 % 2 for _ in range(2))
        count = np.bincount((np.arange(1500) // 3 * 5 + x) * 5 + y, minlength=500 * 25)
        hits += cmh(ContingencyTable(count, (500, 5, 5), count.size)).p <= 0.01
    assert abs(hits / 600 - 0.01) <= 3 * np.sqrt(0.01 * 0.99 / 600)


def test_g2_is_scipys_without_conditions_and_their_sum_with_them():
    random = np.random.default_rng(1)
    tables = random.integers(1, 40, (3, 4, 2))
    cells = ContingencyTable(tables.ravel(), tables.shape, tables.size)
    parts = [stats.chi2_contingency(t, correction=False, lambda_="log-likelihood") for t in tables]
    result = g2(cells)
    assert result.statistic == pytest.approx(sum(p.statistic for p in parts))
    assert result.dof == sum(p.dof for p in parts)
    assert result.p == pytest.approx(stats.chi2.sf(result.statistic, result.dof))


def test_degrees_of_freedom_leave_out_empty_rows_and_columns():
    table = np.array([[[5, 5], [0, 0], [5, 5]], [[10, 0], [7, 0], [0, 0]]])
    assert g2(ContingencyTable(table.ravel(), table.shape, 12)).dof == 1
    empty = np.array([[[10, 0], [7, 0]]])
    assert g2(ContingencyTable(empty.ravel(), empty.shape, 4)).p == 1.0


def test_cells_that_occur_say_what_the_whole_table_says():
    random = np.random.default_rng(2)
    table = random.poisson(0.7, (30, 6, 4))
    full = ContingencyTable(table.ravel(), table.shape, table.size)
    where = np.flatnonzero(table.ravel())
    some = ContingencyTable(table.ravel()[where], table.shape, table.size, where)
    for test in (g2, x2mm, cmh):
        assert test(full) == test(some)


def test_the_moments_of_x2mm_are_those_of_permutation():
    random = np.random.default_rng(3)
    x, y = (
        random.choice(6, 60, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05]),
        random.choice(3, 60, p=[0.7, 0.2, 0.1]),
    )

    def pearson(shuffled):
        """Pearson's statistic of x with each of some permutations of y: their margins are the
        same.
        """
        cells = np.arange(len(shuffled))[:, None] * 18 + x * 3 + shuffled
        tables = np.bincount(cells.ravel(), minlength=18 * len(shuffled)).reshape(-1, 6, 3)
        expected = np.outer(np.bincount(x, minlength=6), np.bincount(y, minlength=3)) / 60
        seen = expected > 0
        return ((tables - expected)[:, seen] ** 2 / expected[seen]).sum(axis=1)

    draws = pearson(np.array([random.permutation(y) for _ in range(4000)]))
    count = np.bincount(x * 3 + y, minlength=18)
    result = x2mm(ContingencyTable(count, (1, 6, 3), 18))
    observed = count.reshape(6, 3)
    observed = observed[observed.any(axis=1)][:, observed.any(axis=0)]
    expected = stats.chi2_contingency(observed, correction=False).statistic
    assert result.statistic == pytest.approx(expected)
    assert pearson(y[None])[0] == pytest.approx(expected)
    assert result.dof == pytest.approx(
        draws.mean(), rel=4 * draws.std() / draws.mean() / np.sqrt(len(draws))
    )
    assert result.p == pytest.approx((draws >= result.statistic - 1e-9).mean(), abs=0.03)


def test_fisher_z_is_the_partial_correlation():
    random = np.random.default_rng(4)
    s = random.standard_normal(4000)
    frame = pd.DataFrame(
        {"x": s + random.standard_normal(4000), "y": s + random.standard_normal(4000), "s": s}
    )
    frame["y"] += 0.1 * frame["x"]
    tester = make_tester(frame, "fisher_z")
    residual = {c: frame[c] - np.polyval(np.polyfit(s, frame[c], 1), s) for c in "xy"}
    r = np.corrcoef(residual["x"], residual["y"])[0, 1]
    expected = np.sqrt(4000 - 1 - 3) * np.arctanh(r)
    assert ask(tester, "x", "y", "s").statistic == pytest.approx(expected, rel=0.03)


def test_likelihood_ratio_is_that_of_regression():
    """On binary words the statistic is n ln(residual variance without / with), up to Bartlett's
    factor.
    """
    random = np.random.default_rng(5)
    a, b = random.integers(0, 2, 3000), random.integers(0, 2, 3000)
    y = ((a + b + random.random(3000) * 2) > 1.5).astype(int)
    tester = make_tester(pd.DataFrame({"a": a, "b": b, "y": y}), "lrt")
    without = np.linalg.lstsq(np.c_[np.ones(3000), b], y, rcond=None)[1][0]
    with_a = np.linalg.lstsq(np.c_[np.ones(3000), b, a], y, rcond=None)[1][0]
    result = ask(tester, "a", "y", "b")
    assert result.statistic == pytest.approx(
        (3000 - 1 - 1 - 1.5) * np.log(without / with_a), rel=1e-6
    )
    assert result.dof == 1


def test_a_function_of_the_conditions_is_independent_of_everything():
    random = np.random.default_rng(6)
    school = random.integers(0, 6, 2000)
    frame = pd.DataFrame(
        {
            "school": school,
            "years": school.astype(float) * 2,
            "y": (school + random.integers(0, 3, 2000) > 4),
        }
    )
    frame["y"] = frame["y"].astype(int)
    tester = make_tester(frame, "lrt")
    assert ask(tester, "years", "y").p < 1e-6
    result = ask(tester, "years", "y", "school")
    assert (result.p, result.test) == (1.0, "deterministic")


def lawful(n, seed):
    """Either is a law of two causes, and has two effects of its own; twin copies one of the
    causes.
    """
    random = np.random.default_rng(seed)
    lung, tub = random.random(n) < 0.3, random.random(n) < 0.3
    either = lung | tub
    xray, cough = (np.where(either, 0.9, 0.1) > random.random(n) for _ in range(2))
    frame = pd.DataFrame(
        {"lung": lung, "tub": tub, "either": either, "xray": xray, "cough": cough, "twin": lung}
    )
    return frame.astype(int)


def test_what_several_conditions_determine_cannot_be_tested():
    tester = make_tester(lawful(2000, 13))
    result = ask(tester, "either", "xray", "lung", "tub")
    assert (result.reliable, result.test, result.dof) == (False, "law", 0)
    assert not ask(tester, "either", "xray", "lung", "tub", "cough").reliable
    assert ask(tester, "either", "xray", "lung").reliable, "either varies where lung is absent"


def test_a_copy_is_redundant_and_no_law():
    tester = make_tester(lawful(2000, 13))
    for given in (["lung"], ["lung", "xray"], ["lung", "tub"]):
        result = ask(tester, "twin", "either", *given)
        assert (result.reliable, result.p) == (True, 1.0)


def test_rare_levels_are_no_law():
    """Where x is present y never varies, and the other way round; neither is a function of the
    conditions.
    """
    both = np.repeat(np.arange(8), [100, 100, 3, 0, 100, 2, 100, 0])
    frame = pd.DataFrame(
        {"x": both >> 1 & 1, "y": both & 1, "s": both >> 2, "t": np.resize([0, 1], len(both))}
    )
    frame.loc[frame["s"] == 0, "x"] = 0
    frame.loc[frame["s"] == 1, "y"] = 0
    result = ask(make_tester(frame), "x", "y", "s", "t")
    assert (result.dof, result.reliable, result.p) == (0, True, 1.0)


@pytest.mark.parametrize("method", ["hiton-mb", "bamb"])
def test_the_blanket_reaches_beyond_a_law(method):
    frame = lawful(4000, 14).drop(columns="twin").astype(str)
    assert set(discover(frame, method, target="either").features) == {
        "lung",
        "tub",
        "xray",
        "cough",
    }
    assert set(discover(frame, method, target="lung").features) == {"either", "tub"}


def test_duplicates_constants_gaps_and_zero_inflation_do_no_harm():
    random = np.random.default_rng(7)
    n = 3000
    gain = np.where(random.random(n) < 0.8, 0.0, random.lognormal(5, 2, n))
    y = np.where((gain > 0) ^ (random.random(n) < 0.2), "high", "low")
    frame = pd.DataFrame(
        {"gain": gain, "twin": gain, "flat": 1.0, "noise": random.standard_normal(n), "y": y}
    )
    frame.loc[random.random(n) < 0.2, "noise"] = np.nan
    blanket = discover(frame, target="y")
    assert blanket.left_out == ("flat",)
    assert set(blanket.features) in ({"gain"}, {"twin"})


def test_missingness_itself_can_matter():
    random = np.random.default_rng(8)
    y = random.integers(0, 2, 4000)
    value = random.standard_normal(4000)
    value[(random.random(4000) < 0.5) & (y == 1)] = np.nan
    frame = pd.DataFrame(
        {"value": value, "other": random.standard_normal(4000), "y": np.where(y, "a", "b")}
    )
    assert discover(frame, target="y").features == ("value",)


def test_a_500_level_column_is_not_admitted_by_its_width():
    random = np.random.default_rng(9)
    n = 20_000
    s = random.integers(0, 5, n)
    frame = pd.DataFrame(
        {
            "wide": [f"w{v}" for v in (s * 100 + random.integers(0, 100, n))],
            "s": [f"s{v}" for v in s],
        }
    )
    frame["y"] = np.where(random.random(n) < 0.2 + 0.15 * s, "a", "b")
    tester = Search().tester(open_source(frame, "y", None, False)[0])
    wide, y, s = (tester.names.index(c) for c in ("wide", "y", "s"))
    assert not tester.strength(tester.test(wide, y, [s]))


def test_each_question_is_asked_once_whatever_its_order():
    tester = make_tester(
        {c: np.random.default_rng(i).standard_normal(200) for i, c in enumerate("abcd")}
    )
    first = tester.test(0, 1, [2, 3])
    assert tester.test(1, 0, (3, 2)) is first
    assert len(tester.results) == 1
