"""The one error a user may cause; everything else is a bug and keeps its traceback."""


class UserError(Exception):
    """A mistake that the user can mend. The message is one line: what is wrong, where (file, key, value), what to do."""

    exit_code = 2
