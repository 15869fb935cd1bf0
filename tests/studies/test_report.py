"""The report: whole, harmless, complete, and the same bytes for the same results."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from synthetic_results import Synthetic, labels, synthetic_results
from webpage import checked

from edfa.writing import list_files
from edfa_studies.cells import Cell, Part
from edfa_studies.config import expand, read_study
from edfa_studies.figures import growth as curves
from edfa_studies.figures import promises as early
from edfa_studies.figures.render import compact, render
from edfa_studies.report import distinct, summary, write_report, write_sections
from edfa_studies.sections import sections
from edfa_studies.tables.names import title
from edfa_studies.tables.rows import View

SCRIPT = "<script>alert('owned')</script>"


def cell(measure="growth", data="adult", seed=0, **settings):
    parts = [Part(name, name) for name in (data, "xgb", "eamb", "edfa", "nearest")]
    return Cell(measure, *parts, seed=seed, settings={"reading": "paper"} | settings)


def small_results(label="adult"):
    """Two steps of two policies on one set, a promise, and words that are attacks."""
    rows = {}
    for policy in ("edfa", "dime"):
        for k in range(2):
            values = {
                "step": k,
                "cost": k / 2,
                "recourse": k,
                "accuracy": 0.7,
                "active": 0.1,
                "outside": 0,
            }
            rows.setdefault(("growth", "step"), []).append(
                labels("growth", label, policy=policy) | values
            )
    words = {
        "known": [SCRIPT],
        "asked": SCRIPT,
        "asked_value": "x",
        "role": "spouse",
        "decision": "no",
    }
    words |= {
        "feature": SCRIPT,
        "from": "$a_1$",
        "to": "b & c",
        "reached": "yes",
        "person": 1,
        "step": 1,
        "cost": 0.1,
    }
    rows["examples", "transition"] = [labels("examples", label) | words]
    values = {
        "alpha": 0.2,
        "method": "paper",
        "status": "certified",
        "n": 300,
        "cost": 0.3,
        "strictest_risk": 0.1,
    }
    rows["promise", "certificate"] = [
        labels("promise", label, promise="paper") | values | {"full_cost": 0.8}
    ]
    return Synthetic(rows)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return folder, write_sections(small_results(SCRIPT), SCRIPT, [], folder)


def test_the_page_is_whole_harmless_and_has_every_section(written):
    folder, _ = written
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    text = checked(page.partition(">")[2])
    assert SCRIPT in text
    for section in sections(Synthetic({})):
        assert section.title in text
        assert (
            f'<h2 id="{"-".join("".join(c if c.isalnum() else " " for c in section.title.lower()).split())}"'
            in page
        )
    assert text.count("There are no results for this section.") >= 3


def test_what_has_no_results_is_named(written):
    text = checked((written[0] / "report.html").read_text(encoding="utf-8").partition(">")[2])
    left_out = text.partition("therefore left out:")[2].partition("What must hold")[0]
    assert "table_3_quality" in left_out
    assert "figure_14_ablations_adult" in left_out
    assert "figure_18_transitions" not in left_out


def test_every_exhibit_is_there_as_files(written):
    folder, paths = written
    assert paths[0] == folder / "report.html"
    assert sorted(path.relative_to(folder).as_posix() for path in paths) == list_files(folder)
    present = [
        exhibit for section in sections(small_results(SCRIPT)) for exhibit in section.present
    ]
    for exhibit in present:
        kinds = ("csv", "svg", "png") if exhibit.draw else ("csv", "latex")
        for kind in kinds:
            assert (
                folder / kind / f"{exhibit.name}.{'tex' if kind == 'latex' else kind}"
            ).stat().st_size > 0
    assert any(exhibit.draw is None for exhibit in present)
    for path in (folder / "svg").iterdir():
        ElementTree.parse(path)  # well formed  # noqa: S314
        assert path.stat().st_size < 60_000


def test_the_same_results_give_the_same_bytes(written, tmp_path):
    folder, _ = written
    write_sections(small_results(SCRIPT), SCRIPT, [], tmp_path)
    assert list_files(tmp_path) == list_files(folder)
    for name in list_files(folder):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_cells_that_are_not_done_are_named_and_others_do_not_count(tmp_path):
    done, missing = cell(seed=0), cell(seed=1)
    other = labels("growth", "adult") | {
        "cell": "of another study",
        "step": 0,
        "cost": 0.0,
        "recourse": 99.0,
    }
    row = other | {"cell": done.key, "recourse": 1.0}
    store = Synthetic({("growth", "step"): [row, other]})
    paths = write_sections(store, "Study", [done, missing], tmp_path)
    text = checked(paths[0].read_text(encoding="utf-8").partition(">")[2])
    assert "1 of 2 cells are done." in text
    assert "growth, adult, xgb: eamb edfa nearest (1)" in text
    data = pd.read_csv(tmp_path / "csv" / "figure_3_frontier_xgb.csv").query(
        "measure == 'recourse'"
    )
    assert data["mean"].tolist() == [1.0]


def test_of_cells_with_the_same_names_the_first_counts():
    first, second, third = (
        cell(people=100),
        cell(people=50),
        cell("promise", promise={"name": "paper"}),
    )
    counted, doubled = distinct(
        [first, second, third, cell("promise", promise={"name": "advisor"})]
    )
    assert [one.key for one in doubled] == [second.key]
    assert len(counted) == 3
    assert summary([first, second]) == ["growth, adult, xgb: eamb edfa nearest (2)"]


def test_a_report_of_nothing_says_so(tmp_path):
    paths = write_sections(Synthetic({}), "Nothing", [], tmp_path)
    assert [path.name for path in paths] == ["report.html", "report.md"]
    assert "table_1_sets" in checked(paths[0].read_text(encoding="utf-8").partition(">")[2])


def test_every_figure_of_a_study_can_be_drawn_and_is_named_once():
    results = View(synthetic_results(sets=("adult",), predictors=("xgb",), seeds=2))
    exhibits = [exhibit for section in sections(results) for exhibit in section.present]
    names = [exhibit.name for exhibit in exhibits]
    assert len(names) == len(set(names))
    figures = [exhibit for exhibit in exhibits if exhibit.draw]
    wanted = (
        "figure_3_frontier_xgb figure_5_policies_adult figure_11_valid_xgb figure_13_data_limits "
    )
    wanted += (
        "figure_14_ablations_adult figure_18_transitions figure_19_side_by_side figure_bn_adult "
    )
    wanted += (
        "figure_equal_cost_xgb figure_first_recourse figure_outcome_lift "
        "figure_certified_cost_paper_xgb_20"
    )
    assert set(wanted.split()) <= set(names)
    for exhibit in figures:
        figure = Figure(figsize=exhibit.size)
        FigureCanvasAgg(figure)
        exhibit.draw(figure)
        assert figure.axes


def test_a_line_is_drawn_for_each_series_and_edfa_is_widest():
    frame = curves.policy_lines(synthetic_results(sets=("adult",), predictors=("xgb",), seeds=2))
    ax = curves.draw_growth(Figure().subplots(), frame, "recourse")
    widths = {line.get_color(): line.get_linewidth() for line in ax.lines}
    assert len(ax.lines) == frame["series"].nunique()
    assert max(widths, key=widths.get) == ax.lines[0].get_color()
    assert (
        len(
            {
                (line.get_color(), line.get_linestyle(), line._dash_pattern[1] and 1)
                for line in ax.lines
            }
        )
        > 6
    )


def test_the_legend_of_what_limits_certificates_names_every_set_and_searcher():
    frame = early.limits(synthetic_results(predictors=("xgb",), seeds=1))
    figure = Figure(figsize=(10, 4), layout="constrained")
    early.draw_all_limits(figure, frame)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    wanted = {title("data", name) for name in frame["data"]}
    wanted |= {title("searcher", name) for name in frame["searcher"]}
    assert wanted <= set(names)
    assert len(names) == len(set(names))


def test_svg_is_compact_and_keeps_its_text():
    def draw(figure):
        ax = figure.subplots()
        ax.plot([0, 1 / 3, 1], [1 / 3, 1 / 7, 0], "o-")
        ax.set_title("1.23456 <b> $x$")

    svg, png = render(draw, "name", (3, 2))
    assert "1.23456 &lt;b&gt; $x$" in svg
    assert "DejaVu Sans" in svg.partition(">\n")[2].partition(">")[0]
    assert "<g>" not in svg
    assert "<dc:date>" not in svg
    assert png.startswith(b"\x89PNG")
    assert svg.count("<g") == svg.count("</g>")
    assert compact(
        '<svg a="1.23456"><g id="x"><g><path d="M 0.12345 12.3456"/></g></g></svg>'
    ).endswith('a="1.2"><path d="M 0.12 12.3"/></svg>')


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, edfa_studies.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_study_s_report_counts_its_cells(tmp_path):
    study = read_study("smoke")
    paths = write_report(Synthetic({}), study, tmp_path)
    text = checked(paths[0].read_text(encoding="utf-8").partition(">")[2])
    assert f"0 of {len(expand(study))} cells are done." in text
    assert study.title in text


def test_markdown_has_every_table_and_links_every_figure(written):
    folder = written[0]
    text = (folder / "report.md").read_text(encoding="utf-8")
    figures = sorted(path.name for path in (folder / "svg").iterdir())
    assert figures
    assert all(f"(svg/{name})" in text for name in figures)
    assert "<script>" not in text
    assert text.count("|---") >= len(list((folder / "latex").iterdir()))
