class UserError(Exception):
    """Bad input: one line that names what is wrong and what to do."""
