"""What trainings cost, known from published evidence: hours of a forecast, and what a cluster is asked for. Without torch."""
