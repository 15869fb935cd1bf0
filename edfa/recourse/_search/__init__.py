"""What several searchers share.

``single_changes.py`` finds and completes changes of one feature, which every plan is made of,
``gradient.py`` follows gradients of differentiable models, and ``invalidation.py`` works out how
often a plan fails if its values are met only roughly.
"""
