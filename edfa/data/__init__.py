"""Tables of people and their schema: what is known about a person, what it costs to ask, and which
outcome is good.

Read first ``schema.py`` (features, target and rules; a card is its TOML file, ``card.py``), then
``table.py`` (rows with a schema, split in three) and ``encode.py`` (the matrix that models read).
Values come in through ``values.py`` (what a cell means), ``read.py`` (files), ``validate_frame``
in ``table.py`` and ``partial.py`` (people of whom not everything is known). ``infer_schema.py``
drafts a card, ``catalog.py`` loads the paper's data sets, ``synthetic.py`` has one with a known
truth.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
