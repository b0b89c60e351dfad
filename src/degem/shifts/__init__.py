"""From a Graph to scenarios with OOD nodes, for benchmarks only. One kind, one file."""

from degem.shifts.arrival import Arrival as Arrival
from degem.shifts.arrival import Growth as Growth
from degem.shifts.arrival_scenarios import load_arrival as load_arrival
from degem.shifts.base import Scenario as Scenario
from degem.shifts.base import Settings as Settings
from degem.shifts.scenarios import load_scenario as load_scenario
