"""The command-line arguments that draw an artifact, from its definition, by kind."""

from shlex import quote

ARGUMENTS = {
    "partition": lambda d: (
        f"{d['dataset']} {quote(d['scheme'])} --clients {d['clients']} --local-validation {d['local_validation']}"
    ),
    "participation": lambda d: (
        f"--clients {d['clients']} --ratio {d['ratio']} --rounds {d['rounds']} --cohorts {d.get('cohorts', 'drawn')}"
    ),
    "proxy": lambda d: f"{d['dataset']} --per-class {d['per_class']}",
    "init": lambda d: f"{d['model']} --classes {d['classes']}",
}
