"""What a client may say of the graph: batches of events, checked when they are read."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

LARGEST = 3e38  # features are float32
NodeId = Annotated[str, Field(min_length=1, max_length=200)]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Features = Annotated[list[Number], Field(min_length=1)]


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AddNode(_Event):
    """A new node. Its edges are events of their own."""

    op: Literal["add_node"]
    id: NodeId
    features: Features


class UpdateNode(_Event):
    """Other features for a node that is there."""

    op: Literal["update_node"]
    id: NodeId
    features: Features


class RemoveNode(_Event):
    """A node goes, and its edges with it."""

    op: Literal["remove_node"]
    id: NodeId


class _Edge(_Event):
    source: NodeId
    target: NodeId

    @model_validator(mode="after")
    def _has_two_ends(self) -> Self:
        if self.source == self.target:
            raise ValueError("an edge joins two nodes")
        return self


class AddEdge(_Edge):
    """An undirected edge, or another weight for one that is there."""

    op: Literal["add_edge"]
    weight: Annotated[float, Field(ge=1e-6, le=1e6)] = 1.0


class RemoveEdge(_Edge):
    """An edge goes."""

    op: Literal["remove_edge"]


# Kinds, for isinstance: a union of types would be made anew for each event.
WITH_FEATURES, COME_OR_GO, OF_EDGES = (AddNode, UpdateNode), (AddNode, RemoveNode), (AddEdge, RemoveEdge)
Event = Annotated[AddNode | UpdateNode | RemoveNode | AddEdge | RemoveEdge, Field(discriminator="op")]


class Batch(BaseModel):
    """Events in their order. Sent again under the same sequence number they count once.

    Arguments:
        client: A name that the client keeps.
        sequence: The client's own number of the batch.
        events: The events.

    Example:
        >>> event = '{"op": "remove_node", "id": "a"}'
        >>> Batch.model_validate_json('{"client": "c", "sequence": 0, "events": [%s]}' % event).events[0]
        RemoveNode(op='remove_node', id='a')
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "example": {
                "client": "ingest-1",
                "sequence": 17,
                "events": [
                    {"op": "add_node", "id": "paper-9001", "features": [0.0, 1.0, 0.5]},
                    {"op": "add_edge", "source": "paper-9001", "target": "paper-12"},
                ],
            }
        },
    )

    client: Annotated[str, Field(min_length=1, max_length=100)]
    sequence: Annotated[int, Field(ge=0, lt=2**62)]
    events: Annotated[list[Event], Field(min_length=1)]
