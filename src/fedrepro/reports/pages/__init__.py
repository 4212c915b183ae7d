"""Pages as sections: what stands where. How a section is written is the business of `fedrepro.reports.write`."""
