"""The laboratory: labelled failing programs, each with a healthy twin, run under Holdfast and scored."""
