"""A letter as one HTML page that loads nothing, from templates an operator may edit; and the same
page as a PDF.

``render_letter`` fills the templates, ``print_pdf`` prints the page. The templates are in
``edfa_serve/letters/templates``; those of an operator's own folder go before them. They run in a
sandbox, everything put into them is escaped, and a name they do not know is an error.
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from datetime import date
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jinja2 import ChoiceLoader, FileSystemLoader, PackageLoader, StrictUndefined, TemplateError
from jinja2.exceptions import TemplateNotFound, TemplateSyntaxError
from jinja2.sandbox import SandboxedEnvironment

from edfa.errors import SettingError, UnavailableError, UnreadableError
from edfa.reading import RESOURCES
from edfa.writing import atomic_file
from edfa_serve.letters.words import forbidden_phrase

# 12 CFR 1002.9(b)(1); what follows it there is the name and address of the agency.
ECOA_NOTICE = (
    "The Federal Equal Credit Opportunity Act prohibits creditors from discriminating against "
    "credit applicants on the basis of race, color, religion, national origin, sex, marital "
    "status, age (provided the applicant has the capacity to enter into a binding contract); "
    "because all or part of the applicant's income derives from any public assistance program; or "
    "because the applicant has in good faith exercised any right under the Consumer Credit "
    "Protection Act. The Federal agency that administers compliance with this law concerning this "
    "creditor is"
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-pdf-header-footer",
)
PATIENCE = 120  # seconds that a browser may take
PDF_TIME = re.compile(rb"/(CreationDate|ModDate) \(D:\d{14}")
TAG = re.compile(r"<!--.*?-->|<(style|title)[^>]*>.*?</\1>|<[^>]*>", re.DOTALL)


def render_letter(
    content: Mapping[str, Any], template: str, language: str, own: str = ""
) -> tuple[str, str]:
    """Fill the template of a letter.

    Parameters
    ----------
    content
        What the templates may use, by name; ``kind`` is ``"refusal"`` or ``"request"``.
    template, language
        ``"us"`` or ``"eu"``; ``"en"`` or ``"de"``. Together they name the file:
        ``us.en.html.jinja``.
    own
        A folder of templates that go before those of edfa; empty: none.

    Returns
    -------
    document : str
        The letter as an HTML document.
    digest : str
        The SHA-256 of all templates that it may have come from.

    Raises
    ------
    SettingError
        If a template has a fault or uses a name that is not there, if the notice of the Equal
        Credit Opportunity Act is not word for word in an American refusal, or if the letter says
        what no letter may say.
    """
    name = f"{template}.{language}.html.jinja"
    environment: SandboxedEnvironment = RESOURCES.get(
        ("letter templates", own), lambda: _environment(own)
    )
    try:
        document = environment.get_template(name).render(content, ecoa_notice=ECOA_NOTICE)
    except TemplateNotFound as error:
        raise SettingError(f"there is no template {error}") from None
    except TemplateSyntaxError as error:
        raise SettingError(
            f"the template {error.name}, line {error.lineno}: {error.message}"
        ) from None
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise SettingError(f"the template {name}: {error}".replace("\n", " ")) from None
    text = visible_text(document)
    if template == "us" and content["kind"] == "refusal" and ECOA_NOTICE not in text:
        raise SettingError(
            f"the template {name} has lost the notice that 12 CFR 1002.9(b)(1) asks for: write "
            "{{ ecoa_notice }}, then the agency and its address"
        )
    if said := forbidden_phrase(text, language, certified=bool(content.get("certificate"))):
        raise SettingError(f"the letter says {said} (in a template, letter.toml or the card)")
    return document, _digest(environment)


def visible_text(document: str) -> str:
    """The words of an HTML document on one line, without tags, comments and styles.

    >>> visible_text("<style>p {}</style><p>Dear <b>Kim</b> &amp; Ko,")
    'Dear Kim & Ko,'
    """
    return " ".join(unescape(TAG.sub(" ", document)).split())


def _environment(own: str) -> SandboxedEnvironment:
    """Where templates run; those of the operator's folder are read again when they have changed."""
    if own and not Path(own).is_dir():
        raise UnreadableError(f"letter.toml: templates: there is no folder {own}")
    loaders = [*([FileSystemLoader(own)] if own else []), PackageLoader("edfa_serve.letters")]
    return SandboxedEnvironment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _digest(environment: SandboxedEnvironment) -> str:
    """The SHA-256 of all templates, those of the operator in the place of those of edfa."""
    digest, loader = hashlib.sha256(), environment.loader
    for name in environment.list_templates(filter_func=lambda name: name.endswith(".jinja")):
        source = loader.get_source(environment, name)[0] if loader else ""
        digest.update(f"{name}\0{hashlib.sha256(source.encode()).hexdigest()}\n".encode())
    return digest.hexdigest()


def print_pdf(document: str, path: str | Path, day: date) -> None:
    """Print an HTML document to a PDF with Chromium.

    Parameters
    ----------
    document
        The document.
    path
        Where to write the PDF.
    day
        The time that stands in the file, so that the same letter has the same bytes.

    Raises
    ------
    UnavailableError
        If there is no Chromium on the PATH, or it could not print.
    """
    program = next((place for name in BROWSERS if (place := shutil.which(name))), None)
    if program is None:
        raise UnavailableError(
            "a PDF needs Chromium, and none is on the PATH; write .html and print that"
        )
    with TemporaryDirectory(prefix="edfa-letter-") as folder:
        page, printed = Path(folder) / "letter.html", Path(folder) / "letter.pdf"
        page.write_text(document, encoding="utf-8")
        command = [program, *OPTIONS, f"--user-data-dir={folder}/profile"]
        _run([*command, f"--print-to-pdf={printed}", page.as_uri()])
        if not printed.is_file():
            raise UnavailableError(f"{program} has printed nothing; write .html and print that")
        time = f"D:{day:%Y%m%d}000000".encode()
        content = PDF_TIME.sub(lambda match: b"/" + match[1] + b" (" + time, printed.read_bytes())
    with atomic_file(path) as partial:
        partial.write_bytes(content)


def _run(command: list[str]) -> None:
    """Run a browser; what goes wrong is an UnavailableError."""
    try:
        subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True)
    except subprocess.TimeoutExpired:
        raise UnavailableError(
            f"{command[0]} took more than {PATIENCE} s; write .html and print that"
        ) from None
    except (subprocess.CalledProcessError, OSError) as error:
        raise UnavailableError(
            f"{command[0]} could not print: {error}; write .html and print that"
        ) from None
