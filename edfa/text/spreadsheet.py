"""Words in CSV files that spreadsheets open: none is run as a formula."""

import re

NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
BEGINNING = "[=+@\\t\\r\\n\uff1d\uff0b\uff0d\uff20-]"
UNSAFE = f"^'*{BEGINNING}"
"""The beginning, as a regular expression, of text that gets an apostrophe, unless it is a plain
number.
"""


def safe(text: str) -> str:
    """Text that begins like a formula, with an apostrophe before it; any other text, and plain
    numbers, as they are.

    So that ``restored`` gives every text back, one that has such an apostrophe already gets another
    one.

    >>> safe("=1+1"), safe("-1.5"), safe("good")
    ("'=1+1", '-1.5', 'good')
    """
    return f"'{text}" if re.match(UNSAFE, text) and not re.fullmatch(NUMBER, text) else text


def restored(text: str) -> str:
    """The text that ``safe`` was given.

    >>> restored("'=1+1"), restored("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if re.match(f"'{UNSAFE[1:]}", text) else text
