"""Detectors: one file (or folder) a method. Importing a method registers it; add yours with one line here."""

from degem.detectors.base import Detector as Detector
from degem.detectors.base import Scored as Scored
from degem.detectors.degem import DeGEM as DeGEM
from degem.detectors.energy import Energy as Energy
from degem.detectors.gnnsafe import GNNSafe as GNNSafe
from degem.detectors.msp import MSP as MSP
from degem.detectors.trivial import Degree as Degree
from degem.detectors.trivial import NonZeros as NonZeros
from degem.detectors.trivial import Norm as Norm
