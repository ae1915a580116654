from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, says, torch, words

OURS = "the state could not be put back: "  # of a checkpoint that Holdfast has made
OPTIMIZER_STATE = r"parameter group|optimizer\.load_state_dict|opt\w*\.load_state_dict"
CHECKPOINT = (
    says(
        "(?:unexpected|missing) key .{0,200} in state_dict",
        ("torch 0.3.1", "KeyError: 'unexpected key \"module.base_model.base.conv1.weight\" in state_dict'"),
    ),
    says(
        r"Error\(s\) in loading state_dict",
        ("a log shown in public", "RuntimeError: Error(s) in loading state_dict for UPDETR:"),
    ),
    says(
        r"load a weight file containing \d+ layers into a model with",
        (
            "keras 2.2.4",
            "ValueError: You are trying to load a weight file containing 16 layers into a model with 18 layers.",
        ),
    ),
    says(
        "Layer count mismatch",
        (
            "keras 3.15.1",
            "ValueError: Layer count mismatch when loading weights from file. Model expected 3 layers, found 2 saved layers.",
        ),
    ),
    says(
        r"expected \d+ variables?, but received \d+ variables? during loading",
        (
            "keras 2.13.1",
            "ValueError: Layer 'dense_2' expected 2 variables, but received 0 variables during loading. Expected: ['dense_2/kernel:0', 'dense_2/bias:0']",
        ),
    ),
    says(
        "Shape mismatch in layer",
        (
            "keras 3.15.1",
            "ValueError: Shape mismatch in layer #0 (named head)for weight sequential_4/head/kernel. Weight expects shape (3, 5). Received saved weight with shape (3, 4)",
        ),
    ),
    says(
        "weight shape .{0,60} not compatible with provided",
        (
            "keras 3.15.1",
            "ValueError: Layer dense_19 weight shape (4, 1) is not compatible with provided weight shape (8, 4).",
        ),
    ),
    says(
        "Assign requires shapes of both tensors to match",
        ("tensorflow 2.21.0", "Assign requires shapes of both tensors to match. lhs shape="),
    ),
    says(
        "not found in checkpoint",
        ("tensorflow 2.21.0", "NotFoundError: Key layer_with_weights-0/kernel not found in checkpoint"),
    ),
    says(
        "objects could not be loaded", ("keras 3.15.1", "objects could not be loaded. Example error message for object")
    ),
    says(
        "doesn't match the size of optimizer's group",
        (
            "torch 2.13.0",
            "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
        ),
    ),
    says(
        "different number of parameter groups",
        ("torch 2.13.0", "ValueError: loaded state dict has a different number of parameter groups"),
    ),
    says(
        "was never built and thus it doesn't have any variables",
        (
            "keras 3.15.1",
            "ValueError: Layer 'sub' was never built and thus it doesn't have any variables. However the weights file lists 2 variables for this layer.\nIn most cases, this error indicates that either:\n\n1. The layer is owned by a parent layer that implements a `build()` method, but calling the parent's `build()` method did NOT create the state of the child layer 'sub'.",
        ),
    ),
    says(
        r"Unresolved object in checkpoint \(root\)",
        (
            "tensorflow 2.21.0",
            'AssertionError: Unresolved object in checkpoint (root).head: attributes {\n  name: "VARIABLE_VALUE"\n  full_name: "Variable"\n  checkpoint_key: "head/.ATTRIBUTES/VARIABLE_VALUE"\n}\nhas_checkpoint_values {\n  value: true\n}\n',
        ),
    ),
    says(
        "not bound to checkpointed values",
        (
            "tensorflow 2.21.0",
            "AssertionError: Found 1 Python objects that were not bound to checkpointed values, likely due to changes in the Python program. Showing 1 of 1 unmatched objects: [<tf.Variable 'Variable:0' shape=(1,) dtype=float32, numpy=array([1.], dtype=float32)>]",
        ),
    ),
    says(
        "While copying the parameter named",
        (
            "torch 2.13.0",
            "RuntimeError: While copying the parameter named \"weight\", expected torch.Tensor or Tensor-like object from checkpoint but received <class 'str'>",
        ),
    ),
    says(
        "attempting to restore variable with shape",
        (
            "tensorflow 2.21.0",
            "ValueError: Received incompatible tensor with shape (1,) when attempting to restore variable with shape (2,) and name Variable:0.",
        ),
    ),
    says(
        "Cannot assign value to variable .{0,120}Shape mismatch",
        (
            "tensorflow 2.21.0",
            "ValueError: Cannot assign value to variable ' Variable:0': Shape mismatch.The variable shape (3, 4), and the assigned value shape (3, 5) are incompatible.",
        ),
    ),
    says(
        "metadata tree structures do not match",
        (
            "orbax-checkpoint 0.12.8",
            "ValueError: User-provided restore item and on-disk value metadata tree structures do not match:\nb:\n    - Source: MISSING\n    - Target: ValueMetadataEntry(value_type='jax.Array', skip_deserialize=False, write_shape=(4,))",
        ),
    ),
    says(
        "dict keys and state dict keys do not match",
        (
            "flax 0.12.8",
            "ValueError: The target dict keys and state dict keys do not match, target dict contains keys {'b'} which are not present in state dict at path .",
        ),
    ),
    says(
        "ignore_mismatched_sizes",
        (
            "transformers 5.22.2",
            "RuntimeError: You set `ignore_mismatched_sizes` to `False`, thus raising an error. For details look at the above report!",
        ),
    ),
    says(
        "Trying to set a tensor of shape .{0,200}this looks incorrect",
        (
            "accelerate 1.15.0",
            'ValueError: Trying to set a tensor of shape torch.Size([32000, 4096]) in "weight" (which has shape torch.Size([32001, 4096])), this looks incorrect.',
        ),
    ),
    says(
        "checkpoint.{0,60}(?:does not|doesn't|not) match",
        (
            "accelerate 1.15.0",
            "RuntimeError: Number of custom checkpoints in folder output/step_500 does not match the number of registered objects:\n\tFound checkpoints: 0\n\tRegistered objects: 1\n",
        ),
    ),
    says(
        r"You called `set_weights\(weights\)` .{0,120}with a weight list of length",
        (
            "keras 3.15.1",
            "ValueError: You called `set_weights(weights)` on layer 'sequential_19' with a weight list of length 1, but the layer was expecting 2 weights.",
        ),
    ),
    says(
        "is not compatible with the stored shape",
        (
            "orbax-checkpoint 0.12.8",
            "ValueError: Requested shape: (3, 5) is not compatible with the stored shape: (3, 4). Truncating/padding is disabled. To enable it, set `strict=False` in `ArrayRestoreArgs` for any array in v0 API or `enable_padding_and_truncation=True` in `ArrayOptions.Loading` in v1 API.",
        ),
    ),
    says(
        r"but the sav(?:ed|e) (?:weights?|layers?|models?|variables?|file)\b.{0,20}(?:has|have|had|contains?)",
        (
            "tensorflow 2.21.0",
            "ValueError: Layer #0 (named \"dense_1\"), weight <tf.Variable 'dense_1/kernel:0' shape=(128, 10) dtype=float32> has shape (128, 10), but the saved weight has shape (128, 5).",
        ),
    ),
)
# What the checkpoints of the training libraries have at their top.
CHECKPOINT_KEYS = r"^KeyError: '(?:pytorch-lightning_version|\w*state_dicts?|optimizer_states|hyper_parameters|lr_schedulers|loops|model_ema|param_groups)'"
LOADS_WEIGHTS = (
    "load_weights|load_state_dict|weights_for_loading|set_weights|from_pretrained|restore_checkpoint|load_checkpoint"
)
SAVED = "(?:checkpoints?|state.?dicts?|saved (?:weights?|model|variables?|state|optimizer)|weights? file|SavedModel)"
UNLIKE = r"(?:does not (?:contain|match|resolve|exist in)|do(?:es)?n't match|did not (?:match|contain)|not (?:found|consistent|present)|mismatch|missing|contains only|was never built|lists \d+ variables|older version|different|incompatible|could not be (?:matched|restored))"
CAUSE = CauseRecord(
    id="checkpoint-mismatch",
    family="data",
    title="The checkpoint is of another model",
    meaning="Names or shapes in what was saved differ from what it is loaded into. Classes, layers, wrappers such as DataParallel, or code that was edited since make the difference.",
    sure="The names or shapes that the message lists.",
    says_more_than=("shape-mismatch",),
    recipes=(
        words(
            "Go on with what was trained",
            "undo what was changed in the script since, then\nholdfast run --resume COMMAND",
            said=OURS,
            unsaid="no file of the script was edited",
        ),
        words("Or begin anew with the script as it is", "holdfast run COMMAND", said=OURS),
        torch(
            "Begin the optimizer's state anew, for the parameters there are now",
            "optimizer = torch.optim.Adam(model.parameters())  # not loaded",
            said=OPTIMIZER_STATE,
        ),
        torch(
            "Take what fits, and see what does not",
            "fits = {k: v for k, v in saved.items() if k in own\n        and v.shape == own[k].shape}\nprint(model.load_state_dict(fits, strict=False))",
            unsaid=f"{OPTIMIZER_STATE}|{OURS}",
        ),
        torch(
            "Saved from DataParallel or DDP",
            'saved = {k.removeprefix("module."): v for k, v in saved.items()}',
            unsaid=f"{OPTIMIZER_STATE}|{OURS}",
        ),
        keras("Take what fits", 'model.load_weights("old.weights.h5", skip_mismatch=True)', unsaid=OURS),
    ),
    exceptions=(
        rule(0.95, *CHECKPOINT),
        rule(
            0.78,
            says(
                r"\bshape\b",
                (
                    "keras 3.15.1",
                    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    model.load_weights("a.weights.h5")\n  File "/venv/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in error_handler\n    raise e.with_traceback(filtered_tb) from None\n  File "/venv/lib/python3.11/site-packages/keras/src/saving/saving_lib.py", line 712, in _raise_loading_failure\n    raise ValueError(msg)\nValueError: A total of 2 objects could not be loaded. Example error message for object <Dense name=dense, built=True>:\n\nThe shape of the target variable and the shape of the target value in `variable.assign(value)` must match. variable.shape=(3, 5), Received: value.shape=(3, 4). Target variable: <Variable path=sequential/dense/kernel, shape=(3, 5), dtype=float32>',
                ),
            ),
            says(
                "axes don't match",
                (
                    "keras 2.1 with NumPy 1.18",
                    'Traceback (most recent call last):\n  File "load_and_run.py", line 40, in <module>\n    model.load_weights(args.actor_path)\n  File "/venv/lib/python3.6/site-packages/keras/engine/topology.py", line 3152, in preprocess_weights_for_loading\n    weights[0] = np.transpose(weights[0], (3, 2, 0, 1))\n  File "<__array_function__ internals>", line 6, in transpose\n  File "/venv/lib/python3.6/site-packages/numpy/core/fromnumeric.py", line 58, in _wrapfunc\n    return bound(*args, **kwds)\nValueError: axes don\'t match array',
                ),
            ),
            says(
                "size",
                (
                    "torch 2.13.0",
                    'Traceback (most recent call last):\n  File "train.py", line 66, in <module>\n    load_state_dict(net, torch.load("pretrained.pt"))\n  File "train.py", line 65, in load_state_dict\n    own[name].copy_(parameter)\nRuntimeError: The size of tensor a (20) must match the size of tensor b (10) at non-singleton dimension 0',
                ),
            ),
            types="ValueError RuntimeError AssertionError IndexError",
            unless="CUDA|memory|file|not found|No such",
            frames=LOADS_WEIGHTS,
        ),
        rule(
            0.68,
            says(
                CHECKPOINT_KEYS,
                ("lightning 2.6.6", "KeyError: 'pytorch-lightning_version'"),
                ("torch 2.13.0", "KeyError: 'param_groups'"),
            ),
            types="KeyError",
        ),
        rule(
            0.66,
            says(
                "^",
                (
                    "flax 0.12.8",
                    'flax.errors.ScopeParamNotFoundError: Could not find parameter named "kernel" in scope "/head". (https://flax.readthedocs.io/en/latest/api_reference/flax.errors.html#flax.errors.ScopeParamNotFoundError)',
                ),
            ),
            types="ScopeParamNotFoundError ScopeCollectionNotFound",
        ),
        rule(
            0.76,
            says(
                SAVED + r"\b.{0,140}" + UNLIKE,
                (
                    "torch 2.13.0",
                    "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
                ),
            ),
            says(
                UNLIKE + r".{0,140}\b" + SAVED,
                (
                    "torch 2.13.0",
                    'RuntimeError: Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "weight", "bias". \n\tUnexpected key(s) in state_dict: "x". ',
                ),
            ),
            unless=r"directory|\bpath\b|No such file|version of",
        ),
        rule(
            0.8,
            says(
                r"(?:checkpoint|state.?dict|saved (?:model|weights)|pretrained)\b.{0,100}\b(?:mismatch|incompatible|do(?:es)? not match|missing keys?|unexpected keys?)",
                (
                    "torch 2.13.0",
                    "RuntimeError: Checkpoint at output/checkpoint-500 is missing keys: {'model.head.weight'}",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.9,
            says(
                r"size mismatch for [\w.]+: copying a param",
                (
                    "torch 2.13.0",
                    "RuntimeError: Error(s) in loading state_dict for Linear:\n\tsize mismatch for weight: copying a param with shape torch.Size([4, 2]) from checkpoint, the shape in current model is torch.Size([3, 2]).\n\tsize mismatch for bias: copying a param with shape torch.Size([4]) from checkpoint, the shape in current model is torch.Size([3]).",
                ),
            ),
            says(
                r"(?:Missing|Unexpected) key\(s\) in state_dict",
                (
                    "torch 2.13.0",
                    'RuntimeError: Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "weight", "bias". \n\tUnexpected key(s) in state_dict: "x". ',
                ),
            ),
        ),
        rule(
            0.4,
            says(
                "Unresolved object in checkpoint",
                (
                    "tensorflow 2.21.0",
                    'AssertionError: Unresolved object in checkpoint (root).head: attributes {\n  name: "VARIABLE_VALUE"\n  full_name: "Variable"\n  checkpoint_key: "head/.ATTRIBUTES/VARIABLE_VALUE"\n}\nhas_checkpoint_values {\n  value: true\n}\n',
                ),
            ),
            says(
                "Some weights of .{0,80} were not (?:initialized|used)",
                (
                    "accelerate 1.15.0",
                    "Some weights of the model checkpoint at bert-base-uncased were not used when initializing BertForSequenceClassification: ['cls.predictions.bias', 'cls.seq_relationship.weight']. This may or may not be an issue - make sure that the checkpoint does not have unnecessary parameters, or that the model definition correctly corresponds to the checkpoint.",
                ),
            ),
        ),
    ),
    last_frames=((0.58, r"\bload_state_dict\b.*error_msgs|\.load_state_dict\("),),
)
