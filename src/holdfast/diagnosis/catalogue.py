"""Each cause in words, and what to do about it, as commands or code that run today.

`$name` in a recipe is filled from the finding; a recipe that needs what the finding does not know is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from holdfast.vocabulary import Finding, Remedy


@dataclass(frozen=True, slots=True)
class Recipe:
    title: str
    how: str
    framework: str = ""  # "" fits all

    def fill(self, finding: Finding) -> Remedy | None:
        try:
            return Remedy(self.title, Template(self.how).substitute(finding.details))
        except KeyError:
            return None


@dataclass(frozen=True, slots=True)
class Entry:
    title: str
    meaning: str
    recipes: tuple[Recipe, ...]


# Symptoms that a more particular cause explains.
GENERIC = frozenset({"unhandled-exception", "native-crash", "killed", "worker-died"})

# What ends no run by itself, and the endings it explains.
EXPLAINS: dict[str, frozenset[str]] = {
    "host-memory-leak": frozenset({"container-memory-limit", "host-memory-exhausted", "swap-thrash"}),
    "gpu-memory-leak": frozenset({"gpu-memory-exhausted"}),
}

SMALLER_STEP = (
    Recipe("Feed the data in smaller pieces", "model.fit(dataset.batch(16))  # was a larger batch", "tensorflow"),
    Recipe(
        "Feed the data in smaller pieces", "DataLoader(dataset, batch_size=16, num_workers=2)  # was larger", "torch"
    ),
    Recipe(
        "Do not hold the whole data set in memory",
        'numpy.load("data.npy", mmap_mode="r")  # keeps only what is used',
    ),
)

CATALOGUE: dict[str, Entry] = {
    "host-memory-exhausted": Entry(
        "The machine ran out of memory",
        "The job needed more RAM than the machine could give.",
        (
            *SMALLER_STEP,
            Recipe("See what else holds memory", "ps -eo pid,rss,comm --sort=-rss | head"),
        ),
    ),
    "container-memory-limit": Entry(
        "Killed at the container's memory limit",
        "The machine had room, but the container, job or cgroup this ran in may use no more.",
        (
            Recipe(
                "Raise the limit, if the machine has the memory",
                "docker run --memory=$twice …\n# Slurm: --mem=$twice; Kubernetes: resources.limits.memory",
            ),
            *SMALLER_STEP,
            Recipe(
                "Fewer loader processes, since each has its own copy", "DataLoader(dataset, num_workers=1)", "torch"
            ),
        ),
    ),
    "host-memory-leak": Entry(
        "Memory leaks with every step",
        "Something is kept from every step and never let go.",
        (
            Recipe("Let go of what is kept there", "$holder  # clear it, or keep only the last few"),
            Recipe("Keep a number, not the tensor with its graph", "losses.append(loss.item())", "torch"),
            Recipe("Measure without graphs", "with torch.no_grad():\n    validate(model)", "torch"),
            Recipe("Keep a number, not the tensor", "losses.append(float(loss))", "tensorflow"),
            Recipe(
                "Give tensors, not Python numbers, to a tf.function: each number is a trace",
                "train_step(x, tf.constant(rate))  # was train_step(x, rate)",
                "tensorflow",
            ),
        ),
    ),
    "gpu-memory-leak": Entry(
        "GPU memory leaks with every step",
        "Tensors, often with the graph that made them, are kept from every step.",
        (
            Recipe("Let go of what is kept there", "$holder  # clear it, or keep only the last few"),
            Recipe("Keep a number, not the tensor with its graph", "losses.append(loss.item())", "torch"),
            Recipe("Keep results off the card", "outputs.append(output.detach().cpu())", "torch"),
            Recipe("Keep a number, not the tensor", "losses.append(float(loss))", "tensorflow"),
        ),
    ),
    "input-starvation": Entry(
        "Training waits for its data",
        "The model is ready for the next batch long before the batch is.",
        (
            Recipe(
                "Prepare batches in parallel and ahead",
                "DataLoader(dataset, num_workers=4, prefetch_factor=4,\n           persistent_workers=True)",
                "torch",
            ),
            Recipe(
                "Prepare batches in parallel and ahead",
                "dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)\n"
                "dataset = dataset.prefetch(tf.data.AUTOTUNE)",
                "tensorflow",
            ),
            Recipe("Do the costly part once", "dataset = dataset.cache()  # before shuffle and batch", "tensorflow"),
        ),
    ),
    "cpu-oversubscribed": Entry(
        "More threads than processors",
        "Every process starts as many threads as it sees processors; together they take turns instead of working.",
        (
            Recipe("Fewer threads in each process", "OMP_NUM_THREADS=$threads holdfast run python train.py"),
            Recipe("Fewer threads in each process", "torch.set_num_threads($threads)  # before training", "torch"),
            Recipe(
                "Fewer threads in each process",
                "tf.config.threading.set_intra_op_parallelism_threads($threads)",
                "tensorflow",
            ),
            Recipe(
                "One thread in each loader worker, and not more workers than processors",
                "DataLoader(dataset, num_workers=$cores)  # each runs one thread",
                "torch",
            ),
        ),
    ),
    "data-exhausted": Entry(
        "The data ended before the steps did",
        "Fewer batches came than steps were asked for; the rest was not trained.",
        (
            Recipe("Let the data start over", "dataset = dataset.repeat()", "tensorflow"),
            Recipe("Ask for the steps there are", "model.fit(dataset, epochs=10)  # no steps_per_epoch", "tensorflow"),
            Recipe("Begin again at the end", "for epoch in range(epochs):\n    for batch in loader: ...", "torch"),
        ),
    ),
    "gpu-not-used": Entry(
        "The GPU is not used",
        "The model trains on the CPU although a GPU is there.",
        (
            Recipe("Move model and batches to it", 'model.to("cuda"); x, y = x.to("cuda"), y.to("cuda")', "torch"),
            Recipe("See what the framework can use", 'python -c "import torch; print(torch.cuda.is_available())"'),
            Recipe("Install the build with GPU support", 'pip install "tensorflow[and-cuda]"'),
        ),
    ),
    "swap-thrash": Entry(
        "The machine is swapping",
        "The working set is larger than RAM, so pages go to disk and back.",
        SMALLER_STEP,
    ),
    "gpu-memory-exhausted": Entry(
        "The GPU ran out of memory",
        "One step needs more memory than the GPU has free.",
        (
            Recipe(
                "A smaller batch, with gradients accumulated to the old size",
                "keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)\n# and batch_size // 4",
                "tensorflow",
            ),
            Recipe(
                "A smaller batch, with gradients accumulated to the old size",
                "(loss / 4).backward()\n# then optimizer.step() and zero_grad() every 4th batch",
                "torch",
            ),
            Recipe("See who holds the card", "nvidia-smi --query-compute-apps=pid,used_memory --format=csv"),
        ),
    ),
    "shared-memory-exhausted": Entry(
        "/dev/shm is full",
        "Loader workers hand batches over through shared memory, and there is too little of it.",
        (
            Recipe("Give the container more", "docker run --shm-size=8g …"),
            Recipe("Make it larger on this machine", "sudo mount -o remount,size=8G /dev/shm"),
            Recipe(
                "Pass batches another way",
                'torch.multiprocessing.set_sharing_strategy("file_system")',
                "torch",
            ),
        ),
    ),
    "disk-full": Entry(
        "The disk is full",
        "A file could not be written because no space, quota or inode is left.",
        (
            Recipe("See what fills it", "du -xh --max-depth=2 '$where' | sort -h | tail"),
            Recipe(
                "Keep fewer checkpoints",
                'keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True)',
                "tensorflow",
            ),
            Recipe(
                "Keep fewer checkpoints",
                'torch.save(state, "last.pt.tmp")\nos.replace("last.pt.tmp", "last.pt")  # one file, used again',
                "torch",
            ),
            Recipe("Write elsewhere", "df -h   # then point the output directory at a disk with room"),
        ),
    ),
    "too-many-open-files": Entry(
        "Too many open files",
        "The process reached its limit of open descriptors.",
        (
            Recipe("Close what is opened", "with open(path) as file:  # closes it at the end of the block\n    …"),
            Recipe("Raise the limit for this shell", "ulimit -n 65536"),
            Recipe(
                "Share tensors by file, not by descriptor",
                'torch.multiprocessing.set_sharing_strategy("file_system")',
                "torch",
            ),
        ),
    ),
    "too-many-processes": Entry(
        "No more threads or processes may be started",
        "The user's, the container's or the cgroup's limit on processes and threads is reached.",
        (
            Recipe(
                "Fewer threads",
                "tf.config.threading.set_intra_op_parallelism_threads(4)\n"
                "tf.config.threading.set_inter_op_parallelism_threads(2)",
                "tensorflow",
            ),
            Recipe(
                "Fewer threads and workers", "torch.set_num_threads(4)  # and DataLoader(…, num_workers=2)", "torch"
            ),
            Recipe("Raise the limit", "ulimit -u 65536   # container: docker run --pids-limit=4096 …"),
        ),
    ),
    "missing-file": Entry(
        "A file is not there",
        "The script opened a path that does not exist.",
        (
            Recipe("If it is to be written, make its folder first", 'os.makedirs("$folder", exist_ok=True)'),
            Recipe("If it is to be read, look from the directory the run had", 'ls -l "$path"'),
        ),
    ),
    "worker-died": Entry(
        "A worker process died",
        "A helper process of the run ended, and took the run with it.",
        (Recipe("Run without workers to see its own error", "DataLoader(dataset, num_workers=0)", "torch"),),
    ),
    "native-crash": Entry(
        "Native code crashed",
        "A library written in C, C++ or CUDA broke; Python had no chance to raise an exception.",
        (
            Recipe("Look at the code it came from", "the innermost Python frame is $frame"),
            Recipe("Get the native stack", "gdb -batch -ex run -ex bt --args python train.py"),
            Recipe("Rule out mismatched packages", "pip check"),
        ),
    ),
    "illegal-instruction": Entry(
        "The program uses instructions this CPU does not have",
        "A library was built for a newer CPU than this one.",
        (
            Recipe("See what this CPU can do", "grep -o -m1 -E 'avx512f|avx2|avx|sse4_2' /proc/cpuinfo"),
            Recipe(
                "Install a build for this CPU",
                "pip install --force-reinstall --no-binary :all: PACKAGE",
            ),
        ),
    ),
    "unhandled-exception": Entry(
        "The script raised an exception",
        "An error in the script, or in how it uses a library, that nothing handled.",
        (Recipe("Start at your own line", "$frame"),),
    ),
    "terminated": Entry(
        "Asked to stop",
        "A scheduler, a time limit or a person asked it to stop; nothing was wrong with it.",
        (Recipe("Ask for more time, if a scheduler did it", "sbatch --time=24:00:00 …   # or the queue's own option"),),
    ),
    "interrupted": Entry("Interrupted", "Somebody pressed Ctrl-C or sent SIGINT.", ()),
    "terminal-closed": Entry(
        "The terminal it ran in was closed",
        "The session ended and took the run with it.",
        (Recipe("Run it where no terminal is needed", "tmux new -s train 'holdfast run python train.py'"),),
    ),
    "killed": Entry(
        "Killed by somebody (SIGKILL)",
        "SIGKILL came from a person, a script or a service; the kernel's memory killer was not it.",
        (
            Recipe("Find out who", "journalctl --since '10 minutes ago' | grep -iE 'kill|oom|timeout'"),
            Recipe(
                "Ask whoever may do it",
                "SIGKILL leaves no sender: a scheduler, a supervisor or a colleague",
            ),
        ),
    ),
    "machine-went-down": Entry(
        "The machine went down",
        "It rebooted, lost power or froze hard while the run was going.",
        (Recipe("Look at the end of the boot before", "journalctl -b -1 -e"),),
    ),
    "gpu-overheating": Entry(
        "The GPU is close to its temperature limit",
        "It lowers its clocks to stay below it.",
        (Recipe("Lower the power limit", "sudo nvidia-smi -pl 300"),),
    ),
    "cpu-overheating": Entry(
        "The CPU is close to its temperature limit",
        "It lowers its clocks to stay below it.",
        (Recipe("Use fewer threads", "OMP_NUM_THREADS=4 python train.py"),),
    ),
}


def remedies_for(finding: Finding, framework: str) -> tuple[Remedy, ...]:
    """The recipes for the framework seen; all of them when none was."""
    recipes = CATALOGUE[finding.cause].recipes
    fitting = [recipe for recipe in recipes if not recipe.framework or not framework or recipe.framework == framework]
    return tuple(remedy for recipe in fitting if (remedy := recipe.fill(finding)) is not None)
