"""What PyTorch says of shapes that do not fit: more than stands well beside the cause's record."""

from __future__ import annotations

from holdfast.causes.form import says

SHAPES_TORCH = (
    says(
        r"mat. and mat2 shapes cannot be multiplied \((?P<a>[\dx]+) and (?P<b>[\dx]+)\)",
        ("torch 2.13.0", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x4 and 5x3)"),
    ),
    says(
        r"size mismatch, (?:m1|get|\[)",
        (
            "torch 1.4",
            "RuntimeError: size mismatch, m1: [32 x 784], m2: [512 x 10] at /pytorch/aten/src/TH/generic/THTensorMath.cpp:41",
        ),
    ),
    says(
        r"The size of tensor a \((?P<x>\d+)\) must match the size of tensor b \((?P<y>\d+)\)",
        (
            "torch 2.13.0",
            "RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
        ),
    ),
    says(
        r"shape '\[.{0,80}\]' is invalid for input of size",
        ("torch 2.13.0", "RuntimeError: shape '[-1, 4]' is invalid for input of size 6"),
    ),
    says(
        "Sizes of tensors must match except in dimension",
        (
            "torch 2.13.0",
            "RuntimeError: Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1 in the list.",
        ),
    ),
    says(
        "stack expects each tensor to be equal size",
        (
            "torch 2.13.0",
            "RuntimeError: stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
        ),
    ),
    says(
        "each element in list of batch should be of equal size",
        ("torch 2.13.0", "RuntimeError: each element in list of batch should be of equal size"),
    ),
    says(
        r"Given (?:groups|transposed)=\d+, (?:weight|expected weight)",
        (
            "torch 2.13.0",
            "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[16, 1, 224, 224] to have 3 channels, but got 1 channels instead",
        ),
    ),
    says(
        r"Expected (?:\dD|\d-dimensional|\d+D|2D or 3D|3D or 4D|4D or 5D|\(?\d?\w* ?3D)[^\n]{0,80}(?:input|tensor|but got|got)",
        (
            "torch 2.13.0",
            "RuntimeError: Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [8, 8]",
        ),
    ),
    says(
        "Expected input batch_size",
        ("torch 2.13.0", "ValueError: Expected input batch_size (32) to match target batch_size (16)."),
    ),
    says(
        "input and target (?:batch|shapes)",
        (
            "cunn 2017-09-06",
            "input and target batch or spatial sizes don't match: target [4 x 224 x 224], input [4 x 21 x 112 x 112]",
        ),
    ),
    says(
        r"input\.size\(-1\) must be equal to input_size",
        ("torch 2.13.0", "RuntimeError: input.size(-1) must be equal to input_size. Expected 5, got 4"),
    ),
    says(
        r"Expected hidden(?:\[\d\])? size",
        ("torch 2.13.0", "RuntimeError: Expected hidden[0] size (1, 2, 3), got [1, 9, 3]"),
    ),
    says(r"input must have \d+ dimensions", ("torch 1.10", "RuntimeError: input must have 3 dimensions, got 4")),
    says(
        r"running_(?:mean|var) should contain \d+ elements",
        ("torch 2.13.0", "RuntimeError: running_mean should contain 5 elements not 4"),
    ),
    says(
        r"weight should contain \d+ elements",
        ("torch 2.13.0", "RuntimeError: weight should contain 32 elements not 64"),
    ),
    says(
        "Given normalized_shape",
        (
            "torch 2.13.0",
            "RuntimeError: Given normalized_shape=[768], expected input with shape [*, 768], but got input of size[8, 128, 512]",
        ),
    ),
    says(
        "only batches of spatial targets supported",
        (
            "torch 2.13.0",
            "RuntimeError: only batches of spatial targets supported (3D tensors) but got targets of dimension: 2",
        ),
    ),
    says(
        "Kernel size can't be greater than actual input size",
        (
            "torch 2.13.0",
            "RuntimeError: Calculated padded input size per channel: (4 x 4). Kernel size: (9 x 9). Kernel size can't be greater than actual input size",
        ),
    ),
    says(
        "Output size is too small",
        (
            "torch 2.13.0",
            "RuntimeError: Given input size: (3x4x4). Calculated output size: (3x0x0). Output size is too small",
        ),
    ),
    says(
        r"expanded size of the tensor \(\d+\) must match",
        (
            "torch 2.13.0",
            "RuntimeError: The expanded size of the tensor (5) must match the existing size (2) at non-singleton dimension 0.  Target sizes: [5, 3].  Tensor sizes: [2, 3]",
        ),
    ),
    says(
        "doesn't match the broadcast shape",
        (
            "numpy 2.4.6",
            "ValueError: non-broadcastable output operand with shape (3,) doesn't match the broadcast shape (2,3)",
        ),
    ),
    says(
        "does not broadcast with previously seen",
        (
            "torch 2.13.0",
            "RuntimeError: einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3",
        ),
    ),
    says(
        "shape mismatch: (?:value|indexing)",
        (
            "numpy 2.4.6",
            "ValueError: shape mismatch: value array of shape (3,5) could not be broadcast to indexing result of shape (2,5)",
        ),
        (
            "torch 2.13.0",
            "RuntimeError: shape mismatch: value tensor of shape [3, 5] cannot be broadcast to indexing result of shape [2, 5]",
        ),
    ),
    says(
        "Trying to create tensor with negative dimension",
        ("torch 2.13.0", "RuntimeError: Trying to create tensor with negative dimension -3: [2, -3]"),
    ),
    says(
        "invalid shape dimension",
        ("torch 2.13.0", "RuntimeError: invalid shape dimension -2 at index 1 of shape [3, -2]"),
    ),
    says(
        r"Target size \(.{0,40}\) must be the same as input size",
        ("torch 2.13.0", "ValueError: Target size (torch.Size([3])) must be the same as input size (torch.Size([2]))"),
    ),
    says(
        "target.{0,20}size.{0,40}different to the input size",
        (
            "torch 2.13.0",
            "ValueError: Using a target size (torch.Size([3])) that is different to the input size (torch.Size([2])) is deprecated. Please ensure they have the same size.",
        ),
    ),
    says(
        "Unable to create tensor, you should probably activate",
        (
            "transformers 5.22.2",
            "ValueError: Unable to create tensor, you should probably activate truncation and/or padding with 'padding=True' 'truncation=True' to have batched tensors with the same length. Perhaps your features (`a` in this case) have excessive nesting (inputs type `list` where type `int` is expected).",
        ),
    ),
    says("resize storage that is not resizable", ("torch 2.13.0", "Trying to resize storage that is not resizable")),
    says(
        "view size is not compatible with input tensor",
        (
            "torch 2.13.0",
            "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
        ),
    ),
    says(
        "inconsistent tensor size",
        (
            "torch 2.13.0",
            "RuntimeError: inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but got 2 and 3 elements respectively",
        ),
    ),
    says("Tensor sizes? must", ("torch 2.13.0", "Tensor size must be a multiple of 4 for b32 permutation")),
    says(
        "tensors? must have same (?:number of dimensions|size|shape)",
        ("torch 2.13.0", "RuntimeError: Tensors must have same number of dimensions: got 2 and 3"),
    ),
    says("matrices expected, got", ("torch 2.13.0", "sspaddmm: Argument #2: matrices expected, got")),
    says(
        r"Dimension out of range \(expected to be in range of",
        ("torch 2.13.0", "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    ),
    says(
        "batch1 and batch2 must have same",
        ("torch 2.13.0", "RuntimeError: batch1 and batch2 must have same number of batches, got 4 and 2"),
    ),
    says(
        "Expected size for first two dimensions of batch2 tensor",
        (
            "torch 2.13.0",
            "RuntimeError: Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4].",
        ),
    ),
    says(
        "The shape of the mask",
        (
            "torch 2.13.0",
            "IndexError: The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [4] at index 0",
        ),
    ),
    says(
        r"shape of the \d+D attn_mask",
        ("torch 2.13.0", "RuntimeError: The shape of the 2D attn_mask is torch.Size([2, 2]), but should be (3, 3)."),
    ),
    says("embed_dim must", ("torch 2.13.0", "AssertionError: embed_dim must be divisible by num_heads")),
    says(
        "was expecting embedding dimension",
        ("torch 2.13.0", "AssertionError: was expecting embedding dimension of 4, but got 5"),
    ),
    says(
        "(?:must|should) be of size",
        ("torch 2.13.0", "RuntimeError: target_lengths must be of size batch_size"),
        ("torch 2.13.0", "RuntimeError: input_lengths must be of size batch_size"),
    ),
    says(
        "operands? do(?:es)? not broadcast",
        (
            "torch 1.9",
            "RuntimeError: einsum(): operands do not broadcast with remapped shapes [original->remapped]: [1, 45]->[1, 1, 45] [6, 45]->[1, 45, 6]",
        ),
    ),
    says(
        r"expects \d+ input\(?s?\)?, but it received",
        (
            "keras 3.15.1",
            'ValueError: Layer "functional_1" expects 2 input(s), but it received 1 input tensors. Inputs received: [<tf.Tensor: shape=(2, 3), dtype=float32>]',
        ),
    ),
    says("selected index k out of range", ("torch 2.13.0", "RuntimeError: selected index k out of range")),
    says("number of dims don't match in permute", ("torch 1.4", "RuntimeError: number of dims don't match in permute")),
)
