"""A cluster, an S3 store and servers, really started on this machine. Run by `make test-cluster`; `make test` leaves it out."""
