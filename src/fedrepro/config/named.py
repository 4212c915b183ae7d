"""Whether what papers/<paper>/claims.yaml names is there in the paper's tables."""

from fedrepro.config.claims import check_names, claims_path, load_claims
from fedrepro.config.project import Project


def check_claims(project: Project, paper: str) -> None:
    """UserError for a mistake in the claims of `paper`: a row or a column, say, that the table has not.

    Rows are those of the table and its companions, which a page finds where a budget runs them. A table that there is no file
    for is not looked into: what is claimed of it has not run.
    """
    claims, there = load_claims(project.root, paper), project.table_names()
    names = dict.fromkeys(claim.table for claim in claims if f"{paper}/{claim.table}" in there)
    tables = {name: project.table(paper, name) for name in names}
    whole = {key: one.model_copy(update={"rows": [*one.rows, *one.companions]}) for key, one in tables.items()}
    check_names(claims, whole, claims_path(project.root, paper))
