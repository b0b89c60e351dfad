"""More graph than one machine holds: the same fits and scores on a Ray cluster."""

from degem.engine.cluster import Ray as Ray
from degem.engine.store import Store as Store
from degem.engine.tables import is_partitioned as is_partitioned
from degem.engine.tables import read_partitioned as read_partitioned
from degem.engine.tables import write_partitioned as write_partitioned
