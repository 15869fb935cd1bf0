"""Array types, by what one element is, and the NaN of encoded facts.

Shapes are said in docstrings: ``(people, features)``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
"""Masks: which features are known, which rows are meant."""
Float32Array = npt.NDArray[np.float32]
"""Encoded facts; NaN: not acquired."""
NAN = np.float32(np.nan)
"""What stands for a fact that is not known, in arrays of encoded facts."""
Float64Array = npt.NDArray[np.float64]
"""Probabilities, costs, scores, risks."""
Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
"""Class codes, person numbers, steps."""
IntArray = npt.NDArray[np.intp]
"""Positions: of rows, features, classes."""
ObjectArray = npt.NDArray[np.object_]
