"""The page of `holdfast serve` and the report: one document, one set of sections, scripts and styles."""
