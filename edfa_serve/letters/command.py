"""``edfa letter``: the letter to somebody who was refused, from a receipt or a saved interview."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from edfa.commands.common import AsJson, Folder, Output, Quiet, load_advisor
from edfa.commands.completion import complete
from edfa.errors import SettingError, UnknownNameError


def letter(
    folder: Folder,
    operator: Annotated[Path, typer.Option(help="What the operator declares: a letter.toml.")],
    out: Annotated[
        Path, typer.Option(help="Where to write the letter: .html, or .pdf through Chromium.")
    ],
    receipt: Annotated[
        Path | None, typer.Option(help="The receipt of the interview; it is verified first.")
    ] = None,
    interview: Annotated[
        Path | None, typer.Option(help="Instead of a receipt: an interview that --keep saved.")
    ] = None,
    case: Annotated[
        Path | None,
        typer.Option(
            help="What concerns this person alone: keys of letter.toml, which go before them."
        ),
    ] = None,
    template: Annotated[
        str,
        typer.Option(
            help="us (Regulation B, FCRA) or eu (GDPR, AI Act).",
            autocompletion=complete("us", "eu"),
        ),
    ] = "us",
    language: Annotated[
        str | None,
        typer.Option(
            help="en or de; by default the interview's.", autocompletion=complete("en", "de")
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="The operator's key file; the receipt must be signed with it."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the letter about a refusal: reasons, facts used, plans, and what the person can do. No
    legal advice.
    """
    from edfa.advice.interview import Interview
    from edfa.advice.receipt import Receipt, read_key
    from edfa.reading import read_text
    from edfa_serve.letters.letter import letter_of_receipt, write_letter
    from edfa_serve.letters.settings import read_operator

    output, kind = Output(as_json, quiet), _check(template, out, receipt, interview, key)
    secret = read_key(key) if key else None
    if receipt is not None:
        handed = Receipt.from_json(read_text(receipt))
        declared = read_operator(operator, language or handed.language, case)
        fitted = load_advisor(folder).fitted
        written = letter_of_receipt(fitted, handed, declared, kind, language=language, key=secret)
    else:
        assert interview is not None  # noqa: S101 - _check has seen to it
        held = Interview.from_json(read_text(interview), load_advisor(folder))
        held = held.copy(language=language)
        written = write_letter(held, read_operator(operator, held.language, case), kind)
    written.write(out)
    output.say(f"letter: {out}", *written.reasons, style="dim")
    output.write_json(letter=out, **written.audit)


def _check(
    template: str, out: Path, receipt: Path | None, interview: Path | None, key: Path | None
) -> Literal["us", "eu"]:
    """Check that the options go together before any work is spent, and return the template."""
    if (receipt is None) == (interview is None):
        raise SettingError("give one of --receipt FILE and --interview FILE")
    if interview is not None and key is not None:
        raise SettingError("--key is for a receipt; an interview is not signed")
    if out.suffix.lower() not in (".html", ".htm", ".pdf"):
        raise SettingError(f"--out {out.name}: a letter is written as .html or .pdf")
    if template == "us":
        return "us"
    if template == "eu":
        return "eu"
    raise UnknownNameError("template", template, ("us", "eu"))
