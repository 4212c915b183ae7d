"""Writers: sections in, text out. They know `fedrepro.reports.pages.sections` and nothing of reports."""
