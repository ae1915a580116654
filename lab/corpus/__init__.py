"""Outputs of programs that were made to fail, each with the cause it was made to fail of, and what `why` says of them."""
