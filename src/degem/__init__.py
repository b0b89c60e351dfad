"""Know which nodes your graph model should not be trusted on."""

from degem.detectors import Detector as Detector
from degem.graph import Graph as Graph
from degem.graph import NodeSet as NodeSet
