"""More graph than one machine holds: the same fits and scores on a Ray cluster."""

from degem.engine.cluster import Ray as Ray
from degem.engine.store import Store as Store
