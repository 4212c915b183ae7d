"""Pictures of pages that are no figures of a paper. Each module has a function that writes one file."""
