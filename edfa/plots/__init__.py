"""Plots people ask for, drawn on a matplotlib axis: of an interview, its plans, an evaluation, a
blanket. What must be worked out first (why a person was refused, how reliable survival is) has a
function that gives the data. ``plans.py`` is read first; ``axis.py`` has what all plots share. The
risk curve of a certificate is ``certificate.draw``.

No drawing shows or saves anything, and none touches matplotlib's settings. All can be read in grey.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
