"""Pictures that pages show beside what a paper's figures ask for: each a function that writes one file, and its name."""
