from __future__ import annotations

from holdfast.causes.form import CauseRecord, jax, keras, rule, says, torch, words
from holdfast.causes.shared.words import RAISED

WANTS_FLOATS = r"desired output type Long|Found dtype Long but expected|expected scalar type Float but found Long"
DTYPES = (
    says(
        r"expected (?:scalar type|dtype|m1 and m2 to have the same dtype|object of (?:scalar )?type|data type)[^\n]{0,60}(?:but|found|got|!=)",
        ("torch 2.13.0", "RuntimeError: expected scalar type Long but found Float"),
    ),
    says("Expected object of scalar type", ("torch 2.13.0", "Expected object of scalar type Complex")),
    says(
        r"Expected tensor for argument #\d+ '\w+' to have (?:one of the following )?scalar type",
        (
            "torch 2.13.0",
            "RuntimeError: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)",
        ),
    ),
    says(r"Found dtype \w+ but expected", ("torch 2.13.0", "RuntimeError: Found dtype Long but expected Float")),
    says(
        "must have the same dtype",
        ("torch 2.13.0", "RuntimeError: mat1 and mat2 must have the same dtype, but got Double and Float"),
    ),
    says(
        "dtypes? (?:mismatch|do not match)",
        (
            "jax 0.10.2",
            "TypeError: cond branches must have equal output types but they differ.\n\ntrue_fun is narrow at train.py:12\nfalse_fun is same at train.py:13\n\nThe output of true_fun has type bfloat16[5] but the corresponding output of false_fun has type float32[5], so the dtypes do not match.\n\nRevise true_fun and/or false_fun so that all output types match.",
        ),
    ),
    says(
        r"not implemented for '(?:Half|Long|Int|Bool|Byte|BFloat16|Char|Short|Float|Double|Complex\w*|Float8\w*)'",
        ("torch 2.13.0", "NotImplementedError: \"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'"),
    ),
    says(
        "can't be cast to the desired output type",
        ("torch 2.13.0", "RuntimeError: result type Float can't be cast to the desired output type Long"),
    ),
    says(
        r"can't convert np\.ndarray of type numpy\.object",
        (
            "torch 2.13.0",
            "TypeError: can't convert np.ndarray of type numpy.object_. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
        ),
    ),
    says(
        r"Cast \w+ to \w+ is not supported",
        (
            "tensorflow 2.21.0",
            "UnimplementedError: {{function_node __wrapped__Cast_device_/job:localhost/replica:0/task:0/device:CPU:0}} Cast string to float is not supported [Op:Cast] name: ",
        ),
    ),
    says(
        "Failed to convert a NumPy array to a Tensor",
        (
            "tensorflow 2.21.0",
            "ValueError: Failed to convert a NumPy array to a Tensor (Unsupported object type list).",
        ),
    ),
    says(
        r"was expected to be an? \w+ tensor but is an? \w+ tensor",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: cannot compute AddV2 as input #1(zero-based) was expected to be a int32 tensor but is a float tensor [Op:AddV2] name: ",
        ),
    ),
    says(
        "Tensor conversion requested dtype",
        (
            "tensorflow 2.21.0",
            "ValueError: Tensor conversion requested dtype int32 for Tensor with dtype float32: <tf.Tensor: shape=(), dtype=float32, numpy=3.0>",
        ),
    ),
    says(
        "that does not match (?:expected )?type",
        (
            "tensorflow 2.21.0",
            "TypeError: Input 'y' of 'AddV2' Op has type float32 that does not match type int32 of argument 'x'.",
        ),
    ),
    says(
        "not in list of allowed values",
        (
            "tensorflow 2.21.0",
            "TypeError: Value passed to parameter 'logits' has DataType int32 not in list of allowed values: float16, bfloat16, float32, float64",
        ),
    ),
    says(
        r"Expected \w+(?:, \w+)* passed to parameter",
        (
            "tensorflow 2.21.0",
            "TypeError: Expected int32 passed to parameter 'y' of op 'Mul', got 1.5 of type 'float' instead. Error: Expected int32, but got 1.5 of type 'float'.",
        ),
    ),
    says(
        "requires arguments to have (?:equal|the same|same) d?types",
        (
            "jax 0.10.2",
            "TypeError: lax.add requires arguments to have the same dtypes, got float32, int32. (Tip: jnp.add is a similar function that does automatic type promotion on inputs).",
        ),
    ),
    says(
        "must have equal types",
        (
            "jax 0.10.2",
            "TypeError: while_loop body function carry input and carry output must have equal types, but they differ:\n\nThe input carry x has type float32[2] but the corresponding output carry component has type float32[3], so the shapes do not match.\n\nRevise the function so that all output types match the corresponding input types.",
        ),
    ),
    says(
        r"sub-dtype of np\.inexact",
        (
            "jax 0.10.2",
            "TypeError: grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got int32. If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int to True.",
        ),
    ),
    says(
        "do not match.{0,40}dtype",
        (
            "jax 0.10.2",
            "The shapes or dtypes returned by the TensorFlow function do not match the declared output_shape_dtype:\nResult[",
        ),
    ),
    says("Invalid dtype: ", ("keras 3.15.1", "ValueError: Invalid dtype: object")),
    says(
        r"expected type torch\.\w*Tensor but got torch\.",
        ("torch 0.4.1", "RuntimeError: expected type torch.FloatTensor but got torch.LongTensor"),
    ),
    says(
        "only (?:Tensors|tensors) of floating point (?:and complex )?(?:dtype|type) can require gradients",
        ("torch 2.13.0", "RuntimeError: Only Tensors of floating point and complex dtype can require gradients"),
    ),
    says(
        "Can only calculate the mean of floating",
        ("torch 1.8", "RuntimeError: Can only calculate the mean of floating types. Got Long instead."),
    ),
    says(
        "tensors used as indices must be long",
        ("torch 2.13.0", "IndexError: tensors used as indices must be long, int, byte or bool tensors"),
    ),
    says(
        r"Input type \((?:double|float|torch\.\w+|c10::\w+|\w*Tensor|unsigned char|int|long)\b[^)]*\) and (?:weight|bias) type",
        ("torch 2.13.0", "RuntimeError: Input type (long int) and bias type (float) should be the same"),
    ),
    says(
        r"only supports? (?:fp16|bf16|float16|half|fp32)\b.{0,30}(?:data ?type|dtype|input|tensor)",
        ("apex 25.09", "gn only supports half or bfloat16 input and weight"),
    ),
    says(
        "is not a valid JAX type",
        (
            "jax 0.10.2",
            "TypeError: function step at train.py:61 traced for jit returned a value of type <class 'str'>, which is not a valid JAX type",
        ),
    ),
    says(
        r"Cannot convert \S{1,40} to EagerTensor of dtype",
        ("tensorflow 2.21.0", "TypeError: Cannot convert 1.5 to EagerTensor of dtype int32"),
    ),
    says(
        "TensorArray dtype",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: TensorArray dtype is float32 but Op is trying to write dtype int32 ",
        ),
    ),
    says(r"expected np\.ndarray \(got", ("torch 2.13.0", "TypeError: expected np.ndarray (got list)")),
    says(
        "Cannot interpret .{0,40} as a data type",
        ("numpy 2.4.6", "TypeError: Cannot interpret 'tf.float32' as a data type"),
    ),
    says(
        "Attempt to convert a value .{0,120} with an unsupported type",
        (
            "tensorflow 2.21.0",
            "ValueError: Attempt to convert a value (<object object at 0x7f917ca9c580>) with an unsupported type (<class 'object'>) to a Tensor.",
        ),
    ),
)
NUMERIC = r"(?:u?int\d{1,2}|float\d{0,2}|double|half|long|bool|complex\d{0,3}|bfloat16)"
CAUSE = CauseRecord(
    id="dtype-mismatch",
    family="data",
    title="Types do not fit",
    meaning="A tensor is of another number type than the operation takes: float64 instead of float32, text instead of numbers, float instead of class numbers. Converting it once, where the data is read, mends it.",
    sure="The two types in the message.",
    message_in_title=True,
    recipes=(
        torch("This loss wants its labels as floats", "y = y.float()", said=WANTS_FLOATS),
        torch("Convert what meets there", "x = x.$method()  # wanted $type_wanted, found $type_found"),
        words("Start at your own line", "$frame"),
        torch("Convert where the data comes in", "x, y = x.float(), y.long()", unsaid=WANTS_FLOATS),
        keras("Convert where the data comes in", 'x = x.astype("float32")  # or tf.cast(x, tf.float32)'),
        jax("Convert where the data comes in", "x = x.astype(jnp.float32)"),
    ),
    exceptions=(
        rule(
            0.9,
            says(
                "so the d?types do not match",
                (
                    "jax 0.10.2",
                    "TypeError: cond branches must have equal output types but they differ.\n\ntrue_fun is narrow at train.py:12\nfalse_fun is same at train.py:13\n\nThe output of true_fun has type bfloat16[5] but the corresponding output of false_fun has type float32[5], so the dtypes do not match.\n\nRevise true_fun and/or false_fun so that all output types match.",
                ),
            ),
        ),
        rule(
            0.88,
            says(
                "with (?:a bool|two bool) tensors? is not supported",
                (
                    "torch 2.13.0",
                    "RuntimeError: Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
                ),
            ),
            says("too many dimensions 'str'", ("torch 2.13.0", "ValueError: too many dimensions 'str'")),
        ),
        rule(
            0.62,
            says(
                "must have (?:identical|equal|the same) types, (?:got|but)",
                (
                    "jax 0.10.2",
                    "TypeError: while_loop body function carry input and carry output must have equal types, but they differ:\n\nThe input carry x has type float32[2] but the corresponding output carry component has type float32[3], so the shapes do not match.\n\nRevise the function so that all output types match the corresponding input types.",
                ),
            ),
        ),
        # The two sides of a branch or a loop, as JAX prints them.
        rule(
            0.88,
            says(
                r"ShapedArray\((\w+)\[[^\]]{0,60}\][^\n]{0,40}vs\. ShapedArray\((?!\1\[)",
                (
                    "jax 0.4.13",
                    "TypeError: true_fun and false_fun output must have identical types, got\nDIFFERENT ShapedArray(bfloat16[5]) vs. ShapedArray(float32[5]).",
                ),
            ),
        ),
        rule(
            0.9,
            *DTYPES,
            unless=r"type torch\.cuda\.\w+ (?:but|for)|type torch\.\w+ but (?:found|got) type torch\.cuda|\(torch\.(?:cuda\.)\w+\) and weight type \(torch\.(?!cuda)|torch\.FloatTensor\) and weight type \(torch\.cuda",
        ),
        rule(
            0.65,
            says(
                "could not convert string to float",
                ("numpy 2.4.6", "ValueError: could not convert string to float: np.str_('a')"),
            ),
            says("Unable to parse string", ("pandas 3.1.1", "ValueError: Unable to parse string 'n/a?' at position 1")),
            says(
                "invalid literal for int", ("CPython 3.11.7", "ValueError: invalid literal for int() with base 10: 'a'")
            ),
        ),
        rule(
            0.62,
            says(
                "default_collate: batch must contain tensors",
                (
                    "torch 2.13.0",
                    "TypeError: default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneType'>",
                ),
            ),
            says(
                r"(?:should be|must be|expected) (?:an? )?(?:PIL Image|Tensor|ndarray|np\.ndarray)\b.{0,60}(?:got|not|but)\b",
                ("torch 2.13.0", "TypeError: expected np.ndarray (got list)"),
            ),
            types="TypeError",
        ),
        rule(
            0.62,
            says(
                "Attempting to unscale FP16 gradients",
                ("torch 2.13.0", "ValueError: Attempting to unscale FP16 gradients."),
            ),
        ),
        rule(
            0.76,
            says(
                r"[Uu]nsupported d?types?\b",
                (
                    "tensorflow 2.21.0",
                    "ValueError: Attempt to convert a value (<object object at 0x7f917ca9c580>) with an unsupported type (<class 'object'>) to a Tensor.",
                ),
            ),
            says(
                "uniform dtype",
                ("torch 2.13.0", "ValueError: Must flatten tensors with uniform dtype but got float32 and float32"),
            ),
            says(
                "[Ii]nconsistent dtype",
                (
                    "tensorflow 2.21.0",
                    "ValueError: Inconsistent dtype for encoding tensors: <dtype: 'float32'> vs <dtype: 'int32'>",
                ),
            ),
            says(
                r"[Ii]nvalid (?:input |data ?)?(?:d?type)\b.{0,40}(?:[Ee]xpected|[Rr]eceived)",
                (
                    "keras 3.15.1",
                    "TypeError: Invalid input type. Expected `float16`, `float32` or `float64`. Received: input type=float32",
                ),
            ),
            says(
                "float0",
                (
                    "jax 0.10.2",
                    "TypeError: Called multiply with a float0 array. float0s do not support any operations by design because they are not compatible with non-trivial vector spaces. No implicit dtype conversion is done. You can use np.zeros_like(arr, dtype=np.float) to cast a float0 array to a regular zeros array. \nIf you didn't expect to get a float0 you might have accidentally taken a gradient with respect to an integer argument.",
                ),
            ),
            says(
                r"dtype\b.{0,40}not (?:handled|a valid|compatible|convertible)",
                (
                    "jax 0.10.2",
                    "TypeError: Value 'a' with dtype <U1 is not a valid JAX array type. Only arrays of numeric types are supported by JAX.",
                ),
            ),
            says(
                "convertible to a tensor with dtype",
                (
                    "tensorflow 2.21.0",
                    "ValueError: Value [[1, 2], [3]] is not convertible to a tensor with dtype <dtype: 'float32'> and shape (2, 2).",
                ),
            ),
            says(
                "(?:must|should) be (?:of )?(?:an? )?(?:integer|floating.point|numeric|"
                + NUMERIC[3:-1]
                + r")\b.{0,60}(?:got|found|received|\.$)",
                ("jax 0.10.2", "TypeError: index_dtype must be an integer type, but got float32"),
            ),
            types=RAISED + " NotImplementedError",
            unless="argument `?dtype|policy|device|label",
        ),
        rule(
            0.84,
            says(
                r"(?<![\w-])(?:d|data |scalar |tensor )?types? mismatch",
                (
                    "tensorflow 2.21.0",
                    "ValueError: Tensor conversion dtype mismatch. Requested dtype is float32, Tensor has dtype int32: <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>",
                ),
            ),
            unless="device",
        ),
        rule(
            0.8,
            says(
                r"(?:dtype|data ?type|scalar type|tensor type)s?\b.{0,60}(?:mismatch|must match|do(?:es)? not match|differ|not supported|must be|should be|but (?:got|found))",
                (
                    "torch 2.13.0",
                    "RuntimeError: dot : expected both vectors to have same dtype, but found Double and Float",
                ),
            ),
        ),
        rule(
            0.74,
            says(
                r"\b(?:same|equal|matching|different) d?types?\b(?! structure)",
                (
                    "torch 2.13.0",
                    "RuntimeError: dot : expected both vectors to have same dtype, but found Double and Float",
                ),
            ),
            says(
                r"\bd?types? (?:must |should |to )?match\b",
                (
                    "torch 2.13.0",
                    "RuntimeError: Index put requires the source and destination dtypes match, got Float for the destination and Half for the source.",
                ),
            ),
            says(
                "of dtype " + NUMERIC,
                (
                    "tensorflow 2.21.0",
                    "TypeError: Cannot convert 1.5 to EagerTensor of dtype int32",
                ),
            ),
            unless="device|object type",
        ),
        rule(
            0.8,
            says(
                "expected " + NUMERIC + r"\b.{0,40}\b(?:got|found)\b",
                ("tensorflow 2.21.0", "TypeError: Expected int32, but got 1.5 of type 'float'."),
            ),
            types="TypeError",
        ),
    ),
)
