"""The page in a browser: with and without scripts, keyboard alone, on a phone, in German, checked
by axe-core.
"""

import json
import re
from pathlib import Path

import pytest
from pages_at_work import KEY

pytestmark = pytest.mark.browser
ALL = {"duration": 48, "checking_status": "<0"}
AXE = Path(__file__).parent / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def begin(page, age="35"):
    page.goto("/")
    page.select_option("#f3", "=6:radio/tv")
    page.fill("#f4", "2400")
    page.fill("#f12", age)
    page.click("main form button")


def through(page):
    """From the first question to the last, by the buttons."""
    page.fill("#f1", "48")
    page.click("button[value=answer]")
    page.wait_for_url("**/result")
    assert page.locator(".standing.yes .shape").count() == 1
    page.click("button[value=go_on]")
    page.check("#f0")
    page.click("button[value=answer]")
    page.wait_for_url("**/result")


def arrive(page, server, answers, language="en", path="/result"):
    """Come with an interview that has got so far; returns its token."""
    address, service = server
    token, _ = service.begin({"purpose": "radio/tv", "credit_amount": 2400, "age": 35}, language)
    for name, value in answers.items():
        service.act(token, None, "answer", {"facts": {name: value}})
    page.context.add_cookies([{"name": "edfa", "value": token, "url": address}])
    page.goto(path)
    return token


def settled(page):
    """Look again until it is worked out whether the person may act."""
    for _ in range(600):
        if not page.locator(".standing.wait").count():
            return page
        page.wait_for_timeout(100)
        page.reload()
    raise AssertionError("still being worked out")


def fits(page):
    return page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def violations(page):
    """What axe-core finds, as serious or critical; it is put in from outside, which the page's own
    policy forbids.
    """
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found_by_axe = page.evaluate("tags => axe.run(document, {runOnly: tags})", TAGS)["violations"]
    return [
        (each["id"], [node["html"] for node in each["nodes"]])
        for each in found_by_axe
        if each["impact"] in ("serious", "critical")
    ]


def test_an_interview_to_a_plan(open_page, server, advisor):
    page = open_page()
    begin(page)
    assert page.evaluate("document.cookie") == ""
    assert [cookie["name"] for cookie in page.context.cookies()] == ["edfa"]
    through(page)
    assert page.inner_text("h1") == "As far as we know: refused"
    assert settled(page).locator(".standing .shape").count() == 1
    assert page.locator("article.plan").count() == 2
    page.click("text=Choose plan B")
    assert page.locator("article.plan.chosen h3").inner_text().startswith("Plan B")
    page.click("main >> text=My receipt")
    with page.expect_download() as download:
        page.click("text=Download as JSON")
    receipt = Path(download.value.path()).read_text(encoding="utf-8")
    assert advisor.verify(receipt).holds
    assert json.loads(receipt)["chosen"] == json.loads(receipt)["plans"][1]["id"]
    page.click("main >> text=Delete my data")
    page.click("text=Delete everything")
    page.locator("h1:text-is('Your data are deleted')").wait_for(state="attached")
    assert page.context.cookies() == []


@pytest.mark.long
def test_declining_and_back(open_page, server):
    page = open_page()
    arrive(page, server, {}, path="/interview")
    page.click("button[value=decline]")
    page.locator("#f0").wait_for(state="attached")  # the next one
    page.click("button:has-text('Back')")
    page.locator("#f1").wait_for(state="attached")
    page.click("text=Stop here")
    page.locator("h1:has-text('granted')").wait_for(state="attached")
    page.click("text=Answer more questions")
    page.locator("#f1").wait_for(state="attached")


@pytest.mark.long
def test_limits_plan_again_at_once(open_page, server):
    page = open_page()
    arrive(page, server, ALL)
    page.click("#limits summary")
    page.check("#c1-6")
    page.wait_for_selector("text=Planned again: no plan")
    assert page.locator("article.plan").count() == 0
    assert page.locator("#limits[open]").count() == 1
    assert page.evaluate("document.activeElement.id") == "c1-6"
    assert page.locator("#planned").get_attribute("role") == "status"
    page.fill("#c1-low", "many")
    page.press("#c1-low", "Tab")
    page.wait_for_selector(".errors")
    assert page.input_value("#c1-low") == "many"
    page.fill("#c1-low", "")
    page.check("#c1-3")
    page.wait_for_selector(".errors", state="detached")
    assert page.locator("article.plan").count() == 2


def test_what_if_is_live(open_page, server):
    page = open_page()
    token = arrive(page, server, ALL)
    before = server[1].store.read(token).seq
    page.click("text=Try other answers")
    page.fill("#w1", "6")
    page.wait_for_selector("#supposed >> text=granted")
    assert page.evaluate("document.activeElement.id") == "w1"
    assert page.url.endswith("/result")
    assert page.title().startswith("As far as we know")
    page.fill("#w1", "soon")
    page.wait_for_selector("#supposed >> text=please enter a number")
    assert server[1].store.read(token).seq == before


def test_errors_take_the_focus(open_page):
    page = open_page()
    begin(page, age="old")
    assert page.title().startswith("Error:")
    assert page.evaluate("document.activeElement.className") == "errors"
    page.click(".errors a")
    assert page.evaluate("document.activeElement.id") == "f12"
    assert page.input_value("#f12") == "old"


@pytest.mark.long
def test_keyboard_alone(open_page):
    page = open_page()
    page.goto("/")
    press = page.keyboard.press

    def tab_to(selector, most=40):
        for _ in range(most):
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline == "solid", selector
                return
            press("Tab")
        raise AssertionError(f"the Tab key never reaches {selector}")

    press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    press("Enter")
    tab_to("#f3")
    page.keyboard.type("rad")
    tab_to("#f4")
    page.keyboard.type("2400")
    tab_to("#f12")
    page.keyboard.type("35")
    press("Enter")
    page.wait_for_url("**/interview")
    tab_to("#f1")
    page.keyboard.type("48")
    press("Enter")
    page.wait_for_url("**/result")
    tab_to("button[value=go_on]")
    press("Space")
    page.wait_for_url("**/interview")
    tab_to("#f0")
    press("Space")
    tab_to("button[value=answer]")
    press("Enter")
    page.wait_for_url("**/result")
    tab_to("button[value=choose]")
    press("Enter")
    page.wait_for_selector("article.chosen")
    tab_to("#limits summary")
    press("Enter")
    tab_to("#c0-3")
    press("ArrowRight")
    page.wait_for_selector("text=Planned again")
    tab_to("a[href='/receipt']", 80)
    press("Enter")
    page.wait_for_url("**/receipt")


@pytest.mark.long
def test_without_scripts(open_page, advisor):
    page = open_page(java_script_enabled=False)
    begin(page)
    through(page)
    page.click("text=Choose plan A")
    page.click("#limits summary")
    page.check("#c1-5")
    page.click("button[value=apply]")
    assert "Planned again" in page.inner_text("#planned")
    page.click("button[value=remove]")
    page.click("text=Try other answers")
    page.fill("#w1", "6")
    page.click("text=Show")
    assert "granted" in page.inner_text("#supposed")
    page.click("text=Back to my result")
    page.click("button:has-text('Back')")
    page.click("main >> text=My receipt")
    assert advisor.verify(page.locator("pre").text_content()).holds


@pytest.mark.long
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_phone_shows_everything_without_sideways_scrolling(open_page, server, language):
    page = open_page(language, width=360)
    begin(page, age="-")
    assert fits(page)
    arrive(page, server, {}, language, "/interview")
    assert fits(page)
    arrive(page, server, ALL, language)
    assert small_targets(page) == []
    for summary in page.locator("summary").all():
        summary.click()
    assert fits(page)
    for path in ("/what-if", "/receipt"):
        page.goto(path)
        assert fits(page), path
    page.set_viewport_size({"width": 320, "height": 256})  # 1280 by 1024 pixels at 400 %
    page.goto("/result")
    assert fits(page)


@pytest.mark.long
def test_german(open_page, server):
    page = open_page("de")
    begin(page)
    assert "Es bleiben höchstens 2 Fragen" in page.inner_text(".caption")
    arrive(page, server, ALL, "de")
    assert page.get_attribute("html", "lang") == "de"
    assert page.inner_text("h1").startswith("Nach dem, was wir wissen")
    assert "33 von 100" in page.inner_text(".estimate")
    page.click("button:has-text('English')")
    page.locator("h1:has-text('As far as we know')").wait_for(state="attached")
    assert page.url.endswith("/result")


@pytest.mark.long
def test_two_windows(open_page, server):
    page = open_page()
    arrive(page, server, {}, path="/interview")
    other = page.context.new_page()
    other.goto("/interview")
    page.fill("#f1", "48")
    page.click("button[value=answer]")
    other.fill("#f1", "12")
    other.click("button[value=answer]")
    assert "another window" in other.inner_text(".notice")
    assert "48 months" in other.inner_text("main")


def small_targets(page):
    """What can be pressed and is smaller than 24 pixels."""
    return page.evaluate(
        """() => [...document.querySelectorAll('button, a.button, input[type=radio], select, summary')]
            .map(e => [e.textContent.trim(), e.getBoundingClientRect()])
            .filter(([, box]) => box.width && (box.width < 24 || box.height < 24)).map(([text]) => text)"""
    )


@pytest.mark.long
def test_the_printed_receipt_has_no_buttons(open_page, server):
    page = open_page()
    arrive(page, server, ALL, path="/receipt")
    page.emulate_media(media="print")
    assert not page.is_visible("main .button")
    assert not page.is_visible("footer")
    assert page.is_visible("article.plan >> nth=0")
    assert len(page.pdf()) > 5_000


@pytest.mark.long
@pytest.mark.parametrize("language", ["en", "de"])
def test_the_letter_prints(open_page, server, language):
    page = open_page(language)
    token = arrive(page, server, ALL, language)
    page.click("main a[href='/letter']")
    page.wait_for_url("**/letter")
    assert page.get_attribute("html", "lang") == language
    assert server[1].store.read(token).events[-1].kind == "letter"
    page.emulate_media(media="print")
    assert page.locator("button, a, input, form, nav").count() == 0  # nothing to press on paper
    printed = page.pdf(prefer_css_page_size=True)
    pages = re.findall(rb"/Type\s*/Page\b", printed)
    assert printed.startswith(b"%PDF-")
    assert 1 <= len(pages) <= 4
    width, height = (
        float(side) for side in re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", printed)[0]
    )
    assert (round(width), round(height)) == (
        612,
        792,
    )  # letter paper, as the template for the US says


@pytest.mark.long
def test_the_printed_result_has_no_buttons(open_page, server):
    page = open_page()
    arrive(page, server, ALL)
    page.emulate_media(media="print")
    assert [
        button for button in page.locator("main button, main .button").all() if button.is_visible()
    ] == []
    assert page.pdf().startswith(b"%PDF-")


@pytest.mark.long
def test_axe_finds_nothing_serious_on_the_what_if_page_and_the_letter(open_page, server):
    page = open_page(bypass_csp=True)
    arrive(page, server, ALL, path="/what-if")
    bad = {"what-if": violations(page)}
    page.fill("#w1", "6")
    page.click("text=Show")
    page.wait_for_selector("#supposed >> text=granted")
    bad["what-if, then"] = violations(page)
    page.fill("#w1", "soon")
    page.wait_for_selector("#supposed >> text=please enter a number")
    bad["what-if, wrong"] = violations(page)
    page.emulate_media(color_scheme="dark")
    bad["what-if, dark"] = violations(page)
    page.goto("/letter")
    bad["letter"] = violations(page)
    page.set_viewport_size({"width": 360, "height": 800})
    assert fits(page)
    bad["letter, phone"] = violations(page)
    assert {name: each for name, each in bad.items() if each} == {}


@pytest.mark.long
def test_the_operator_decides_and_axe_finds_nothing_serious(open_page, server):
    page = open_page(bypass_csp=True)
    token = arrive(page, server, ALL, path="/result")
    interview = server[1].store.read(token).id
    page.goto("/operator")
    bad = {"key": violations(page)}
    page.fill("#key", KEY)
    page.click("text=Open")
    page.locator("h2:text-is('Letters due')").wait_for()
    bad["view"] = violations(page)
    page.fill("#interview", interview)
    page.click("text=Show its events")
    page.locator("h2:text-is('What was decided')").wait_for()
    bad["interview"] = violations(page)
    page.select_option("#d-action", "refused")
    page.select_option("#d-decided_by", "officer")
    page.fill("#d-officer", "Ms Rivera")
    page.click("text=Record the decision")
    page.locator("[role=alert]").wait_for()
    bad["interview, wrong"] = violations(page)
    page.set_viewport_size({"width": 360, "height": 800})
    assert fits(page)
    page.fill("#d-reasons", "Length of employment: below 1 year")
    page.click("text=Record the decision")
    page.locator("[role=status]").wait_for()
    bad["interview, decided"] = violations(page)
    page.click("text=Write the letter")
    page.locator("text=Length of employment: below 1 year").wait_for()
    assert "Ms Rivera" in page.inner_text("main")
    assert {name: each for name, each in bad.items() if each} == {}


def test_axe_finds_nothing_serious(open_page, server):
    page = open_page(bypass_csp=True)
    page.goto("/")
    bad = {"start": violations(page)}
    begin(page, age="old")
    bad["start, wrong"] = violations(page)
    arrive(page, server, {}, path="/interview")
    bad["number"] = violations(page)
    arrive(page, server, {"duration": 12})
    page.click("button[value=answer]")
    bad["result, asking, wrong"] = violations(page)
    page.goto("/interview")
    bad["radios"] = violations(page)
    arrive(page, server, {"duration": 48})
    page.goto("/receipt")
    bad["receipt"] = violations(page)
    page.goto("/delete")
    bad["delete"] = violations(page)
    assert {name: each for name, each in bad.items() if each} == {}


@pytest.mark.long
def test_axe_finds_nothing_serious_in_the_result(open_page, server):
    page = open_page(bypass_csp=True)
    arrive(page, server, ALL)
    for summary in page.locator("summary").all():
        summary.click()
    page.fill("#w1", "6")
    page.wait_for_selector("#supposed >> text=granted")
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 800})
    assert violations(page) == []


@pytest.mark.long
def test_few_and_small_requests(open_page, server):
    page, answers = open_page(), []
    page.on("requestfinished", lambda request: answers.append(request.sizes()["responseBodySize"]))
    page.goto("/", wait_until="networkidle")
    assert len(answers) <= 3
    assert 0 < sum(answers) <= 60 * 1024
    answers.clear()
    arrive(page, server, ALL)
    page.wait_for_load_state("networkidle")
    fetched = [size for size in answers if size > 0]  # the others were kept by the browser
    assert len(fetched) <= 3
    assert 0 < sum(fetched) <= 60 * 1024
