"""What texts mean: one file per family of errors. Types and structure first, words second."""
