from __future__ import annotations

from holdfast.causes.form import CauseRecord, python, rule, says

PICKLE = (
    says(
        "Can't pickle",
        (
            "CPython 3.11.7",
            "PicklingError: Can't pickle <function <lambda> at 0x7f>: attribute lookup <lambda> on __main__ failed",
        ),
    ),
    says("cannot pickle", ("CPython 3.11.7", "TypeError: cannot pickle '_thread.lock' object")),
    says(
        "Can't get local object", ("CPython 3.11.7", "AttributeError: Can't get local object 'main.<locals>.collate'")
    ),
    says("Could not pickle", ("ray ray-0.7.0", "Could not pickle object as excessively deep recursion required.")),
    says(
        "not picklable",
        (
            "torch 2.13.0",
            "Got pickle error when attempting to start a worker Process. This might be because the worker Process arguments are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX platforms to 'forkserver', which requires the worker Process arguments to be picklable. You can also try multiprocessing.set_start_method('fork').",
        ),
    ),
    says(
        "(?:cannot|can't|can not) be pickled",
        (
            "CPython 3.11.7",
            "object: a class that defines __slots__ without defining __getstate__ cannot be pickled with protocol",
        ),
    ),
    says(
        "Pickling an AuthenticationString",
        ("CPython 3.11.7", "TypeError: Pickling an AuthenticationString object is disallowed for security reasons"),
    ),
    says(
        r"Can't get attribute '[\w.]+' on <module '__m(?:p_)?main__'",
        (
            "CPython 3.11.7",
            'Process SpawnPoolWorker-1:\nTraceback (most recent call last):\n  File "/usr/lib/python3.11/multiprocessing/process.py", line 314, in _bootstrap\n    self.run()\n  File "/usr/lib/python3.11/multiprocessing/process.py", line 108, in run\n    self._target(*self._args, **self._kwargs)\n  File "/usr/lib/python3.11/multiprocessing/pool.py", line 114, in worker\n    task = get()\n           ^^^^^\n  File "/usr/lib/python3.11/multiprocessing/queues.py", line 367, in get\n    return _ForkingPickler.loads(res)\n           ^^^^^^^^^^^^^^^^^^^^^^^^^^\nAttributeError: Can\'t get attribute \'load\' on <module \'__mp_main__\' from \'/home/user/train.py\'>',
        ),
    ),
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
            says(
                "Ran out of input",
                (
                    "CPython 3.7 on Windows",
                    'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n  File "C:\\Python37\\lib\\multiprocessing\\spawn.py", line 105, in spawn_main\n    exitcode = _main(fd)\n  File "C:\\Python37\\lib\\multiprocessing\\spawn.py", line 115, in _main\n    self = reduction.pickle.load(from_parent)\nEOFError: Ran out of input',
                ),
            ),
            says(
                "pickle data was truncated",
                (
                    "CPython 3.7 on Windows",
                    'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n  File "C:\\Python37\\lib\\multiprocessing\\spawn.py", line 105, in spawn_main\n    exitcode = _main(fd)\n  File "C:\\Python37\\lib\\multiprocessing\\spawn.py", line 115, in _main\n    self = reduction.pickle.load(from_parent)\n_pickle.UnpicklingError: pickle data was truncated',
                ),
            ),
            frames=r"multiprocessing[/\\]+spawn|reduction\.pickle",
        ),
        rule(
            0.8,
            says(
                "^",
                (
                    "CPython 3.11.7",
                    'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n  File "/usr/lib/python3.11/multiprocessing/spawn.py", line 122, in spawn_main\n    exitcode = _main(fd, parent_sentinel)\n               ^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File "/usr/lib/python3.11/multiprocessing/spawn.py", line 132, in _main\n    self = reduction.pickle.load(from_parent)\n           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nModuleNotFoundError: No module named \'augment\'',
                ),
            ),
            types="AttributeError TypeError ImportError ModuleNotFoundError",
            deepest=r"multiprocessing[/\\]+spawn\.py$",
        ),
        rule(
            0.85,
            says(
                "failed to un-?serialize.{0,120}picklable",
                (
                    "joblib 1.5.3",
                    "A task has failed to un-serialize. Please ensure that the arguments of the function are all picklable.",
                ),
            ),
        ),
    ),
    last_frames=((0.62, r"ForkingPickler\(\w+, protocol\)\.dump"),),
)
