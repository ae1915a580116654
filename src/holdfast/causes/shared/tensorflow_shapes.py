"""What TensorFlow, NumPy and JAX say of shapes that do not fit: more than stands well beside the cause's record."""

from __future__ import annotations

from holdfast.causes.form import says

SHAPES_TF = (
    says(
        "Shapes used to initialize variables must be fully-defined",
        (
            "keras 3.15.1",
            "ValueError: Shapes used to initialize variables must be fully-defined (no `None` dimensions). Received: shape=(None, 2) for variable path='dense/kernel'",
        ),
    ),
    says(
        "is incompatible with (?:the )?layer",
        (
            "keras 2.11",
            'ValueError: Input 0 of layer "lstm" is incompatible with the layer: its rank is undefined, but the layer requires a defined rank.',
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
    says(
        r"Error when checking (?:model )?(?:input|target)[^\n]{0,120}expected",
        (
            "tensorflow 2.21.0, its old Keras",
            "ValueError: Error when checking model input: the list of Numpy arrays that you are passing to your model is not the size the model expected. Expected to see 2 array(s), for inputs ['input_1', 'input_2'] but instead got the following list of 1 arrays: [array([[0.0195, 0.4213, 0.8231]])]...",
        ),
        (
            "keras 2.2.4",
            "ValueError: Error when checking input: expected dense_1_input to have shape (784,) but got array with shape (28,)",
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
            "tensorflow 2.21.0",
            "ValueError: Dimension 0 in both shapes must be equal, but are 2 and 4. Shapes are [2] and [4]. for '{{node concat}} = ConcatV2[N=2, T=DT_FLOAT, Tidx=DT_INT32](x, y, concat/axis)' with input shapes: [2,3], [4,3], [] and with computed input tensors: input[2] = <1>.",
        ),
    ),
    says(
        "Cannot feed value of shape",
        (
            "tensorflow 2.21.0",
            "ValueError: Cannot feed value of shape (8, 28, 28) for Tensor x:0, which has shape (None, 784)",
        ),
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
        (
            "tensorflow 2.21.0",
            "ValueError: Cannot reshape a tensor with 10 elements to shape [4,3] (12 elements) for '{{node Reshape}} = Reshape[T=DT_FLOAT, Tshape=DT_INT32](x, Reshape/shape)' with input shapes: [10], [2] and with input tensors computed as partial shapes: input[1] = [4,3].",
        ),
    ),
    says(
        "Negative dimension size caused by",
        (
            "tensorflow 2.21.0",
            'ValueError: Negative dimension size caused by subtracting 5 from 2 for \'{{node Conv2D}} = Conv2D[T=DT_FLOAT, data_format="NHWC", dilations=[1, 1, 1, 1], explicit_paddings=[], padding="VALID", strides=[1, 1, 1, 1], use_cudnn_on_gpu=true](x, zeros)\' with input shapes: [?,2,2,3], [5,5,3,8].',
        ),
    ),
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
    says(
        "Data cardinality is ambiguous",
        (
            "keras 3.15.1",
            "ValueError: Data cardinality is ambiguous. Make sure all arrays contain the same number of samples.'x' sizes: 100\n'y' sizes: 90\n",
        ),
    ),
    says(
        "should have the same number of samples",
        (
            "tensorflow 2.21.0",
            "ValueError: All sample_weight arrays should have the same number of samples. Got array shapes: [(100,), (90,)]",
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
    says(
        "Inputs to operation .{0,80} must have the same size and shape",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__AddN_N_2_device_/job:localhost/replica:0/task:0/device:CPU:0}} Inputs to operation AddN of type AddN must have the same size and shape.  Input 0: [2,3] != input 1: [2,4] [Op:AddN] name: ",
        ),
    ),
    says(
        "inner dimensions? must match", ("torch 2.13.0", "matmul: inner dimensions must match (k == k2), got 64 and 32")
    ),
    says(
        "TypeSpec.{0,60}not compatible",
        (
            "tensorflow 2.21.0",
            "TypeError: TypeSpec TensorSpec(shape=(2,), dtype=tf.float32, name=None) is not compatible with <tf.Tensor 'Const:0' shape=() dtype=int32>",
        ),
    ),
    says(
        "`generator` yielded an element of shape",
        (
            "tensorflow 2.21.0",
            "TypeError: `generator` yielded an element of shape (3,) where an element of shape (2,) was expected.",
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
        ("scikit-learn 1.8.0rc1", "ValueError: Found input variables with inconsistent numbers of samples: [100, 90]"),
    ),
    says(
        "Found array with dim",
        ("scikit-learn 1.9.1", "ValueError: Found array with dim 3, while dim <= 2 is required by LogisticRegression."),
    ),
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
    says(
        "ScopeParamShapeError",
        (
            "flax 0.12.8",
            'flax.errors.ScopeParamShapeError: For parameter "kernel" in "/", the given initializer is expected to generate shape (5, 4), but the existing parameter it received has shape (3, 4). (https://flax.readthedocs.io/en/latest/api_reference/flax.errors.html#flax.errors.ScopeParamShapeError)',
        ),
    ),
    says(
        "conv_general_dilated (?:lhs|feature)",
        (
            "jax 0.10.2",
            "ValueError: conv_general_dilated lhs feature dimension size divided by feature_group_count must equal the rhs input feature dimension size, but 3 // 1 != 4.",
        ),
    ),
    says(
        "Cannot concatenate arrays",
        (
            "jax 0.10.2",
            "TypeError: Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: concatenating along dimension 0 for shapes (2, 3), (2, 4).",
        ),
    ),
)
