"""A fitted predictor of any kind in a folder: the name it is saved under, and reading it again."""

from typing import Any

from edfa.artifacts import Folder
from edfa.errors import MismatchError
from edfa.predictors import PREDICTORS
from edfa.predictors.base import Predictor
from edfa.predictors.user_model.model import UserModel

USER_MODEL = "user_model"


def saved_name(predictor: Predictor) -> str:
    """The name under which a fitted predictor is saved: that of its kind in ``PREDICTORS``, or
    ``"user_model"``.
    """
    if isinstance(predictor, UserModel):
        return USER_MODEL
    return PREDICTORS.name_of(type(predictor))


def read_predictor(folder: Folder, name: str, model: Any = None) -> Any:
    """Read the predictor of this saved ``name``.

    ``model`` is a user model that is in no file, passed again; MismatchError if the predictor is
    none.
    """
    if name == USER_MODEL:
        return UserModel.from_folder(folder, model)
    if model is not None:
        raise MismatchError(
            "the model of this advisor is in its folder and is none of your own; pass none"
        )
    kind: Any = PREDICTORS[name]
    return kind.from_folder(folder)
