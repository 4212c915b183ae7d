"""From a published file to the arrays, partitions, cohorts and proxy splits that every run reads; each is a verified file."""
