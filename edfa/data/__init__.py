"""Tables of people and their schema: what is known about a person, what it costs to ask, and which
outcome is good.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
