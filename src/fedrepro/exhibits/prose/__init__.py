"""Sentences whose numbers are filled from the evidence; the grammar is `fedrepro.config.prose`."""
