"""Detectors: one file (or folder) a method. Importing a method registers it; add yours with one line here."""

from degem.detectors.base import Detector as Detector
from degem.detectors.base import Scored as Scored
from degem.detectors.degem import DeGEM as DeGEM
from degem.detectors.energy import Energy as Energy
from degem.detectors.energy_ft import EnergyFT as EnergyFT
from degem.detectors.gkde import GKDE as GKDE
from degem.detectors.gnnsafe import GNNSafe as GNNSafe
from degem.detectors.gnnsafe_pp import GNNSafePP as GNNSafePP
from degem.detectors.gpn import GPN as GPN
from degem.detectors.grasp import GRASP as GRASP
from degem.detectors.jlde import JLDE as JLDE
from degem.detectors.knn import KNN as KNN
from degem.detectors.mahalanobis import Mahalanobis as Mahalanobis
from degem.detectors.msp import MSP as MSP
from degem.detectors.nodesafe import NodeSafe as NodeSafe
from degem.detectors.odin import ODIN as ODIN
from degem.detectors.oe import OE as OE
from degem.detectors.oodgat import OODGAT as OODGAT
from degem.detectors.residualflow import ResidualFlow as ResidualFlow
from degem.detectors.trivial import Degree as Degree
from degem.detectors.trivial import NonZeros as NonZeros
from degem.detectors.trivial import Norm as Norm
