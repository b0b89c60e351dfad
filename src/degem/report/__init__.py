"""The HTML pages: the report of a scored graph, and the comparison of two."""

from degem.report.page import write_report as write_report
