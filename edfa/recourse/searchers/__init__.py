"""One search algorithm a file, under its paper's name.

``nearest.py`` (the paper's EDFA-default) is read first; ``survival.py`` ranks plans by how likely
they are to hold, ``nice.py``, ``dice.py``, ``probe.py`` and ``cvae.py`` (EDFA-generative) are the
field's. Each is a ``Searcher`` with ``search``; ``SEARCHERS`` in ``edfa.recourse`` names them.
"""
