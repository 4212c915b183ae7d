"""What follows from plans and evidence: cells, differences of methods, claims. Pure functions of `fedrepro.reports.model`."""
