"""The HTML pages: the report of a scored graph, and the comparison of two."""

from degem.report.comparison import write_comparison as write_comparison
from degem.report.page import write_report as write_report
