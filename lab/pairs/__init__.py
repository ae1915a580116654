"""Small scripts as people post them, each with its mistake and mended: how many are noticed, named right, and left alone once mended.

A `.pair` file is one script: `{{with the mistake|||mended}}` where the two differ, and what is expected in its first line (`nothing` of
a healthy script that only looks odd, which has one side). They were written, with what is expected, before either was run.
"""
