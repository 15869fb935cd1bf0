"""``python -m edfa``."""

from edfa.cli import app

app()
