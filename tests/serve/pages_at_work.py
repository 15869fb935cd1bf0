"""How a person without a browser reads a page and sends its forms."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from edfa_serve.settings import WebSettings

TRIAL = WebSettings(secure=False, requests_a_minute=100_000)  # plain HTTP on loopback
KEY = "operator-key-for-tests"
LETTERS = replace(
    TRIAL, operator_key=KEY, letter=next(Path(__file__).parents[2].glob("docs/**/letter.toml"))
)
START = {"fact.purpose": "=6:radio/tv", "fact.credit_amount": "2400", "fact.age": "35"}


class Reader(HTMLParser):
    """The forms of a page, each as its address and the values it would send; its text; ids and
    labels.
    """

    def __init__(self, text):
        super().__init__()
        self.forms, self.texts, self.ids, self.labelled, self.inputs = [], [], [], set(), []
        self._select = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "form":
            self.forms.append({"action": values.get("action"), "fields": {}, "buttons": []})
        elif tag == "label":
            self.labelled.add(values["for"])
        elif tag in ("input", "select") and self.forms and values.get("type") != "hidden":
            self.inputs.append(values["id"])
        if tag == "select":
            self._select = values["name"]
        elif tag == "option" and "selected" in values:
            self.forms[-1]["fields"][self._select] = values["value"]
        elif tag == "input" and (values["type"] != "radio" or "checked" in values):
            self.forms[-1]["fields"][values["name"]] = values.get("value", "")
        elif tag == "button" and self.forms:
            self.forms[-1]["buttons"].append((values.get("name"), values.get("value")))

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def read(response):
    return Reader(response.text)


def form_of(response, do):
    """The first form of a page that has a button ``do``, as its address and its fields, the
    button's among them.
    """
    for form in read(response).forms:
        if ("do", do) in form["buttons"]:
            return form["action"], form["fields"] | {"do": do}
    raise AssertionError(f"the page has no button {do!r}")


def send(client, response, do, **fields):
    """Press a button of a page with these fields filled in; ``__`` in a field's name stands for a
    dot.
    """
    action, values = form_of(response, do)
    filled = {name.replace("__", "."): value for name, value in fields.items()}
    return client.post(action, data=values | filled)
