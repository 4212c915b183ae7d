"""Reports: one table of a paper, held against what was measured. Everything here is a function of a plan and its evidence."""
