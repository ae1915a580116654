from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, words

SHADOWED = (
    says(
        r"from '(?P<name>random|string|json|logging|types|typing|queue|signal|copy|enum|token|code|profile|inspect|statistics|torch|tensorflow|keras|numpy|jax|transformers|datasets)' \((?![^)]{0,300}(?:site-packages|dist-packages|lib[/\\]python\d))[^)]{0,300}[/\\](?P=name)\.py\)",
        (
            "CPython 3.11.7",
            "Traceback (most recent call last):\n  File \"/home/user/train.py\", line 1, in <module>\n    import tempfile\n  File \"/usr/lib/python3.11/tempfile.py\", line 45, in <module>\n    from random import Random as _Random\nImportError: cannot import name 'Random' from 'random' (/home/user/random.py)",
        ),
    ),
    says(
        "partially initialized module '(?P<hidden>torch|tensorflow|keras|numpy|jax|transformers|datasets)' has no attribute",
        (
            "CPython 3.11.7",
            "Traceback (most recent call last):\n  File \"/home/user/torch.py\", line 1, in <module>\n    import torch\n  File \"/home/user/torch.py\", line 2, in <module>\n    print(torch.ones(3))\n          ^^^^^^^^^^\nAttributeError: partially initialized module 'torch' has no attribute 'ones' (most likely due to a circular import)",
        ),
    ),
)
CAUSE = CauseRecord(
    id="unhandled-exception",
    family="process",
    title="The script raised an exception",
    meaning="An error in the script, or in how it uses a library, that nothing handled. The last line of its own in the traceback is where to look.",
    sure="A traceback that ended the script, and nothing that explains it from outside.",
    symptom=True,
    recipes=(words("Start at your own line", "$frame"),),
    exceptions=(rule(0.78, *SHADOWED, headline="The script's own $name.py hides the module $name"),),
)
