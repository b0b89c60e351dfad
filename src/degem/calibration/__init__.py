"""From scores to decisions that can be defended: a wrapper that knows nothing of how a detector works."""

from degem.calibration.conformal import conformal_p_values as conformal_p_values
from degem.calibration.conformal import degree_strata as degree_strata
from degem.calibration.conformal import nodes_needed as nodes_needed
from degem.calibration.conformal import smallest_stratum as smallest_stratum
from degem.calibration.conformal import stratified_p_values as stratified_p_values
from degem.calibration.conformal import threshold as threshold
from degem.calibration.decisions import Decisions as Decisions
from degem.calibration.fdr import OnlineFDR as OnlineFDR
from degem.calibration.fdr import benjamini_hochberg as benjamini_hochberg
from degem.calibration.judged import Judged as Judged
from degem.calibration.judged import ScoreResult as ScoreResult
from degem.calibration.judged import judge as judge
from degem.calibration.nodes import Calibration as Calibration
