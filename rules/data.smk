# Data sets: downloaded, verified, and prepared once as arrays with a manifest.

rule data:
    input: FLOW.arrays()
    message: "all data sets are there"

rule arrays:
    output:
        manifest="data/arrays/{dataset}/{shape}/manifest.json",
        arrays=expand("data/arrays/{{dataset}}/{{shape}}/{name}.npy", name=["train_images", "train_labels", "test_images", "test_labels"]),
    log: "logs/arrays/{dataset}-{shape}.log"
    message: "data set {wildcards.dataset} as {wildcards.shape}"
    shell: "fedrepro data {wildcards.dataset} --shape {wildcards.shape} > {log} 2>&1"
