"""Memory of the host, the container, the GPU and /dev/shm."""

from __future__ import annotations

from holdfast.diagnosis.catalogue.recipe import (
    JAX,
    KERAS,
    TORCH,
    Entry,
    Recipe,
    jax,
    keras,
    python,
    shell,
    torch,
    words,
)

SMALLER_STEP = (
    keras("Feed the data in smaller pieces", "model.fit(dataset.batch(16))  # was a larger batch"),
    torch("Feed the data in smaller pieces", "DataLoader(dataset, batch_size=16, num_workers=2)  # was larger"),
    jax("Feed the data in smaller pieces", "for part in jnp.array_split(batch, 4):\n    update(part)"),
    python(
        "Do not hold the whole data set in memory", 'numpy.load("data.npy", mmap_mode="r")  # keeps only what is used'
    ),
)
ACCUMULATE = (
    keras(
        "A smaller batch, with gradients accumulated to the old size",
        "keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)\n# and batch_size // 4",
    ),
    torch(
        "A smaller batch, with gradients accumulated to the old size",
        "(loss / 4).backward()\n# then optimizer.step() and zero_grad() every 4th batch",
    ),
    jax(
        "A smaller batch, with gradients accumulated to the old size",
        "optimizer = optax.MultiSteps(optax.adam(1e-3), every_k_schedule=4)",
    ),
)
# For what `memory_kinds` tells apart.
BY_KIND = (
    Recipe(
        "Keep the cache in a file, or cache before rows get large",
        'dataset.cache("/var/tmp/train-cache")  # was dataset.cache()',
        KERAS,
        when="input",
    ),
    Recipe(
        "Evaluate in smaller batches than you train",
        "model.fit(x, y, validation_batch_size=16)",
        KERAS,
        when="evaluation",
    ),
    Recipe(
        "Evaluate without graphs, in smaller batches",
        "with torch.no_grad():\n    for x, y in DataLoader(held_back, batch_size=16):\n        loss = criterion(model(x), y)",
        TORCH,
        when="evaluation",
    ),
    Recipe(
        "Cut what is longer than most, and put alike lengths together",
        "dataset.map(lambda x, y: (x[:512], y)).bucket_by_sequence_length(\n"
        "    lambda x, y: tf.shape(x)[0], [128, 256, 512], [64, 32, 16, 8])",
        KERAS,
        when="longer",
    ),
    Recipe(
        "Cut what is longer than most, and put alike lengths together",
        "rows = [row[:512] for row in sorted(rows, key=len)]\n"
        "x = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)",
        TORCH,
        when="longer",
    ),
    Recipe(
        "A smaller batch, with gradients accumulated to the old size",
        "keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)\n# and batch_size // 4",
        KERAS,
        when="batch",
    ),
    Recipe(
        "Keep the batch, in pieces that fit",
        "import holdfast\nloss = holdfast.backward(\n    model, lambda x, y: criterion(model(x), y), x, y)",
        TORCH,
        when="batch",
    ),
)
ENTRIES: dict[str, Entry] = {
    "host-memory-exhausted": Entry(
        "The machine ran out of memory",
        "The job needed more RAM than the machine could give. Either an allocation failed, or the kernel killed the process.",
        "The kernel's log names the kill, or the allocation's own error names the host's memory.",
        (*BY_KIND, *SMALLER_STEP, shell("See what else holds memory", "ps -eo pid,rss,comm --sort=-rss | head")),
    ),
    "container-memory-limit": Entry(
        "Killed at the container's memory limit",
        "The machine had room, but the container, job or cgroup this ran in may use no more. Loader workers count too.",
        "The kernel names the cgroup, or the scheduler says that the job's own limit was passed.",
        (
            *BY_KIND,
            words(
                "Raise the limit, if the machine has the memory",
                "docker run --memory=$twice …\n# Slurm: --mem=$twice; Kubernetes: resources.limits.memory",
            ),
            *SMALLER_STEP,
            torch("Fewer loader processes, since each has its own copy", "DataLoader(dataset, num_workers=1)"),
        ),
    ),
    "dataset-in-memory": Entry(
        "The data set does not fit in memory",
        "It is loaded as a whole before training begins, and is larger than what there is. Reading it piece by piece needs no more memory than a batch.",
        "The allocation that failed is in code that loads or converts data, before the first step.",
        (
            keras(
                "Hold the array once: from_tensor_slices and fit(x, y) copy it into TensorFlow",
                "class Rows(keras.utils.PyDataset):\n    def __init__(self, x, y):\n        super().__init__()\n"
                "        self.x, self.y = x, y\n    def __len__(self):\n        return -(-len(self.x) // 32)\n"
                "    def __getitem__(self, i):\n        part = slice(32 * i, 32 * i + 32)\n"
                "        return self.x[part], self.y[part]\nmodel.fit(Rows(x, y))",
                said="TensorFlow copied arrays",
            ),
            python("Open it without loading it", 'x = numpy.load("data.npy", mmap_mode="r")'),
            python(
                "Read a table in pieces", 'for part in pandas.read_csv("data.csv", chunksize=100_000):\n    use(part)'
            ),
            keras(
                "Stream files instead of an array", 'keras.utils.image_dataset_from_directory("images", batch_size=32)'
            ),
            torch(
                "Load one item at a time",
                'class Rows(torch.utils.data.Dataset):\n    def __init__(self, path):\n        self.x = numpy.load(path, mmap_mode="r")\n    def __len__(self):\n        return len(self.x)\n    def __getitem__(self, i):\n        return torch.from_numpy(self.x[i].copy())',
            ),
            python("Half the size by a smaller type", "x = x.astype(numpy.float32)  # numbers are float64 by default"),
        ),
    ),
    "host-memory-leak": Entry(
        "Memory leaks with every step",
        "Something is kept from every step and never let go. The longer it trains, the more it holds, until it is killed.",
        "Resident memory grows in proportion to the steps long after warm-up, and nothing is given back.",
        (
            words("Let go of what is kept there", "$holder  # clear it, or keep only the last few"),
            torch("Keep a number, not the tensor with its graph", "losses.append(loss.item())"),
            torch("Measure without graphs", "with torch.no_grad():\n    validate(model)"),
            keras("Keep a number, not the tensor", "losses.append(float(loss))"),
            keras(
                "Give tensors, not Python numbers, to a tf.function: each number is a trace",
                "train_step(x, tf.constant(rate))  # was train_step(x, rate)",
            ),
            jax("Keep a number, not the array", "losses.append(float(loss))"),
        ),
    ),
    "swap-thrash": Entry(
        "The machine is swapping",
        "The working set is larger than RAM, so pages go to disk and back. Steps take many times as long as they should.",
        "Swap traffic and memory pressure are high while step time goes up and CPU time does not.",
        (*SMALLER_STEP, shell("See what swaps", "vmstat 1 5")),
    ),
    "gpu-memory-exhausted": Entry(
        "The GPU ran out of memory",
        "One step needs more memory than the GPU has free. Batch size, sequence length and image size decide how much a step needs.",
        "The framework's own out-of-memory error, on a card that this process has nearly to itself.",
        (
            *BY_KIND,
            *ACCUMULATE,
            shell("See who holds the card", "nvidia-smi --query-compute-apps=pid,used_memory --format=csv"),
        ),
    ),
    "gpu-memory-fragmented": Entry(
        "GPU memory is in pieces",
        "Enough memory is free, but not in one piece of the size asked for. Batches of changing size cause that.",
        "What is reserved and unused is more than what was asked for.",
        (
            shell(
                "Let the allocator grow its pieces", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py"
            ),
            torch(
                "Pad to a few fixed sizes",
                "length = -(-x.shape[1] // 64) * 64\nx = torch.nn.functional.pad(x, (0, length - x.shape[1]))",
            ),
            shell("Another allocator", "TF_GPU_ALLOCATOR=cuda_malloc_async python train.py", KERAS),
        ),
    ),
    "gpu-memory-held-by-others": Entry(
        "Another process holds the GPU's memory",
        "The card was mostly taken before this run asked for any. A notebook, an earlier run or a colleague may hold it.",
        "The numbers in the error, or what was free at the start, leave no room that this process took itself.",
        (
            shell("See who holds the card", "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"),
            shell("Use another card", "CUDA_VISIBLE_DEVICES=1 python train.py"),
            keras(
                "Take memory as needed, so that two can share a card",
                'for gpu in tf.config.list_physical_devices("GPU"):\n    tf.config.experimental.set_memory_growth(gpu, True)',
            ),
            shell("Do not take it all at once", "XLA_PYTHON_CLIENT_PREALLOCATE=false python train.py", JAX),
        ),
    ),
    "gpu-memory-leak": Entry(
        "GPU memory leaks with every step",
        "Tensors, often with the graph that made them, are kept from every step. The card fills up although each step is small.",
        "Allocated GPU memory grows in proportion to the steps.",
        (
            words("Let go of what is kept there", "$holder  # clear it, or keep only the last few"),
            torch("Keep a number, not the tensor with its graph", "losses.append(loss.item())"),
            torch("Keep results off the card", "outputs.append(output.detach().cpu())"),
            keras("Keep a number, not the tensor", "losses.append(float(loss))"),
            jax("Keep results off the card", "outputs.append(jax.device_get(output))"),
        ),
    ),
    "shared-memory-exhausted": Entry(
        "/dev/shm is full",
        "Loader workers and NCCL hand data over through shared memory, and there is too little of it. Docker gives 64 MB unless told otherwise.",
        "The error names shared memory, or a worker died of a bus error while /dev/shm was full.",
        (
            shell("Give the container more", "docker run --shm-size=8g IMAGE"),
            shell("Make it larger on this machine", "sudo mount -o remount,size=8G /dev/shm"),
            torch("Pass batches another way", 'torch.multiprocessing.set_sharing_strategy("file_system")'),
        ),
    ),
}
