from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, python, rule, says, shell, torch

NUMPY_INDEX = r"index (?P<index>-?\d+) is out of bounds for axis \d+ with size (?P<size>\d+)"
DEVICE_ASSERT = r"(?i)device-side assert|cuda|vectorized_gather|\.cu:\d"
INDEXES = (
    says("index out of range in self", ("torch 2.13.0", "IndexError: index out of range in self")),
    says(
        r"indices\[[\d,]*\] = (?P<index>-?\d+) is not in \[0, (?P<size>\d+)\)",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__GatherV2_device_/job:localhost/replica:0/task:0/device:CPU:0}} indices[0] = 9 is not in [0, 3) [Op:GatherV2]",
        ),
    ),
    says(
        "srcIndex < srcSelectDimSize",
        (
            "torch 2.4",
            "../aten/src/ATen/native/cuda/Indexing.cu:1292: indexSelectLargeIndex: block: [390,0,0], thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
        ),
    ),
    says(
        r"index out of bounds\"?`? failed",
        (
            "torch 2.3",
            '/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:93: operator(): block: [0,0,0], thread: [28,0,0] Assertion `index >= -sizes[i] && index < sizes[i] && "index out of bounds"` failed.',
        ),
    ),
    says(
        r"(?:index|indices) (?P<i>-?\d+) is out of bounds for dimension \d+ with size (?P<n>\d+)",
        ("torch 2.13.0", "RuntimeError: index 7 is out of bounds for dimension 0 with size 2"),
    ),
    says(
        r"Tried to access index -?\d+ out of table with \d+ rows",
        (
            "torch 1.2",
            "RuntimeError: index out of range: Tried to access index 15701 out of table with 15699 rows. at /pytorch/aten/src/TH/generic/THTensorEvenMoreMath.cpp:237",
        ),
    ),
    says(
        r"indexValue >= 0 && indexValue < [\w.]+\[dim\]`? failed",
        (
            "torch 1.4",
            "/pytorch/aten/src/THC/THCTensorScatterGather.cu:188: void THCudaTensor_scatterFillKernel(TensorInfo<Real, IndexType>, TensorInfo<long, IndexType>, Real, int, IndexType) [with IndexType = unsigned int, Real = float, Dims = -1]: block: [10,0,0], thread: [172,0,0] Assertion `indexValue >= 0 && indexValue < tensor.sizes[dim]` failed.",
        ),
    ),
    says(
        r"index (?P<j>-?\d+) is out of bounds for axis \d+ with size (?P<m>\d+)",
        ("numpy 2.4.6", "IndexError: index 5 is out of bounds for axis 0 with size 2"),
    ),
    says(
        r"slice index -?\d+ of dimension \d+ out of bounds",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__StridedSlice_device_/job:localhost/replica:0/task:0/device:CPU:0}} slice index 5 of dimension 0 out of bounds. [Op:StridedSlice] name: strided_slice/",
        ),
    ),
)
CAUSE = CauseRecord(
    id="index-out-of-range",
    family="data",
    title="An index is beyond the table",
    meaning="A token id or an index is larger than the vocabulary or the dimension. Often the tokenizer has more entries than the embedding, or a sequence is too long for its positions.",
    sure="The largest index against the size, or the assertion's own text.",
    says_more_than=("gpu-illegal-access",),
    message_in_title=True,
    recipes=(
        python(
            "Find those that are beyond the table",
            "print(ids[(ids < -$size) | (ids >= $size)])  # ids start at 0",
            said=NUMPY_INDEX,
        ),
        torch(
            "Enough rows for that id",
            "torch.nn.Embedding($rows, 128)  # ids go up to $index, rows were $size",
            unsaid=NUMPY_INDEX,
        ),
        keras(
            "Enough rows for that id",
            "keras.layers.Embedding($rows, 128)  # ids go up to $index",
            unsaid=NUMPY_INDEX,
        ),
        torch("As many rows as ids", "torch.nn.Embedding(int(ids.max()) + 1, 128)", unsaid=NUMPY_INDEX),
        keras("As many rows as ids", "keras.layers.Embedding(int(ids.max()) + 1, 128)", unsaid=NUMPY_INDEX),
        torch(
            "After adding tokens to a Hugging Face model",
            "model.resize_token_embeddings(len(tokenizer))",
            unsaid=NUMPY_INDEX,
        ),
        shell(
            "Get the real line of a device-side assert",
            "CUDA_LAUNCH_BLOCKING=1 python train.py",
            said=DEVICE_ASSERT,
        ),
    ),
    exceptions=(
        rule(0.93, *INDEXES, unless=r"is out of bounds for axis 1[\s\S]{0,2000}to_categorical"),
        rule(
            0.78,
            says(
                "device-side assert",
                ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: device-side assert triggered"),
            ),
            frames="embedding|index_select|gather",
        ),
        rule(
            0.42,
            says(
                "device-side assert",
                ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: device-side assert triggered"),
            ),
        ),
        rule(
            0.4,
            says("(?:list|string|tuple) index out of range", ("keras 3.15.1", "IndexError: tuple index out of range")),
        ),
        rule(
            0.74,
            says(
                r"(?:index|indices|token ids?|ids?)\b.{0,60}\bout of (?:range|bounds)",
                ("torch 2.13.0", "RuntimeError: index 7 is out of bounds for dimension 0 with size 2"),
            ),
            says(
                r"out of (?:range|bounds)\b.{0,40}(?:index|indices)",
                ("torch 2.13.0", "IndexError: out of range: tried to access index 9 on a tensor of 3 elements."),
            ),
            unless="(?:list|string|tuple|pop) index|range object|iteration index",
        ),
    ),
    lines=(
        rule(
            0.93,
            says(
                "Assertion `?srcIndex < srcSelectDimSize",
                (
                    "torch 2.4",
                    "../aten/src/ATen/native/cuda/Indexing.cu:1292: indexSelectLargeIndex: block: [390,0,0], thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
                ),
            ),
            says(
                r"index out of bounds\"`? failed",
                (
                    "torch 2.8",
                    '/pytorch/aten/src/ATen/native/cuda/IndexKernelUtils.cu:16: vectorized_gather_kernel: block: [968,0,0], thread: [194,0,0] Assertion `ind >=0 && ind < ind_dim_size && "vectorized gather kernel index out of bounds"` failed.',
                ),
            ),
        ),
        rule(
            0.9,
            says(
                r"(?:Indexing|IndexKernel|ScatterGatherKernel|Embedding|IndexingUtils)\w*\.(?:cu|cuh)[^\n]{0,200}Assertion",
                (
                    "torch 2.1",
                    '../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:144: operator(): block: [142,0,0], thread: [40,0,0] Assertion `idx_dim >= 0 && idx_dim < index_size && "index out of bounds"` failed.',
                ),
            ),
        ),
        rule(
            0.9,
            says(
                r"indices\[[\d,]*\] = -?\d+ is not in \[0, \d+\)",
                (
                    "tensorflow 2.21.0",
                    "InvalidArgumentError: {{function_node __wrapped__GatherV2_device_/job:localhost/replica:0/task:0/device:CPU:0}} indices[0] = 9 is not in [0, 3) [Op:GatherV2]",
                ),
            ),
        ),
        rule(
            0.4,
            says(
                "sequence length is longer than the specified maximum sequence length",
                (
                    "transformers 5.22.2",
                    "Token indices sequence length is longer than the specified maximum sequence length for this model (612 > 512). Running this sequence through the model will result in indexing errors",
                ),
            ),
        ),
    ),
    last_frames=((0.56, r"torch\.embedding\(|tok(?:en)?_?emb\w*\(|word_emb\w*\(|\bin embedding\b"),),
)
