"""The value of each setting that neither the command, a paper nor the caller gives. Our choices; needs no schema library."""

from typing import Any

# Plain FedAvg: all clients in every round, one local epoch of SGD, no local validation or proxy samples.
SETTINGS: dict[str, Any] = {
    "dataset": "digits",
    "model": "mlp",
    "partition": "iid",
    "clients": 10,
    "participation": 1.0,
    "local_validation": 0.0,
    "proxy_per_class": 0,
    "proxy_batch_size": 128,
    "normalise": "unit",
    "rounds": 10,
    "local_epochs": 1,
    "batch_size": 64,
    "client_lr": 0.05,
    "client_lr_decay": 1.0,
    "client_momentum": 0.0,
    "keep_client_momentum": False,
    "weight_decay": 0.0,
    "average_last": 1,
}
SOURCE = "default of fedrepro"


# What each setting means, for `fedrepro list settings`; types are those of `fedrepro.engine.spec.RunSpec`.
MEANINGS: dict[str, str] = {
    "dataset": "the data set, see `fedrepro list datasets`",
    "model": "the architecture, see `fedrepro list models`",
    "partition": "which client holds which samples, see `fedrepro list partitions`",
    "clients": "clients in all",
    "participation": "share of the clients that take part in a round, above 0 and at most 1",
    "cohorts": "who takes part: drawn for each round, fixed for all rounds, or late: drawn, and taken after all have trained",
    "local_validation": "share of each client's samples that is held out from its training",
    "corrupted_clients": "share of the clients, drawn at random, that hold two classes with their labels exchanged",
    "local_test": "share of the held-out samples that only tests models on the client's own data",
    "proxy_per_class": "images of each class that the server holds, taken from the test set",
    "proxy": "the server's images: balanced (proxy_per_class of each class), or long_tailed(ratio=10): fewer of later classes",
    "proxy_batch_size": "batch size of the server's training on them",
    "proxy_sampling": "the server's batches of these: shuffled, or balanced: a random class, a random image of it, each time",
    "normalise": "pixels: unit (0 to 1), centred (-1 to 1), or standard (by the training set's mean and deviation)",
    "augment": "random changes of training images: none, flip, crop(padding=4), or several joined by +",
    "rounds": "communication rounds",
    "local_epochs": "epochs of a client's local training in a round",
    "epochs": "local_epochs over the rounds: constant, fewer(every=20, by=1), stage(every=20, factor=0.5); + as in schedule",
    "batch_size": "batch size of clients, at least 1; one above the size of a client's part takes all of it in one step",
    "client_lr": "learning rate of clients in the first round",
    "client_lr_decay": "factor on client_lr after each round, of the schedule exponential",
    "schedule": "client_lr over the rounds: exponential(factor=client_lr_decay), constant, cosine(half=true), "
    "cyclic(period=20, lowest=5e-05), stage(every=20, factor=0.5); phases are joined by +, later ones with start=ROUND",
    "client_momentum": "momentum of the clients' SGD",
    "keep_client_momentum": "whether a client's momentum goes on in its next round",
    "weight_decay": "weight decay of the clients' SGD",
    "products": "precision of matrix products in training: float32, tf32 (GPU only), bf16 (with arithmetic: native)",
    "evaluate_every": "rounds from one evaluation to the next; the last round is always evaluated",
    "evaluate_proxy": "whether the global model is evaluated on the proxy set too",
    "evaluate_train": "whether the global model is evaluated on the clients' training samples too",
    "average_last": "number of last rounds that a table averages over",
}
