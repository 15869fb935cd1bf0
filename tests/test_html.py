"""What notebooks show, in a real browser."""

import pandas as pd
import pytest

import edfa

pytestmark = pytest.mark.browser


def test_a_hostile_table_shows_as_text_and_asks_nothing_of_the_network(chromium):
    evil = "<img src=x onerror=document.title='owned'>"
    frame = pd.DataFrame({evil: [evil, "b"] * 6, "y": ["good", "bad"] * 6})
    table = edfa.Table.from_frame(frame, edfa.Schema((edfa.Feature(evil, "categorical"),), "y", "good"))
    page = chromium.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_content(f"<title>safe</title>{table._repr_html_()}{table.schema._repr_html_()}")
    assert page.title() == "safe"
    assert evil in page.locator("table").first.inner_text()
    assert asked == []
    page.close()


def test_a_described_table_has_a_row_for_each_feature(chromium):
    table = edfa.load("german")
    page = chromium.new_page()
    page.set_content(table._repr_html_())
    assert page.locator("tbody tr").count() == 20
    assert page.locator("tbody tr", has_text="savings_status").count() == 1
    page.close()
