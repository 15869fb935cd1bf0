"""Which features matter for an outcome, and in which units: Markov blanket discovery.

Read first ``discovery.py`` (``discover`` and its settings) and ``units.py`` (its result). One
algorithm a file: ``hiton.py``, ``bamb.py``, ``eamb.py``, ``iamb.py``, the last two with the units
of ``split_units.py``. They ask the tests of ``independence.py``, which read counts
(``contingency.py``) or correlations (``correlation_tests.py``) of ``columns.py`` from one of the
``sources``. ``robustness.py`` says how far to trust a blanket.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
