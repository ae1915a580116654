from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, torch

OPTIMIZER_STATE = r"parameter group|optimizer\.load_state_dict|opt\w*\.load_state_dict"
CHECKPOINT = (
    "(?:unexpected|missing) key .{0,200} in state_dict",
    r"Error\(s\) in loading state_dict",
    r"Missing key\(s\) in state_dict",
    r"Unexpected key\(s\) in state_dict",
    r"size mismatch for [\w.]+: copying",
    r"load a weight file containing \d+ layers into a model with",
    r"expects \d+ weight\(s\), but the saved weights",
    "Layer count mismatch",
    r"expected \d+ variables?, but received \d+ variables? during loading",
    "Shape mismatch in layer",
    "weight shape .{0,60} not compatible with provided",
    "Assign requires shapes of both tensors to match",
    r"Key \S+ not found in checkpoint",
    "not found in checkpoint",
    "objects could not be loaded",
    "doesn't match the size of optimizer's group",
    "different number of parameter groups",
    "was never built and thus it doesn't have any variables",
    "(?:that is|key) missing from the checkpoint",
    "not bound to checkpointed values",
    "more layers than model",
    "While copying the parameter named",
    "attempting to restore variable with shape",
    "mismatch between the current graph and the graph from the checkpoint",
    "Cannot assign value to variable .{0,120}Shape mismatch",
    "metadata tree structures do not match",
    "dict keys and state dict keys do not match",
    "ignore_mismatched_sizes",
    "Trying to set a tensor of shape .{0,200}this looks incorrect",
    "checkpoint.{0,60}(?:does not|doesn't|not) match",
    "Unable to load weights.{0,80}(?:shape|mismatch)",
    r"You called `set_weights\(weights\)` .{0,120}with a weight list of length",
    "Only restoring .{0,60}variables",
    "Restored shape",
    "shape in current model is",
    r"but the sav(?:ed|e) (?:weights?|layers?|models?|variables?|file)\b.{0,20}(?:has|have|had|contains?)",
    r"in the save file\. However",
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
    meaning="Names or shapes in the saved weights differ from the model they are loaded into. Classes, layers or wrappers such as DataParallel make the difference.",
    sure="The names or shapes that the message lists.",
    says_more_than=("shape-mismatch",),
    recipes=(
        torch(
            "Begin the optimizer's state anew, for the parameters there are now",
            "optimizer = torch.optim.Adam(model.parameters())  # not loaded",
            said=OPTIMIZER_STATE,
        ),
        torch(
            "Take what fits, and see what does not",
            "fits = {k: v for k, v in saved.items() if k in own\n        and v.shape == own[k].shape}\nprint(model.load_state_dict(fits, strict=False))",
            unsaid=OPTIMIZER_STATE,
        ),
        torch(
            "Saved from DataParallel or DDP",
            'saved = {k.removeprefix("module."): v for k, v in saved.items()}',
            unsaid=OPTIMIZER_STATE,
        ),
        keras("Take what fits", 'model.load_weights("old.weights.h5", skip_mismatch=True)'),
    ),
    exceptions=(
        rule(0.95, *CHECKPOINT),
        rule(
            0.78,
            "shape",
            "axes",
            "dimension",
            "mismatch",
            "match",
            "size",
            "number of",
            "expects?",
            types="ValueError RuntimeError AssertionError IndexError",
            unless="CUDA|memory|file|not found|No such",
            frames=LOADS_WEIGHTS,
        ),
        rule(0.68, CHECKPOINT_KEYS, types="KeyError"),
        rule(0.66, "^", types="ScopeParamNotFoundError ScopeCollectionNotFound"),
        rule(
            0.76,
            SAVED + r"\b.{0,140}" + UNLIKE,
            UNLIKE + r".{0,140}\b" + SAVED,
            unless=r"directory|\bpath\b|No such file|version of",
        ),
        rule(
            0.8,
            r"(?:checkpoint|state.?dict|saved (?:model|weights)|pretrained)\b.{0,100}\b(?:mismatch|incompatible|do(?:es)? not match|missing keys?|unexpected keys?)",
        ),
    ),
    lines=(
        rule(0.9, r"size mismatch for [\w.]+: copying a param", r"(?:Missing|Unexpected) key\(s\) in state_dict"),
        rule(0.4, "Unresolved object in checkpoint", "Some weights of .{0,80} were not (?:initialized|used)"),
    ),
    last_frames=((0.58, r"\bload_state_dict\b.*error_msgs|\.load_state_dict\("),),
)
