"""The one error a user may cause; everything else is a bug and keeps its traceback."""


class UserError(ValueError):
    """A mistake that the user can mend. The message is one line: what is wrong, where (file, key, value), what to do.

    A ValueError, so that pydantic adds the place where a schema's check found it.
    """

    exit_code = 2
