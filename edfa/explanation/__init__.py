"""What can be changed (counterfactual), what would not help yet (semifactual), what is left out
(alterfactual).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
