"""Tests with a cluster, an S3 store and servers on this machine. `make test-cluster` runs them; `make test` leaves them out."""
