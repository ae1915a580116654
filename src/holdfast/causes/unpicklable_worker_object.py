from __future__ import annotations

from holdfast.causes.form import CauseRecord, python, rule

PICKLE = (
    "Can't pickle",
    "cannot pickle",
    "can't pickle",
    "Can't get local object",
    "Could not pickle",
    "not picklable",
    "(?:cannot|can't|can not) be pickled",
    "Pickling an AuthenticationString",
    r"Can't get attribute '[\w.]+' on <module '__m(?:p_)?main__'",
)
CAUSE = CauseRecord(
    id="unpicklable-worker-object",
    family="process",
    title="Something cannot be sent to a worker",
    meaning="Workers get the data set by pickling, and a part of it cannot be pickled. A lambda, a local function, an open file or a lock is the usual one.",
    sure="The message names the object.",
    recipes=(
        python(
            "A named function at the top of the module",
            "def double(x):  # instead of lambda x: 2 * x\n    return 2 * x",
        ),
        python(
            "Open files in the worker",
            'def __getitem__(self, i):\n    if self.file is None:\n        self.file = h5py.File(self.path)\n    return self.file["x"][i]',
        ),
    ),
    exceptions=(
        rule(
            0.93, *PICKLE, frames=r"multiprocessing|popen_|reduction|joblib|concurrent|spawn|ray[/\\]|dill|cloudpickle"
        ),
        rule(0.84, *PICKLE, unless=r"torch\.save|deepcopy"),
        rule(
            0.74,
            "Ran out of input",
            "pickle data was truncated",
            frames=r"multiprocessing[/\\]+spawn|reduction\.pickle",
        ),
        rule(
            0.8,
            "^",
            types="AttributeError TypeError ImportError ModuleNotFoundError",
            deepest=r"multiprocessing[/\\]+spawn\.py$",
        ),
        rule(0.85, "failed to un-?serialize.{0,120}picklable"),
    ),
    last_frames=((0.62, r"ForkingPickler\(\w+, protocol\)\.dump"),),
)
