"""Imported by the fork server alone: what every worker would otherwise load for itself."""

import contextlib
import gc
from importlib import import_module

import numba

from degem.errors import DegemError

# What detectors and their judge load late, because a command may do without: a fit's time shall not hold it.
LATE = (
    "degem.metrics",
    "degem.nn.encoders_gnn",
    "degem.nn.posterior",
    "scipy.spatial.distance",
    "sklearn.covariance",
    "sklearn.decomposition",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.neighbors",
    "sklearn.utils.extmath",
    "zuko.flows",
)

gc.disable()  # nothing of a library is garbage, and looking for some takes a fifth of the time
for library in ("degem.bench.worker", *LATE):
    with contextlib.suppress(ImportError, DegemError):  # an extra that is not installed
        import_module(library)
with contextlib.suppress(ImportError):  # what runs numba's parallel loops; loading it starts no threads either
    import_module("numba.np.ufunc.omppool")
numba.njit("void()")(lambda: None)  # the first compilation fills numba's tables; it starts no threads
gc.freeze()
gc.enable()
