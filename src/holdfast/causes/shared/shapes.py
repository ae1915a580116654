"""What the frameworks say of shapes that do not fit: more than stands well beside the cause's record."""

from __future__ import annotations

from holdfast.causes.form import says

SHAPES_TORCH = (
    says(
        r"mat. and mat2 shapes cannot be multiplied \((?P<a>[\dx]+) and (?P<b>[\dx]+)\)",
        ("torch 2.13.0", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x4 and 5x3)"),
    ),
    says(r"size mismatch, (?:m1|get|\[)", ("torch7 2025-03-31", "size mismatch, m1: dense, m2: dense")),
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
    r"Given (?:groups|transposed)=\d+, (?:weight|expected weight)",
    r"expected input\[.{0,60}\] to have \d+ channels",
    says(
        r"Expected (?:\dD|\d-dimensional|\d+D|2D or 3D|3D or 4D|4D or 5D|\(?\d?\w* ?3D)[^\n]{0,80}(?:input|tensor|but got|got)",
        (
            "torch 2.13.0",
            "RuntimeError: Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [8, 8]",
        ),
    ),
    says("Expected input batch_size", ("torch 2.13.0", "Expected input batch_size (")),
    says(
        "input and target (?:batch|shapes)",
        ("cunn 2017-09-06", "input and target batch or spatial sizes don't match: target dense, input dense"),
    ),
    says("to match target batch_size", ("torch 2.13.0", ") to match target batch_size (")),
    says(
        r"input\.size\(-1\) must be equal to input_size",
        ("torch 2.13.0", "RuntimeError: input.size(-1) must be equal to input_size. Expected 5, got 4"),
    ),
    says(
        r"Expected hidden(?:\[\d\])? size",
        ("torch 2.13.0", "RuntimeError: Expected hidden[0] size (1, 2, 3), got [1, 9, 3]"),
    ),
    says(r"input must have \d+ dimensions", ("torch 2.13.0", "input must have 3 dimensions, got 3")),
    says(
        r"running_(?:mean|var) should contain \d+ elements",
        ("torch 2.13.0", "RuntimeError: running_mean should contain 5 elements not 4"),
    ),
    r"weight should contain \d+ elements",
    "normalized_shape=",
    "Given normalized_shape",
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
            "non-broadcastable operand with shape %S [remapped to %S] doesn't match the broadcast shape %S",
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
            "shape mismatch: value array of shape %S could not be broadcast to indexing result of shape %S",
        ),
    ),
    says("cannot be broadcast to indexing result", ("torch 2.13.0", "cannot be broadcast to indexing result of shape")),
    says(
        "Trying to create tensor with negative dimension",
        ("torch 2.13.0", "Trying to create tensor with negative dimension 3"),
    ),
    "must match the size of dimension",
    "invalid shape dimension",
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
        ("torch 2.13.0", "batch1 and batch2 must have same number of batches, got 3 and 3"),
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
        ("tensorflow 2.21.0", "When padding is a list, it must be of size 3. Received: padding=3 of size 3"),
    ),
    "_lengths? must be",
    "operands? do(?:es)? not broadcast",
    says(
        r"expects \d+ input\(?s?\)?, but it received",
        (
            "keras 3.15.1",
            'ValueError: Layer "dense" expects 3 input(s), but it received 3 input tensors. Inputs received: 3',
        ),
    ),
    "should be divisible by .{0,40}but it is equal to",
    says("selected index k out of range", ("torch 2.13.0", "RuntimeError: selected index k out of range")),
    "number of dims don't match in permute",
)
SHAPES_TF = (
    r"Input \d+(?: of \w+)? (?:of layer|is incompatible with)[^\n]{0,120}(?:is )?incompatible with (?:the )?layer",
    says(
        "is incompatible with (?:the )?layer",
        (
            "keras 3.15.1",
            "Input 3 with name 'dense' of layer 'dense' is incompatible with the layer: expected max_ndim=3, found ndim=3",
        ),
    ),
    says(
        r"Shapes? \(?.{0,60}\)? and \(?.{0,60}\)? (?:are incompatible|must have the same rank)",
        ("tensorflow 2.21.0", "ValueError: Shapes (3,) and (1,) are incompatible"),
    ),
    says(
        r"expected (?:shape|min_ndim|ndim|axis)[^\n]{0,60}(?:found|received|but)",
        ("jax 0.10.2", "Expected shape float32 but got (32, 10)"),
    ),
    r"Error when checking (?:model )?(?:input|target)[^\n]{0,80}expected",
    says(
        r"to have (?:shape|\d+ dimensions?)[^\n]{0,40}but got array",
        (
            "tensorflow 2.21.0",
            "Error when checking 3: expected dense to have shape (32, 10) but got array with shape (32, 10)",
        ),
    ),
    says("Incompatible shapes", ("jax 0.10.2", "TypeError: add got incompatible shapes for broadcasting: (3,), (4,).")),
    says(
        "Matrix size-incompatible",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped____MklMatMul_device_/job:localhost/replica:0/task:0/device:CPU:0}} Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5] [Op:MatMul] name: ",
        ),
    ),
    says(r"In\[0\] mismatch In\[1\]", ("tensorflow 2.21.0", "In[0] mismatch In[1] shape:")),
    says(
        "Dimensions? must be equal, but are",
        (
            "tensorflow 2.21.0",
            "ValueError: Dimensions must be equal, but are 2 and 4 for '{{node add}} = AddV2[T=DT_FLOAT](x, y)' with input shapes: [2,3], [4,5].",
        ),
    ),
    says(
        r"Dimension \d+ in both shapes must be equal",
        (
            "jaxlib 0.10.2",
            "Cannot concatenate arrays that differ in dimensions other than the one being concatenated. Dimension 3 in both shapes must be equal (or compatible): dense vs dense.",
        ),
    ),
    says(
        "Cannot feed value of shape",
        ("tensorflow 2.21.0", "Cannot feed value of shape (32, 10) for Tensor dense, which has shape (32, 10)"),
    ),
    says(
        "Input to reshape is a tensor with",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__Reshape_device_/job:localhost/replica:0/task:0/device:CPU:0}} Input to reshape is a tensor with 6 values, but the requested shape has 8 [Op:Reshape]",
        ),
    ),
    says(
        "Cannot reshape a tensor with",
        ("tensorflow 2.21.0", "Cannot reshape a tensor with 3 elements to shape dense (3 elements)."),
    ),
    "Negative dimension size caused by",
    says(
        "Computed output size would be negative",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped____MklNativeConv2D_device_/job:localhost/replica:0/task:0/device:CPU:0}} Computed output size would be negative: -2 [input_size: 2, effective_filter_size: 5, stride: 1] [Op:Conv2D] name: ",
        ),
    ),
    says(
        "Cannot batch tensors with different shapes",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__IteratorGetNext_output_types_1_device_/job:localhost/replica:0/task:0/device:CPU:0}} Cannot batch tensors with different shapes in component 0. First element had shape [2] and element 1 had shape [3]. [Op:IteratorGetNext] name: ",
        ),
    ),
    says(
        "requires inputs with matching shapes",
        (
            "keras 3.15.1",
            "ValueError: A `Concatenate` layer requires inputs with matching shapes except for the concatenation axis. Received: input_shape=[(2, 3, 1), (2, 4, 1)]",
        ),
    ),
    says("[Rr]equired broadcastable shapes", ("tensorflow 2.21.0", "required broadcastable shapes")),
    says(
        r"Shape must be (?:at least )?rank \d but is rank",
        (
            "tensorflow 2.21.0",
            "ValueError: Shape must be rank 1 but is rank 0 for '{{node EnsureShape}} = EnsureShape[T=DT_INT32, shape=[3]](args_0)' with input shapes: [].",
        ),
    ),
    says("ConcatOp ?: Dimension", ("tensorflow 2.21.0", "_MklConcatOp : Dimensions of inputs should match: shape[0][")),
    says(
        r"must be at least rank \d",
        ("keras 3.15.1", "When passing a dataset to a Keras model, the arrays must be at least rank 1. Received:"),
    ),
    says("Data cardinality is ambiguous", ("tensorflow 2.21.0", "Data cardinality is ambiguous:")),
    says(
        "Make sure all arrays contain the same number of samples",
        ("tensorflow 2.21.0", "Make sure all arrays contain the same number of samples."),
    ),
    says(
        "should have the same number of samples",
        (
            "tensorflow 2.21.0",
            "All sample_weight arrays should have the same number of samples. Got array shapes: (32, 10)",
        ),
    ),
    says(
        "logits and labels must (?:have the same|be (?:the )?same|be broadcastable)",
        ("tensorflow 2.21.0", "logits and labels must have the same first dimension, got logits shape"),
    ),
    says(
        "total size of (?:the tensor|new array) must be unchanged",
        (
            "keras 3.15.1",
            "ValueError: The total size of the tensor must be unchanged. Received: input_shape=(3,), target_shape=(5,)",
        ),
    ),
    says(
        "must be broadcastable",
        (
            "tensorflow 2.21.0",
            "tensorflow/lite/kernels/broadcast_to.cc Output shape must be broadcastable from input shape.",
        ),
    ),
    says(
        "last dimension of the inputs to a? ?`?Dense",
        ("tensorflow 2.21.0", "The last dimension of the inputs to `Dense` should be defined. Found `None`."),
    ),
    "Inputs have incompatible shapes",
    "Inputs to operation .{0,80} must have the same size and shape",
    says(
        "inner dimensions? must match", ("torch 2.13.0", "matmul: inner dimensions must match (k == k2), got 3 and 3")
    ),
    "TensorArray dtype",
    "TypeSpec.{0,60}not compatible",
    says(
        "`generator` yielded an element of shape",
        (
            "tensorflow 2.21.0",
            "TypeError: `generator` yielded an element of shape (32, 10) where an element of shape (32, 10) was expected.",
        ),
    ),
    says(
        "could not broadcast input array",
        ("numpy 2.4.6", "ValueError: could not broadcast input array from shape (3,) into shape (2,)"),
    ),
    says(
        "operands could not be broadcast",
        ("numpy 2.4.6", "ValueError: operands could not be broadcast together with shapes (3,) (4,) "),
    ),
    says(r"not aligned: \d", ("numpy 2.4.6", "ValueError: shapes (2,3) and (2,3) not aligned: 3 (dim 1) != 2 (dim 0)")),
    says(
        "cannot reshape array of size", ("numpy 2.4.6", "ValueError: cannot reshape array of size 6 into shape (4,2)")
    ),
    says("inhomogeneous shape", ("jax 0.10.2", "array has an inhomogeneous shape")),
    says(
        "setting an array element with a sequence",
        ("numpy 2.4.6", "ValueError: setting an array element with a sequence."),
    ),
    says(
        "all the input array dimensions",
        (
            "numpy 2.4.6",
            "ValueError: all the input array dimensions except for the concatenation axis must match exactly, but along dimension 1, the array at index 0 has size 3 and the array at index 1 has size 4",
        ),
    ),
    says(
        "must have same number of dimensions",
        ("torch 2.13.0", "RuntimeError: Tensors must have same number of dimensions: got 2 and 3"),
    ),
    says(
        "mismatch in its core dimension",
        (
            "numpy 2.4.6",
            "ValueError: matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (n?,k),(k,m?)->(n?,m?) (size 4 is different from 3)",
        ),
    ),
    says(
        "inconsistent numbers of samples",
        ("scikit-learn 1.8.0rc1", "Found input variables with inconsistent numbers of samples: dense"),
    ),
    says("Found array with dim", ("scikit-learn 1.8.0rc1", "Found array with dim 3, while dim <= 2 is required3.")),
    says("Expected 2D array, got 1D", ("scikit-learn 1.8.0rc1", "Expected 2D array, got 1D array instead:\narray=")),
)
SHAPES_JAX = (
    says(
        "requires contracting dimensions to have the same shape",
        (
            "jax 0.10.2",
            "TypeError: dot_general requires contracting dimensions to have the same shape, got (3,) and (4,).",
        ),
    ),
    says(
        "incompatible shapes for broadcasting",
        ("jax 0.10.2", "TypeError: add got incompatible shapes for broadcasting: (3,), (4,)."),
    ),
    says(
        "inconsistent sizes for array axes",
        (
            "jax 0.10.2",
            "ValueError: vmap got inconsistent sizes for array axes to be mapped:\n  * one axis had size 2: axis 0 of argument a of type float32[2];\n  * one axis had size 3: axis 0 of argument b of type float32[3]",
        ),
    ),
    "ScopeParamShapeError",
    "Initializer expected to generate shape",
    says(
        "conv_general_dilated (?:lhs|feature)",
        (
            "jax 0.10.2",
            "ValueError: conv_general_dilated lhs feature dimension size divided by feature_group_count must equal the rhs input feature dimension size, but 3 // 1 != 4.",
        ),
    ),
    "requires operand shapes",
    "got shapes .{0,80}(?:must|need)",
    "arrays to concatenate must",
    "tree_?map.{0,60}mismatch",
    says(
        "Cannot concatenate arrays",
        (
            "jax 0.10.2",
            "TypeError: Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: concatenating along dimension 0 for shapes (2, 3), (2, 4).",
        ),
    ),
)
