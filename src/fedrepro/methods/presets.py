"""Recipes: names of papers that are made of parts. `fedadam` will be three parts; a part's own name needs no recipe."""

# name -> the parts it stands for; what a recipe leaves open takes the FedAvg default of its slot.
PRESETS: dict[str, str] = {
    "fedavg": "",
}

# What an empty slot means: plain local SGD, weighted mean, server step of length 1.
DEFAULTS: dict[str, str] = {"client": "local_sgd", "aggregate": "mean", "server_opt": "server_sgd"}
