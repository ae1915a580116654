"""`holdfast top`: how a run stands, live in a terminal or once as plain text."""
