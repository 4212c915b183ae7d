"""Recipes: method names of papers and the parts that they stand for. A part's own name needs no recipe."""

# name -> the parts it stands for; what a recipe leaves open takes the FedAvg default of its slot.
PRESETS: dict[str, str] = {
    "fedavg": "",
    "igfl_s": "attention",
    "igfl": "igfl_c+attention",
}

# What an open slot means: plain local SGD, weighted mean, server step of length 1, running statistics averaged.
DEFAULTS: dict[str, str] = {"client": "local_sgd", "aggregate": "mean", "server_opt": "server_sgd", "buffers": "mean_buffers"}
