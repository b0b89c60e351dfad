"""Imported by the fork server alone: what every worker would otherwise load for itself."""

import gc
from importlib import import_module

import numba

# Detectors load these late, because a command may do without.
LATE = ("sklearn.covariance", "sklearn.linear_model", "sklearn.utils.extmath", "scipy.spatial.distance")

gc.disable()  # nothing of a library is garbage, and looking for some takes a fifth of the time
for library in ("degem.bench.worker", *LATE):
    import_module(library)
numba.njit("void()")(lambda: None)  # the first compilation fills numba's tables; it starts no threads
gc.freeze()
gc.enable()
