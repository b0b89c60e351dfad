"""Detectors: one file (or folder) a method. Importing a method registers it; add yours with one line here."""

from degem.detectors.base import Detector as Detector
from degem.detectors.base import Scored as Scored
from degem.detectors.degem import DeGEM as DeGEM
