"""What notebooks show: escaped, whole, self-contained; in a real browser too."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup
from webpage import checked

import edfa
from edfa.text import html

EVIL = "<img src=x onerror=document.title='owned'>"
SCRIPT = "</style><script>document.title='owned'</script>$x$"


@pytest.fixture(scope="module")
def hostile():
    """Everything that shows itself, of a table whose names are attacks."""
    random = np.random.default_rng(0)
    x, z = random.normal(size=(2, 300)).round(3)
    outcome = np.where(x + z + random.normal(size=300) > 0, EVIL, SCRIPT)
    frame = pd.DataFrame(
        {EVIL: x, SCRIPT: z, "level": random.choice([EVIL, SCRIPT], 300), "y": outcome}
    )
    features = (edfa.Feature(EVIL, "continuous"), edfa.Feature(SCRIPT, "continuous"))
    schema = edfa.Schema((*features, edfa.Feature("level", "categorical")), "y", EVIL)
    table = edfa.Table.from_frame(frame, schema)
    blanket = edfa.Blanket(SCRIPT, {EVIL: (SCRIPT,)}, ("level",))
    model = edfa.SubsetXGB(n_estimators=10).fit(table.train.X, table.train.y)
    several = edfa.acquire(table.calibration, edfa.EDFA(blanket), model, budget="inf")
    one = edfa.acquire(
        table.test.frame.iloc[:1], edfa.EDFA(blanket), model, budget="inf", reference=table.train
    )
    plans = edfa.find_recourse(several, edfa.Nearest(table.train))
    certificate = replace(edfa.certify(plans, alpha=0.5), group=EVIL, warnings=(SCRIPT,))
    interview = (
        edfa.Advisor(blanket=blanket, predictor=edfa.SubsetXGB(n_estimators=10))
        .fit(table)
        .interview({EVIL: 0.0})
    )
    return {
        "table": table,
        "schema": schema,
        "blanket": edfa.discover(table.train),
        "named": blanket,
        "several": several,
        "one": one,
        "plans": plans,
        "certificate": certificate,
        "interview": interview.answer(level=EVIL).decline(SCRIPT),
        "none": replace(certificate, status="risk_limited", tau=None),
    }


@pytest.mark.parametrize(
    "name",
    "table schema blanket named several one plans certificate interview none".split(),
)
def test_names_are_text_and_the_html_is_whole(hostile, name):
    text = hostile[name]._repr_html_()
    assert "url(" not in text.replace("url(#", ""), "only parts of the drawing itself"
    assert EVIL in checked(text) or SCRIPT in checked(text)


def test_a_page_is_a_whole_document_that_may_not_run_anything():
    page = html.page(
        SCRIPT, html.paragraph(EVIL, Markup("<b>bold</b>")), html.bullet_list([EVIL]), language="de"
    )
    assert page.startswith('<!doctype html><html lang="de">')
    assert "default-src 'none'" in page
    text = checked(page.partition(">")[2])
    assert text.count(EVIL) == 2
    assert SCRIPT in text
    assert "<b>bold</b>" in page
    assert html.bullet_list([]) == ""


def test_text_is_escaped_and_markup_is_not_escaped_again():
    assert html.escaped('<b> & "quotes"') == Markup("&lt;b&gt; &amp; &#34;quotes&#34;")
    assert html.escaped(Markup("<b>")) == Markup("<b>")
    assert html.escaped(None) == ""
    assert html.fragment("<b>").endswith("&lt;b&gt;</div>"), "a part that is no markup is text"


def test_documents_are_plain_text_so_that_adding_to_them_escapes_nothing():
    for document in (html.fragment(html.paragraph("a")), html.page("title", html.paragraph("a"))):
        assert type(document) is str
        assert ("<b>" + document).startswith("<b>")


def test_a_figure_has_the_same_bytes_and_its_text_as_text():
    def draw(ax):
        ax.plot([0, 1], [1, 2], label=SCRIPT)
        ax.legend()

    first, second = html.figure(draw, EVIL), html.figure(draw, EVIL)
    assert first == second
    assert EVIL in checked(first)
    assert SCRIPT in checked(first)
    assert "<date" not in first


def test_the_curve_of_a_certificate_is_drawn_from_its_frame(hostile):
    from matplotlib.figure import Figure

    certificate = hostile["certificate"]
    ax = certificate.draw(Figure().add_subplot())
    drawn = {line.get_label(): line.get_xydata() for line in ax.get_lines()}
    frame = certificate.frame()
    assert len(frame) == len(certificate.curve)
    for name in ("risk", "bound"):
        assert np.array_equal(drawn[name], frame[["cost", name]].to_numpy())
    assert drawn["certified rule"].tolist() == [[certificate.cost, certificate.bound]]
    assert {style for line in ax.get_lines() if (style := line.get_linestyle()) != "None"} == {
        "-",
        "--",
        ":",
    }
    bare = hostile["none"].draw(Figure().add_subplot())
    assert "certified rule" not in [line.get_label() for line in bare.get_lines()]


def test_the_timeline_of_a_person_is_their_steps(hostile):
    from matplotlib.figure import Figure

    one = hostile["one"]
    ax = one.draw(Figure().add_subplot())
    favourable = one.schema.classes.index(one.schema.favourable)
    assert np.array_equal(
        ax.get_lines()[0].get_xydata(),
        np.column_stack([one.spent, one.probabilities[:, favourable]]),
    )
    assert [text.get_text() for text in ax.texts] == ["start", *one.order(0)]


@pytest.mark.long
@pytest.mark.browser
def test_hostile_objects_show_as_text_and_ask_nothing_of_the_network(chromium, hostile):
    page = chromium.new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.set_content("<title>safe</title>" + "".join(one._repr_html_() for one in hostile.values()))
    assert page.title() == "safe"
    assert EVIL in page.locator("table").first.inner_text()
    assert requests == []
    page.close()


@pytest.mark.long
@pytest.mark.browser
def test_a_described_table_has_a_row_for_each_feature(chromium):
    table = edfa.load("german")
    page = chromium.new_page()
    page.set_content(table._repr_html_())
    assert page.locator("tbody tr").count() == 20
    assert page.locator("tbody tr", has_text="savings_status").count() == 1
    page.close()
