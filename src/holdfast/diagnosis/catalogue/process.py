"""Processes: how they are started, how they end, and what they are built from."""

from __future__ import annotations

from holdfast.diagnosis.catalogue.recipe import Entry, keras, python, shell, torch, words

STACKS = (
    shell("See where every thread is", "py-spy dump --pid $(pgrep -f train.py | head -n1)".replace("$", "$$")),
    python(
        "Let it tell by itself next time", "import faulthandler\nfaulthandler.dump_traceback_later(600, repeat=True)"
    ),
)
ABSENT = r"No module named '(?:{})[.']"
OTHER_NAMES = {  # modules whose package is called otherwise
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "tensorflow_addons": "tensorflow-addons",
    "torch_geometric": "torch-geometric",
    "pytorch_lightning": "pytorch-lightning",
    "mpl_toolkits": "matplotlib",
}

ENTRIES: dict[str, Entry] = {
    "deadlock": Entry(
        "It is deadlocked",
        "Every thread waits for another one, so nothing runs and nothing will. Locks held across a fork are the usual reason.",
        "No progress, an idle CPU, and stacks that all stand in a lock or a queue.",
        (
            *STACKS,
            torch(
                "Start workers afresh instead of forking",
                'DataLoader(dataset, num_workers=2,\n           multiprocessing_context="spawn")',
            ),
            python("Keep OpenCV's threads out of workers", "cv2.setNumThreads(0)"),
        ),
    ),
    "infinite-loop": Entry(
        "A loop does not end",
        "A thread runs all the time and no step comes to its end. The frames it is in say which loop.",
        "No progress, one core busy, and the same frames in every look.",
        STACKS,
    ),
    "io-stall": Entry(
        "It is blocked on a disk or network file system",
        "A read or write does not return. The process cannot even be killed until the device answers.",
        "Processes in state D, pressure on I/O, and a stack in read or write; the kernel says hung task.",
        (
            shell("See who waits for I/O", "ps -eo pid,stat,wchan:30,comm | grep ' D'"),
            shell("See what the kernel says", "dmesg | grep -iE 'blocked for more|not responding|I/O error'"),
        ),
    ),
    "worker-died": Entry(
        "A worker process died",
        "A helper process of the run ended, and took the run with it. Its own reason stands elsewhere: in its output or in the kernel's log.",
        "The trainer names the worker and how it ended.",
        (
            torch("Run without workers to see its own error", "DataLoader(dataset, num_workers=0)"),
            shell("Was it killed for memory?", "dmesg | grep -iE 'killed process|out of memory' | tail"),
        ),
    ),
    "worker-spawn-unguarded": Entry(
        "Workers start the whole script again",
        "Each new process imports the script, and the script starts training at import. What starts processes has to stand below the main guard.",
        "Python's own message about the bootstrapping phase.",
        (
            python(
                "Put what runs below the guard", 'def main():\n    train()\n\nif __name__ == "__main__":\n    main()'
            ),
        ),
    ),
    "cuda-in-forked-worker": Entry(
        "CUDA was used before the process forked",
        "A forked child cannot use the parent's CUDA. Either the children are started afresh, or CUDA waits until after the fork.",
        "The message itself.",
        (
            torch("Start workers afresh", 'torch.multiprocessing.set_start_method("spawn", force=True)'),
            torch(
                "Keep tensors on the CPU in the data set", 'x = torch.tensor(row)  # .to("cuda") in the training loop'
            ),
        ),
    ),
    "unpicklable-worker-object": Entry(
        "Something cannot be sent to a worker",
        "Workers get the data set by pickling, and a part of it cannot be pickled. A lambda, a local function, an open file or a lock is the usual one.",
        "The message names the object.",
        (
            python(
                "A named function at the top of the module",
                "def double(x):  # instead of lambda x: 2 * x\n    return 2 * x",
            ),
            python(
                "Open files in the worker",
                'def __getitem__(self, i):\n    if self.file is None:\n        self.file = h5py.File(self.path)\n    return self.file["x"][i]',
            ),
        ),
    ),
    "native-crash": Entry(
        "Native code crashed",
        "A library written in C, C++ or CUDA broke; Python had no chance to raise an exception. Mismatched packages and bad memory accesses are the usual reasons.",
        "The signal, and no better explanation of it: no memory limit, no full /dev/shm, no clashing libraries.",
        (
            words("Look at the code it came from", "the innermost Python frame is $frame"),
            shell("Get the Python stack", "python -X faulthandler train.py"),
            shell("Get the native stack", "gdb -batch -ex run -ex bt --args python train.py"),
            shell("Rule out mismatched packages", "pip check"),
        ),
    ),
    "native-library-conflict": Entry(
        "Two native libraries clash",
        "Libraries that were built for each other's other version, or two copies of one, are loaded into the same process. They crash or refuse to work.",
        "The symbol, version or library that the message names.",
        (
            shell("See what does not fit", "pip check; pip list | grep -iE 'torch|tensorflow|numpy|cuda|mkl'"),
            shell(
                "Begin with an environment of its own",
                "python -m venv fresh\n./fresh/bin/pip install -r requirements.txt",
            ),
            shell("One OpenMP only", "conda install nomkl   # or one source, pip or conda, for all"),
        ),
    ),
    "illegal-instruction": Entry(
        "The program uses instructions this CPU does not have",
        "A library was built for a newer CPU than this one. Only another build of it, or another machine, helps.",
        "SIGILL, or the library's own message.",
        (
            shell("See what this CPU can do", "grep -o -m1 -E 'avx512f|avx2|avx|sse4_2' /proc/cpuinfo"),
            shell("Install a build for this CPU", "pip install --force-reinstall --no-binary :all: PACKAGE"),
        ),
    ),
    "dependency-conflict": Entry(
        "Installed packages do not fit each other",
        "A package needs another one that is missing, or in another version. The installation has to be mended, not the script.",
        "The package and versions that the message names.",
        (
            *(
                shell("Install it where the run looks", f"python -m pip install {name}", said=ABSENT.format(module))
                for module, name in OTHER_NAMES.items()
            ),
            shell(
                "Install it where the run looks",
                "python -m pip install $module",
                said=ABSENT.format(r"(?P<module>[a-z]\w*)"),
                unsaid=ABSENT.format("|".join(OTHER_NAMES)),
            ),
            shell("See what does not fit", "pip check"),
            shell(
                "Begin with an environment of its own",
                "python -m venv fresh\n./fresh/bin/pip install -r requirements.txt",
            ),
        ),
    ),
    "api-incompatible": Entry(
        "The script is written for another version of a library",
        "It uses a name or an argument that the installed version does not have. Either the code follows the library, or the library stays at the version the code was written for.",
        "The name that is missing, and the version that is installed.",
        (
            torch(
                "If you trust the file: let it hold more than weights",
                'torch.load("model.pt", weights_only=False)',
                said=r"Weights only load failed",
            ),
            keras(
                "The argument is called learning_rate now",
                "keras.optimizers.Adam(learning_rate=1e-3)",
                said=r"not recognized: \{'lr'",
            ),
            words("Start at your own line", "$frame"),
            shell("See what is installed", "pip list | grep -iE 'torch|tensorflow|keras|jax|numpy|transformers'"),
            shell("Stay at the version it was written for", "pip install 'PACKAGE<NEXT_MAJOR'"),
        ),
    ),
    "unhandled-exception": Entry(
        "The script raised an exception",
        "An error in the script, or in how it uses a library, that nothing handled. The last line of its own in the traceback is where to look.",
        "A traceback that ended the script, and nothing that explains it from outside.",
        (words("Start at your own line", "$frame"),),
    ),
    "device-mismatch": Entry(
        "Tensors are on two devices",
        "One is on the GPU and the other on the CPU, or on another GPU. All that meet in one operation have to be on one.",
        "The two devices in the message.",
        (
            words("Start at your own line", "$frame"),
            torch(
                "Move model and batch to one",
                "device = next(model.parameters()).device\nx, y = x.to(device), y.to(device)",
            ),
            torch("Let the model carry its constants", 'self.register_buffer("mask", mask)'),
            torch("Load a GPU's checkpoint anywhere", 'torch.load("model.pt", map_location="cpu")'),
        ),
    ),
    "autograd-inplace": Entry(
        "A value needed for the gradient was overwritten",
        "An in-place operation changed a tensor that backward still needs. The same without in-place mends it.",
        "The message names the tensor's shape and version.",
        (
            torch("Make a new tensor", "x = x + 1  # was x += 1, x.add_(1) or x[0] = 1"),
            torch("Find the operation", "torch.autograd.set_detect_anomaly(True)"),
        ),
    ),
    "terminated": Entry(
        "Asked to stop",
        "A scheduler, a time limit or a person asked it to stop; nothing was wrong with it. It can go on from its last checkpoint.",
        "The signal or the scheduler's own line, and no error before it.",
        (
            shell(
                "Ask for more time, if a scheduler did it",
                "sbatch --time=24:00:00 job.sh   # or the queue's own option",
            ),
        ),
    ),
    "killed": Entry(
        "Killed by somebody (SIGKILL)",
        "SIGKILL came from a person, a script or a service; the kernel's memory killer was not it. It leaves no message and no sender.",
        "The signal, and no kill for memory in the kernel's counters or log.",
        (
            shell("Find out who", "journalctl --since '10 minutes ago' | grep -iE 'kill|oom|timeout'"),
            words("Ask whoever may do it", "SIGKILL leaves no sender: a scheduler, a supervisor or a colleague"),
        ),
    ),
    "cpu-oversubscribed": Entry(
        "More threads than cores",
        "Threads times processes are far beyond the cores, so they take each other's turn. Fewer are faster.",
        "The run queue and context switches, while every step takes longer.",
        (
            shell("Fewer threads in every library", "OMP_NUM_THREADS=$threads holdfast run python train.py"),
            torch("Fewer threads in each process", "torch.set_num_threads($threads)  # before training"),
            keras("Fewer threads in each process", "tf.config.threading.set_intra_op_parallelism_threads($threads)"),
            torch(
                "One thread in each loader worker, and not more workers than processors",
                "DataLoader(dataset, num_workers=$cores)  # each runs one thread",
            ),
            words("Count them together", "threads of a process × processes should be about the number of cores"),
        ),
    ),
    "interrupted": Entry(
        "Interrupted",
        "Somebody pressed Ctrl-C or sent SIGINT. Nothing was wrong with the run.",
        "KeyboardInterrupt or SIGINT.",
    ),
    "terminal-closed": Entry(
        "The terminal it ran in was closed",
        "The session ended and took the run with it. A run that is to outlive it needs a terminal of its own.",
        "SIGHUP.",
        (shell("Run it where no terminal is needed", "tmux new -s train 'holdfast run python train.py'"),),
    ),
    "machine-went-down": Entry(
        "The machine went down",
        "It rebooted, lost power or froze hard while the run was going. The end of its log from before may say why.",
        "The boot id changed, or the scheduler or kernel says that the node failed.",
        (shell("Look at the end of the boot before", "journalctl -b -1 -e"),),
    ),
}
