"""What can be changed (counterfactual), what would not help yet (semifactual), what is left out
(alterfactual).

Read first ``necessity.py``: ``sweep`` asks a model about every single change of every fact, which
necessity and sufficiency are shares of. ``partition.py`` sorts facts into the three parts by it,
``statements.py`` puts the parts into sentences with values, and ``principal_reasons.py`` names the
reasons of a refusal by exact Shapley values.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
