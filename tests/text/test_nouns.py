"""What every noun shows in a notebook: whole, harmless, and readable on a light and on a dark
page.
"""

import ast
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from nouns import every_noun
from webpage import checked

import edfa

SOURCES = Path(edfa.__file__).parent
EVIL = "<img src=x onerror=document.title='owned'>"
SCRIPT = "</style><script>document.title='owned'</script>"
WITHOUT_NAMES = {"unfitted", "fidelity", "quality", "stops", "expected_risk"}
INHERITED = {"inherit", "currentcolor", "none", "transparent"}
PAGES = {
    "light": ("#fff", "#111"),
    "dark": ("#111", "#eee"),
}  # background and text, as Jupyter has them
CONTRAST = """
() => {
  const parse = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || ['STYLE', 'TITLE', 'title', 'style'].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const colour = parse(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(colour), light(behind(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(text.slice(0, 40));
  }
  return low;
}
"""


@pytest.fixture(scope="module")
def hostile():
    """The nouns of a table whose names and levels are attacks."""
    random = np.random.default_rng(0)
    x, z = random.normal(size=(2, 300)).round(3)
    outcome = np.where(x + z + random.normal(size=300) < 0, EVIL, SCRIPT)
    frame = pd.DataFrame(
        {EVIL: x, SCRIPT: z, "level": random.choice([EVIL, SCRIPT], 300), "y": outcome}
    )
    features = (edfa.Feature(EVIL, "continuous"), edfa.Feature(SCRIPT, "continuous"))
    schema = edfa.Schema((*features, edfa.Feature("level", "categorical")), "y", EVIL)
    table = edfa.Table.from_frame(frame, schema)
    return every_noun(
        table, edfa.Blanket("y", {EVIL: (SCRIPT,)}, ("level",)), {EVIL: 1.0}, {"level": EVIL}
    )


def test_every_class_that_shows_itself_is_among_the_nouns(hostile):
    kinds = {kind.__name__ for noun in hostile.values() for kind in type(noun).__mro__}
    classes = [
        node
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    showing = {
        c.name
        for c in classes
        if any(getattr(part, "name", "") == "_repr_html_" for part in c.body)
    }
    assert len(showing) >= 20
    assert showing <= kinds


def test_names_are_escaped_and_every_tag_is_closed(hostile):
    for name, noun in hostile.items():
        if name == "letter":
            continue
        text = checked(noun._repr_html_())
        assert name in WITHOUT_NAMES or EVIL in text or SCRIPT in text, name


class Tags(HTMLParser):
    """The start tags of a piece of HTML, each with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def test_a_letter_is_shown_in_a_frame_that_may_do_nothing(hostile):
    letter = hostile["letter"]
    ((tag, attributes),) = Tags(letter._repr_html_()).tags
    assert tag == "iframe"
    assert attributes.keys() == {"sandbox", "srcdoc", "style"}
    assert attributes["sandbox"] is None, "nothing is allowed"
    assert attributes["srcdoc"] == letter.html
    assert EVIL in unescape(letter.html)
    assert not {"script", "img", "link"} & {tag for tag, _ in Tags(letter.html).tags}


def blocks_of(text):
    """The CSS declarations of a piece of HTML as mappings: one for each rule and each style
    attribute.
    """
    rules = [
        body
        for style in re.findall(r"<style>(.*?)</style>", text, flags=re.S)
        for body in rule_bodies(style)
    ]
    rules += [attributes["style"] for _, attributes in Tags(text).tags if attributes.get("style")]
    pairs = [
        [part.partition(":")[::2] for part in body.split(";") if ":" in part] for body in rules
    ]
    return [{name.strip(): value.strip().lower() for name, value in block} for block in pairs]


def rule_bodies(style):
    return re.findall(r"\{([^{}]*)\}", style)


def fixed_colours(text):
    """The declarations that fix the colour of text without that of what is behind it, and fills of
    SVG text.
    """
    css = [
        b
        for b in blocks_of(text)
        if b.get("color", "inherit") not in INHERITED and not {"background"} & b.keys()
    ]
    tags = [
        (a.get("fill", "inherit") + ";" + (a.get("style") or ""))
        for t, a in Tags(text).tags
        if t == "text"
    ]
    fills = [
        tag for tag in tags if re.search(r"#[0-9a-f]{3}|rgb|\b(black|white)\b", tag, flags=re.I)
    ]
    return css + fills


def test_no_noun_fixes_the_colour_of_its_text_or_fetches_anything(hostile):
    for name, noun in hostile.items():
        text = noun._repr_html_()
        if name != "letter":
            assert not fixed_colours(text), name
            assert not re.search(r"@import|url\((?!#)|\b(?:src|href)=\"(?!#)", text), name
    assert fixed_colours("<p style='color:#111'>a</p>")
    assert fixed_colours("<style>p{color:black}</style>")
    assert fixed_colours('<svg><text fill="#1b1b1b">a</text></svg>')
    assert not fixed_colours("<p style='color:#111;background:#fff'>a</p>")


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("scheme", PAGES)
def test_all_text_can_be_read_on_a_light_and_on_a_dark_page(scheme, chromium, tmp_path):
    table = edfa.load("german")
    blanket = edfa.Blanket(
        "class", {"checking_status": ("savings_status", "employment"), "duration": ()}
    )
    start, answers = (
        {"purpose": "radio/tv", "credit_amount": 7400, "age": 23},
        {"duration": 48, "checking_status": "<0"},
    )
    nouns = every_noun(table, blanket, start, answers)
    background, colour = PAGES[scheme]
    page = chromium.new_context(
        color_scheme=scheme, viewport={"width": 900, "height": 900}
    ).new_page()
    body = "".join(noun._repr_html_() for noun in nouns.values())
    around = f"<!doctype html><style>body{{background:{background};color:{colour}}}</style>"
    page.set_content(around + body)
    assert page.evaluate(CONTRAST) == []
    page.screenshot(path=tmp_path / f"{scheme}.png", full_page=True)
    page.set_content(
        around + "<p style='color:#555'>low on black</p><p style='color:#bbb'>low on white</p>"
    )
    assert page.evaluate(CONTRAST) == [f"low on {'black' if scheme == 'dark' else 'white'}"]
    page.context.close()


def test_black_and_white_of_a_figure_are_those_of_the_page():
    from edfa.text import html

    def draw(ax):
        ax.plot([0, 1], [0, 1], "o-", color="black", mfc="white")
        ax.set_title("fill: #000000")

    drawn = str(html.figure(draw, "A line"))
    assert re.sub(r">[^<]*<", "><", drawn).count("#000000") == 0
    assert "#ffffff" not in drawn
    assert "stroke: currentColor" in drawn
    assert ">fill: #000000</text>" in drawn, "a text stays as it is"
