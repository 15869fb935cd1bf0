"""Plots people ask for: for each a function that gives its data, and one that draws them on a
matplotlib axis.

No drawing shows or saves anything, and none touches matplotlib's settings. All can be read in grey.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
