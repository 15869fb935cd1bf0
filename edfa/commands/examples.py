"""The examples that ``--help`` of each command ends with: what it does, then the line to type."""

from rich.markup import escape

EXAMPLES: dict[str, dict[str, str]] = {
    "": {
        "See it at work": "edfa demo",
        "From a table to an advisor": "edfa fit german --threshold balanced --out advisor",
        "Complete names with the Tab key from now on": "edfa --install-completion",
    },
    "demo": {
        "In the terminal, and as out/demo/report.html": "edfa demo",
        "The report in German": "edfa demo --language de --out demo",
    },
    "schema": {
        "Draft a card, then check what it says is guessed": (
            "edfa schema people.csv --target class --favourable good --out card.toml"
        ),
    },
    "data": {
        "The data sets of the paper": "edfa data",
        "One of them": "edfa data german",
        "A table of your own": "edfa data people.csv --schema card.toml",
        "Write rows to a file": "edfa data german --out people.csv",
    },
    "blanket": {
        "What matters for who repays": "edfa blanket german",
        "All four methods side by side": "edfa blanket adult --compare",
        "A file without a card": "edfa blanket people.csv --target class",
    },
    "fit": {
        "A data set of the paper": "edfa fit german --threshold balanced --out advisor",
        "A table of your own": "edfa fit people.csv --schema card.toml --out advisor",
        "A certificate for each group": "edfa fit adult --cap 10000 --groups sex --out advisor",
        "A user model decides": (
            "edfa fit people.csv --schema card.toml --model model.skops --classes "
            "bad,good --out advisor"
        ),
        "Any other setting": "edfa fit german --config advisor.toml --out advisor",
    },
    "interview": {
        "Ask somebody here": "edfa interview advisor --receipt receipt.json",
        "Answers from a file": "edfa interview advisor --answers person.json --json",
        "Stop, and go on later": "edfa interview advisor --keep interview.json",
        "What must not change": "edfa interview advisor --lock purpose --lock credit_amount",
    },
    "advise": {
        "Everybody in a file": "edfa advise advisor people.csv --out advice.csv",
        "One plan each, with people's own limits": (
            "edfa advise advisor people.parquet --out advice.jsonl --plans 1 --rules-column limits"
        ),
    },
    "certify": {
        "On new people": "edfa certify advisor new-people.csv",
        "Stricter, without saving it": "edfa certify advisor new-people.csv --alpha 0.1 --no-keep",
    },
    "monitor": {
        "Add audits": "edfa monitor advisor audits.csv",
        "The state so far": "edfa monitor advisor",
    },
    "verify": {
        "Replay a receipt": "edfa verify advisor receipt.json",
        "Only if it is signed": "edfa verify advisor receipt.json --key operator.key",
    },
    "letter": {
        "To somebody who was refused": (
            "edfa letter advisor --receipt receipt.json --operator letter.toml --out letter.html"
        ),
        "In German, by EU law": (
            "edfa letter advisor --receipt receipt.json --operator letter.toml "
            "--template eu --language de --out brief.pdf"
        ),
    },
    "serve": {
        "A trial on this machine": "edfa serve advisor --insecure",
        "Behind a proxy that has HTTPS": (
            "edfa serve advisor --proxy 127.0.0.1 --key receipts.key --operator-key "
            "operator.key --workers 4"
        ),
    },
    "study": {
        "A minute's study": "edfa study run smoke",
        "Its tables and figures": "edfa study report smoke",
    },
    "study list": {"What there is": "edfa study list"},
    "study plan": {"How long the paper's study takes": "edfa study plan paper"},
    "study run": {
        "Run, or go on": "edfa study run demo --jobs 2",
        "Some cells, for an hour": (
            'edfa study run paper --only "data=german,policy=edfa" --limit-minutes 60'
        ),
    },
    "study status": {"How far it is, and what failed": "edfa study status demo --errors"},
    "study report": {
        "Tables and figures of what is done": "edfa study report demo --out demo-study"
    },
}
"""By command, what is done by which line; the command that has no name is ``edfa`` itself."""


def show_examples(command: str) -> str:
    """The end of a command's help, in rich's markup."""
    lines = [
        f"[dim]# {escape(what)}[/dim]\n{escape(line)}" for what, line in EXAMPLES[command].items()
    ]
    return "[bold]Examples[/bold]\n\n" + "\n".join(lines)
