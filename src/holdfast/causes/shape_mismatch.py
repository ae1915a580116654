from __future__ import annotations

from holdfast.causes.form import CauseRecord, jax, keras, rule, says, torch, words
from holdfast.causes.shared.tensorflow_shapes import SHAPES_JAX, SHAPES_TF
from holdfast.causes.shared.torch_shapes import SHAPES_TORCH
from holdfast.causes.shared.words import RAISED

UNEQUAL_ROWS = (
    r"stack expects each tensor|each element in list of batch|Cannot batch tensors|different shapes in component"
)
SAME_WORD = r"(?:must|should|need to|have to|are expected to|expected to)(?: \w+)? (?:be (?:equal|the same|identical|compatible)|match|have (?:the )?(?:same|equal|matching))"
SIZE_WORD = "(?:shapes?|sizes?|dimensions?|dims?|ranks?|lengths?|channels|number of (?:elements|dimensions|features|channels|samples))"
SHAPED = r"(?:\bshapes?\b|\bndims?\b|\bdims?\b|\bdimensions?\b|\w-dimensional\b|\b\d-?D\b|\brank[- ]\d|\brank (?:at least|at most|must|of)\b|\bchannels\b)"
NEEDS = r"(?:\bmust\b|\bshould\b|\bexpect\w*|\brequires?\b|\bsupports? only|\bonly supports?|not compatible|incompatible|mismatch|n[o']t (?:equal|match|agree)|\bdiffer|divisible|ha(?:s|ve) to be|\b[Ii]nvalid\b|\bgot\b|\b[Rr]eceived\b|\bvs\.?(?= )|too (?:small|large|few|many)|not enough|at (?:least|most))"
# What is said of shapes where none of the data is meant.
SET_UP = r"mesh|polymorph|[Ss]harding|world.?size|process group|static|unknown|fully.?defined|(?:must|should) be (?:specified|provided|given|set)|\bfile\b|checkpoint|state.?dict|shared memory|CUDA|cuda:|\bdevices?\b|keyword|not implemented|NotImplemented|label value|between 0 and|constraint|tf\.Tensor\((?:True|False), shape="
CAUSE = CauseRecord(
    id="shape-mismatch",
    family="data",
    title="Shapes do not fit",
    meaning="The model and the data, or two tensors, disagree about a size. The message names both.",
    sure="The two shapes in the message, at the layer or line it names.",
    message_in_title=True,
    recipes=(
        torch("Let the layer take what arrives", "torch.nn.Linear($got, $out)  # was Linear($want, $out)"),
        torch(
            "Let the layer take the channels that arrive",
            "torch.nn.Conv2d($got_channels, $filters, 3)  # it has $want_channels",
        ),
        keras(
            "Give it the features it was built for",
            "x = x.reshape(len(x), $want_features)  # if the rest fits into one",
        ),
        torch(
            "Bring the rows of a batch to one length",
            "def padded(batch):\n    rows, labels = zip(*batch)\n    rows = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)\n    return rows, torch.stack(labels)\n\nDataLoader(dataset, batch_size=32, collate_fn=padded)",
            said=UNEQUAL_ROWS,
        ),
        keras(
            "Bring the rows of a batch to one length",
            "dataset = dataset.padded_batch(32)  # instead of batch(32)",
            said=UNEQUAL_ROWS,
        ),
        torch(
            "Bring one to the other's height and width, then join them",
            "up = torch.nn.functional.interpolate(up, size=skip.shape[2:])\nx = torch.cat([up, skip], dim=1)",
            said=r"Sizes of tensors must match except in dimension 1",
        ),
        words("Start at your own line", "$frame"),
        torch(
            "See what arrives there",
            "print(x.shape, model)  # then set in_features / channels to fit",
            unsaid=UNEQUAL_ROWS,
        ),
        keras("See what the model expects", "print(model.input_shape, x.shape)\nmodel.summary()"),
        jax("See what arrives there", "print(jax.tree.map(jnp.shape, batch))"),
    ),
    exceptions=(
        rule(0.92, *SHAPES_TORCH),
        rule(0.92, *SHAPES_TF),
        rule(0.92, *SHAPES_JAX),
        rule(
            0.9,
            says(
                "so the shapes do not match",
                (
                    "jax 0.10.2",
                    "TypeError: while_loop body function carry input and carry output must have equal types, but they differ:\n\nThe input carry x has type float32[2] but the corresponding output carry component has type float32[3], so the shapes do not match.\n\nRevise the function so that all output types match the corresponding input types.",
                ),
            ),
        ),
        rule(
            0.86,
            says(
                r"ShapedArray\((\w+)\[([^\]]{0,60})\][^\n]{0,40}vs\. ShapedArray\(\1\[(?!\2\])",
                (
                    "jax 0.4.13",
                    "TypeError: true_fun and false_fun output must have identical types, got\nDIFFERENT ShapedArray(float32[5]) vs. ShapedArray(float32[6]).",
                ),
            ),
        ),
        rule(
            0.93,
            says(
                "^",
                (
                    "flax 0.12.8",
                    'flax.errors.ScopeParamShapeError: For parameter "kernel" in "/", the given initializer is expected to generate shape (5, 4), but the existing parameter it received has shape (3, 4). (https://flax.readthedocs.io/en/latest/api_reference/flax.errors.html#flax.errors.ScopeParamShapeError)',
                ),
            ),
            types="ScopeParamShapeError ShapeMismatchError DimensionMismatchError",
        ),
        rule(
            0.5,
            says(
                "(?:too many|not enough) values to unpack",
                ("CPython 3.11.7", "ValueError: too many values to unpack (expected 2)"),
            ),
            outside=r"\S",
        ),
        rule(
            0.72,
            says(
                SHAPED + ".{0,160}" + NEEDS,
                ("torch 2.13.0", "RuntimeError: zeros: Dimension size must be non-negative."),
            ),
            says(
                NEEDS + ".{0,160}" + SHAPED,
                (
                    "torch 2.13.0",
                    "RuntimeError: einsum(): the number of subscripts in the equation (3) does not match the number of dimensions (2) for operand 0 and no ellipsis was given",
                ),
            ),
            types=RAISED,
            unless=SET_UP,
        ),
        rule(
            0.84,
            says(
                SIZE_WORD + r"\b.{0,80}" + SAME_WORD,
                (
                    "torch 2.13.0",
                    "ValueError: Target size (torch.Size([3])) must be the same as input size (torch.Size([2]))",
                ),
            ),
            says(
                SAME_WORD + r"(?: \w+)? " + SIZE_WORD,
                ("jax 0.10.2", "ValueError: All input arrays must have the same shape. Got (2,), (3,)."),
            ),
        ),
        rule(
            0.84,
            says(
                r"requires?\b.{0,100}\bto (?:have (?:the )?(?:same|equal|matching)|match)\b.{0,20}" + SIZE_WORD,
                (
                    "jax 0.10.2",
                    "TypeError: dot_general requires contracting dimensions to have the same shape, got (3,) and (4,).",
                ),
            ),
        ),
        rule(
            0.82,
            says(
                SIZE_WORD[:-1]
                + "s?) (?:mismatch|do(?:es)? not match|don't match|are (?:different|inconsistent|incompatible))",
                ("torch 2.13.0", "RuntimeError: size mismatch, got input (2), mat (2x3), vec (4)"),
            ),
            unless="checkpoint|state_dict|copying a param",
        ),
        rule(
            0.75,
            says(
                r"(?:expected|expects|requires?)\b.{0,60}(?:\d-?D|\d dimension|shape|channels)\b.{0,80}(?:got|received|found|but)",
                (
                    "torch 2.13.0",
                    "RuntimeError: Given normalized_shape=[5], expected input with shape [*, 5], but got input of size[2, 4]",
                ),
            ),
            unless="constraint",
        ),
    ),
    lines=(
        # glog's CHECK says what it compared
        rule(
            0.74,
            says(
                r"Check failed: .{0,100}\b\w*(?:shape|num_axes|channels|height|width|dims?|dimension|count)\w*\b.{0,60}(?:==|<=|>=) .{0,120}\(-?\d+ vs\. -?\d+\)",
                (
                    "caffe 1.0",
                    "F0809 12:35:39.369956 17335 concat_layer.cpp:42] Check failed: top_shape[j] == bottom[i]->shape(j) (45 vs. 46) All inputs must have the same shape, except at concat_axis.",
                ),
            ),
        ),
        rule(
            0.7,
            says(
                "INVALID[_ ]ARGUMENT: {1,2}(?:Incompatible shapes|Matrix size-incompatible|Input to reshape|required broadcastable)",
                (
                    "tensorflow 2.21.0",
                    "W0000 00:00:1794823434.097569   20881 local_rendezvous.cc:412] Local rendezvous is aborting with status: INVALID_ARGUMENT: Incompatible shapes: [2,3] vs. [2,4]",
                ),
                (
                    "tensorflow 2.6",
                    "2021-11-19 13:39:01.778911: W tensorflow/core/framework/op_kernel.cc:1680] Invalid argument: required broadcastable shapes",
                ),
            ),
        ),
    ),
    last_frames=((0.55, r"F\.linear\(|torch\._C\._nn\.linear\(|torch\.addmm\("),),
)
