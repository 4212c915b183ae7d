"""What the Snakefile imports. None of it loads torch, which takes seconds: that is left to `fedrepro` processes."""
