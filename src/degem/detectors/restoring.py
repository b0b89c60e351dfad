"""What a model file holds, held against what its method declares before anything is built of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn

from degem.graph_checks import MAX_LABEL
from degem.model_file import tensor_of
from degem.schema import TableSchema

if TYPE_CHECKING:
    from degem.detectors.base import Detector

Module = TypeVar("Module", bound=nn.Module)


class Stored(BaseModel):
    """What ``model.json`` says of a fitted detector."""

    model_config = ConfigDict(strict=True)

    method: str
    parameters: dict[str, Any]
    num_features: int = Field(ge=1, lt=2**31)
    weighted: bool = False
    feature_names: list[str] | None
    table_schema: TableSchema | None = Field(default=None, alias="schema", strict=False)
    classes: list[Annotated[int, Field(ge=0, le=MAX_LABEL)]]
    class_names: list[str] | None
    num_training_nodes: int = Field(ge=0, lt=2**63)
    history: dict[str, list[float]]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.feature_names is not None and len(self.feature_names) != self.num_features:
            raise ValueError("there must be one name for each feature")
        if sorted(set(self.classes)) != self.classes:
            raise ValueError("classes must be distinct and sorted")
        if self.class_names is not None and self.classes and self.classes[-1] >= len(self.class_names):
            raise ValueError("there must be one name for each class")
        return self


def restored(detector: Detector, make: Callable[[], Module], state: dict[str, Tensor], prefix: str = "") -> Module:
    """A module with the tensors of a model file. It is first made without memory, to see what it would take.

    Arguments:
        detector: The detector that ``make`` belongs to.
        make: Makes the module on ``detector.device``.
        state: The tensors of the file.
        prefix: What the names of the module's tensors begin with.
    """
    device, detector.device = detector.device, "meta"
    try:
        with torch.device("meta"):
            declared = make().state_dict()
    finally:
        detector.device = device
    found = matching(declared, state, prefix)
    module = make()
    module.load_state_dict(found)
    return module.eval()


def matching(declared: dict[str, Tensor], state: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors of a model file for those that a module declares, each of the same type and shape."""
    return {name: tensor_of(state, prefix + name, like.dtype, *like.shape) for name, like in declared.items()}
