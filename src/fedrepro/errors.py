"""The error for mistakes of the user. Every other exception is a bug and keeps its traceback."""


class UserError(Exception):
    """A mistake that the user can fix. The message is one line: what is wrong, where (file, key, value), what to do."""

    exit_code = 2
