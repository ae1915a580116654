"""Model and data disagree, an id is out of range, a file is damaged or not there, a checkpoint is of another model."""

from __future__ import annotations

from holdfast.diagnosis.reading.rule import Rule, any_of, flatten, rule, rules

SHAPES_TORCH = any_of(
    r"mat. and mat2 shapes cannot be multiplied \((?P<a>[\dx]+) and (?P<b>[\dx]+)\)",
    r"size mismatch, (?:m1|get|\[)",
    r"The size of tensor a \((?P<x>\d+)\) must match the size of tensor b \((?P<y>\d+)\)",
    r"shape '\[.{0,80}\]' is invalid for input of size",
    r"Sizes of tensors must match except in dimension",
    r"stack expects each tensor to be equal size|each element in list of batch should be of equal size",
    r"Given (?:groups|transposed)=\d+, (?:weight|expected weight)",
    r"expected input\[.{0,60}\] to have \d+ channels",
    r"Expected (?:\dD|\d-dimensional|\d+D|2D or 3D|3D or 4D|4D or 5D|\(?\d?\w* ?3D)[^\n]{0,80}(?:input|tensor|but got|got)",
    r"Expected input batch_size|input and target (?:batch|shapes)|to match target batch_size",
    r"input\.size\(-1\) must be equal to input_size|Expected hidden(?:\[\d\])? size|input must have \d+ dimensions",
    r"running_(?:mean|var) should contain \d+ elements|weight should contain \d+ elements",
    r"normalized_shape=|Given normalized_shape",
    r"only batches of spatial targets supported",
    r"Kernel size can't be greater than actual input size|Output size is too small",
    r"expanded size of the tensor \(\d+\) must match|doesn't match the broadcast shape|does not broadcast with previously seen",
    r"shape mismatch: (?:value|indexing)|cannot be broadcast to indexing result",
    r"Trying to create tensor with negative dimension|must match the size of dimension|invalid shape dimension",
    r"Target size \(.{0,40}\) must be the same as input size|target.{0,20}size.{0,40}different to the input size",
    r"Unable to create tensor, you should probably activate|resize storage that is not resizable|view size is not compatible with input tensor|inconsistent tensor size|Tensor sizes? must|tensors? must have same (?:number of dimensions|size|shape)|matrices expected, got",
    r"Dimension out of range \(expected to be in range of",
    r"batch1 and batch2 must have same|Expected size for first two dimensions of batch2 tensor",
    r"The shape of the mask|shape of the \d+D attn_mask|embed_dim must|was expecting embedding dimension",
    r"(?:must|should) be of size|_lengths? must be|operands? do(?:es)? not broadcast|expects \d+ input\(?s?\)?, but it received|should be divisible by .{0,40}but it is equal to|selected index k out of range|number of dims don't match in permute",
)
SHAPES_TF = any_of(
    r"Input \d+(?: of \w+)? (?:of layer|is incompatible with)[^\n]{0,120}(?:is )?incompatible with (?:the )?layer",
    r"is incompatible with (?:the )?layer",
    r"Shapes? \(?.{0,60}\)? and \(?.{0,60}\)? (?:are incompatible|must have the same rank)",
    r"expected (?:shape|min_ndim|ndim|axis)[^\n]{0,60}(?:found|received|but)",
    r"Error when checking (?:model )?(?:input|target)[^\n]{0,80}expected",
    r"to have (?:shape|\d+ dimensions?)[^\n]{0,40}but got array",
    r"Incompatible shapes|Matrix size-incompatible|In\[0\] mismatch In\[1\]|Dimensions? must be equal, but are|Dimension \d+ in both shapes must be equal",
    r"Cannot feed value of shape|Input to reshape is a tensor with|Cannot reshape a tensor with",
    r"Negative dimension size caused by|Computed output size would be negative|Cannot batch tensors with different shapes",
    r"requires inputs with matching shapes|[Rr]equired broadcastable shapes|Shape must be (?:at least )?rank \d but is rank|ConcatOp ?: Dimension|must be at least rank \d",
    r"Data cardinality is ambiguous|Make sure all arrays contain the same number of samples|should have the same number of samples",
    r"logits and labels must (?:have the same|be (?:the )?same|be broadcastable)|total size of (?:the tensor|new array) must be unchanged|must be broadcastable|last dimension of the inputs to a? ?`?Dense",
    r"Inputs have incompatible shapes|Inputs to operation .{0,80} must have the same size and shape|inner dimensions? must match",
    r"TensorArray dtype|TypeSpec.{0,60}not compatible|`generator` yielded an element of shape",
    r"could not broadcast input array|operands could not be broadcast|not aligned: \d|cannot reshape array of size",
    r"inhomogeneous shape|setting an array element with a sequence|all the input array dimensions|must have same number of dimensions",
    r"mismatch in its core dimension|inconsistent numbers of samples|Found array with dim|Expected 2D array, got 1D",
)
SHAPES_JAX = any_of(
    r"requires contracting dimensions to have the same shape|incompatible shapes for broadcasting",
    r"inconsistent sizes for array axes|ScopeParamShapeError|Initializer expected to generate shape",
    r"conv_general_dilated (?:lhs|feature)|requires operand shapes|got shapes .{0,80}(?:must|need)|arrays to concatenate must",
    r"tree_?map.{0,60}mismatch|Cannot concatenate arrays",
)
DTYPES = any_of(
    r"expected (?:scalar type|dtype|m1 and m2 to have the same dtype|object of (?:scalar )?type|data type)[^\n]{0,60}(?:but|found|got|!=)",
    r"Expected object of scalar type|Expected tensor for argument #\d+ '\w+' to have (?:one of the following )?scalar type",
    r"Found dtype \w+ but expected|must have the same dtype|expected both (?:matrices|tensors) to have the same dtype|dtypes? (?:mismatch|do not match)",
    r"not implemented for '(?:Half|Long|Int|Bool|Byte|BFloat16|Char|Short|Float|Double|Complex\w*|Float8\w*)'",
    r"can't be cast to the desired output type|can't convert np\.ndarray of type numpy\.object",
    r"Cast \w+ to \w+ is not supported|Failed to convert a NumPy array to a Tensor|Unsupported object type",
    r"was expected to be an? \w+ tensor but is an? \w+ tensor|Tensor conversion requested dtype",
    r"that does not match (?:expected )?type|not in list of allowed values|Expected \w+(?:, \w+)* passed to parameter|has invalid type",
    r"requires arguments to have (?:equal|the same|same) d?types|must have equal types|sub-dtype of np\.inexact|do not match.{0,40}dtype",
    r"Invalid dtype: |could not be converted to (?:float|torch|Tensor)|expected type .{0,20}(?:float|int|double|half)",
    r"only (?:Tensors|tensors) of floating point (?:and complex )?(?:dtype|type) can require gradients|Can only calculate the mean of floating",
    r"tensors used as indices must be long|probability tensor contains either `inf`(?!.)",
    r"Input type \((?:double|float|torch\.\w+|c10::\w+|\w*Tensor|unsigned char|int|long)\b[^)]*\) and (?:weight|bias) type",
    r"only supports? (?:fp16|bf16|float16|half|fp32)\b.{0,30}(?:data ?type|dtype|input|tensor)|is not a valid JAX type|Cannot convert \S{1,40} to EagerTensor of dtype|expected np\.ndarray \(got|Buffer dtype mismatch|Cannot interpret .{0,40} as a data type|Attempt to convert a value .{0,120} with an unsupported type",
)
LABELS = any_of(
    r"Received a label value of (?P<label>-?\d+) which is outside the valid range of \[(?P<range>[^)\]]+)",
    r"Target -?\d+ is out of bounds|targets?\[\d+\] is out of range",
    r"Assertion `?(?:t|cur_target) >= 0 && (?:t|cur_target) < n_classes",
    r"nll_loss[^\n]{0,200}Assertion|Class values must be (?:smaller than num_classes|non-negative)",
    r"more unique values in `(?:target|preds)` than expected|contains previously unseen labels|Label class \d+ exceeds nc=|Invalid classes inferred from unique values|label_value|labels? (?:must|should) be (?:in|within|less|smaller|between)[^\n]{0,40}(?:range|num_class|\[0)",
    r"(?:label|class)(?: id| index| value)?s? (?:\S+ )?(?:is|are) (?:out of (?:range|bounds)|larger than|not in \[)",
)
OF_CLASSES = r"class[_ ]?ids? (?:=|is|are)? ?\S{0,12} ?(?:must be less than|should be \[|>= ?(?:num_classes|nc))|class_id should be \[|must be less than (?:num_classes|the number of classes|\w+ classes)"
INDEXES = any_of(
    r"index out of range in self|indices\[[\d,]*\] = (?P<index>-?\d+) is not in \[0, (?P<size>\d+)\)",
    r"srcIndex < srcSelectDimSize|index >= -sizes\[i\] && index < sizes\[i\]|index out of bounds\"?`? failed|ind >= 0 && ind < ind_dim_size",
    r"(?:index|indices) (?P<i>-?\d+) is out of bounds for dimension \d+ with size (?P<n>\d+)",
    r"Tried to access index -?\d+ out of table with \d+ rows|vectorized_gather_kernel",
    r"(?:idx_dim|indexValue|index_size|idx)[^\n]{0,60}>= 0[^\n]{0,80}(?:index out of bounds|failed)",
    r"index (?P<j>-?\d+) is out of bounds for axis \d+ with size (?P<m>\d+)",
    r"slice index -?\d+ of dimension \d+ out of bounds|out of range of the (?:table|vocabulary|embedding)",
)
CORRUPT = any_of(
    r"invalid header or archive is corrupted|failed (?:reading zip archive|finding central directory|locating file)|reading zip archive",
    r"unexpected EOF, expected \d+ more bytes|Truncated file|truncated file|file signature not found|bad (?:object|symbol table|local heap)",
    r"image file is truncated|cannot identify image file|broken (?:data stream|PNG file)|DataLoss|DATA_LOSS|corrupted record|bad magic number",
    r"Not a (?:JPEG|PNG) file|Unknown image file format|Invalid (?:PNG|JPEG|GIF|BMP) data|Input is empty|Expected image \(JPEG|Trying to decode \w+ format",
    r"File is not a zip file|BadZipFile|invalid load key|pickle data was truncated|Ran out of input|unpickling stack underflow|could not find MARK",
    r"ended before the end-of-stream marker|Not a gzipped file|CRC check failed|Error -\d while decompressing|invalid stored block|not a bzip2|incorrect header check",
    r"tarfile\.ReadError|Parquet magic bytes|Error while deserializing header|HeaderTooLarge|InvalidHeaderDeserialization|MetadataIncompleteBuffer",
    r"as a pickle|No data left in file|checksum (?:does not|mismatch)|hash mismatch|(?:may|might|is|are|be) (?:\w+ )?corrupt(?:ed)?\b|file is corrupt",
    r"moov atom not found|Invalid data found when processing input|Format not recognised|Error tokenizing data|MDB_CORRUPTED|Error parsing message|IDAT: (?:CRC|incorrect)|not a valid (?:TFRecord|HDF5|checkpoint) file|incomplete (?:download|metadata)|cannot mmap an empty file",
    r"storage has wrong (?:byte )?size: expected|valid file signature|unable to (?:synchronously )?open file \((?!unable to (?:open|lock)|no such|name)|unexpected end of (?:data|file|stream)|EOF (?:reached|where not expected)|magic number .{0,30}(?:wrong|invalid|expected)|Failed to load .{0,80}truncated",
)
OFFLINE = r"couldn't connect to|[Cc]heck your (?:internet )?connection|Internet connection is on"
MISSING = any_of(
    r"No such file or directory|\[Errno 2\]|Failed to find any matching files|errno = 2\b|unable to (?:synchronously )?open file(?! \((?!unable to open|no such|name))",
    r"does not appear to have a file named|File not found|file does not exist|(?:file|directory|path|folder) .{0,160}(?:does not|doesn't) exist",
    r"Can't load (?:the )?(?:tokenizer|config|model|image processor|feature extractor|weights)|Can't find (?:a )?(?:file|model|config)",
    r"is not a valid checkpoint: |Can't load save_path when it is None|Couldn't match files for checkpoint",
    r"No files matched pattern|is not a local folder and is not a valid model identifier|SavedModel file does not exist|No file or directory found|Couldn't find (?:a dataset|any data|file)|cannot find the (?:path|file)",
    r"NewRandomAccessFile failed to Create/Open|NewReadOnlyMemoryRegionFromFile failed|no file named (?:pytorch_model|model\.safetensors|tf_model)|Cannot find (?:file|checkpoint|the)|Dataset not found|not found or corrupted",
)
CHECKPOINT = any_of(
    r"(?:unexpected|missing) key .{0,200} in state_dict|Error\(s\) in loading state_dict|Missing key\(s\) in state_dict|Unexpected key\(s\) in state_dict|size mismatch for [\w.]+: copying",
    r"load a weight file containing \d+ layers into a model with|expects \d+ weight\(s\), but the saved weights|Layer count mismatch",
    r"expected \d+ variables?, but received \d+ variables? during loading|Shape mismatch in layer|weight shape .{0,60} not compatible with provided",
    r"Assign requires shapes of both tensors to match|Key \S+ not found in checkpoint|not found in checkpoint",
    r"objects could not be loaded|doesn't match the size of optimizer's group|different number of parameter groups",
    r"was never built and thus it doesn't have any variables|(?:that is|key) missing from the checkpoint|not bound to checkpointed values|more layers than model|While copying the parameter named|attempting to restore variable with shape|mismatch between the current graph and the graph from the checkpoint",
    r"Cannot assign value to variable .{0,120}Shape mismatch|metadata tree structures do not match|dict keys and state dict keys do not match",
    r"ignore_mismatched_sizes|Trying to set a tensor of shape .{0,200}this looks incorrect|checkpoint.{0,60}(?:does not|doesn't|not) match",
    r"Unable to load weights.{0,80}(?:shape|mismatch)|You called `set_weights\(weights\)` .{0,120}with a weight list of length",
    r"Only restoring .{0,60}variables|Restored shape|shape in current model is",
    r"but the sav(?:ed|e) (?:weights?|layers?|models?|variables?|file)\b.{0,20}(?:has|have|had|contains?)|in the save file\. However",
)
# What the checkpoints of the training libraries have at their top.
CHECKPOINT_KEYS = r"^KeyError: '(?:pytorch-lightning_version|\w*state_dicts?|optimizer_states|hyper_parameters|lr_schedulers|loops|model_ema|param_groups)'"
LOADS_WEIGHTS = (
    r"load_weights|load_state_dict|weights_for_loading|set_weights|from_pretrained|restore_checkpoint|load_checkpoint"
)

ENDED = r"Out of range: .{0,40}StopIteration"  # also of healthy runs, at the end of each epoch
SPAWNING = r"multiprocessing[/\\]+spawn|reduction\.pickle\.load"

EXCEPTIONS: tuple[Rule, ...] = flatten(
    (
        (
            rule("checkpoint-mismatch", 0.95, CHECKPOINT),
            rule(
                "checkpoint-mismatch",
                0.78,
                r"shape|axes|dimension|mismatch|match|size|number of|expects?",
                "ValueError RuntimeError AssertionError IndexError",
                unless=r"CUDA|memory|file|not found|No such",
                frames=LOADS_WEIGHTS,
            ),
            rule("checkpoint-mismatch", 0.68, CHECKPOINT_KEYS, "KeyError"),
            rule("shape-mismatch", 0.92, SHAPES_TORCH),
            rule("shape-mismatch", 0.92, SHAPES_TF),
            rule("shape-mismatch", 0.92, SHAPES_JAX),
            rule("dtype-mismatch", 0.9, r"so the d?types do not match"),
            rule("shape-mismatch", 0.9, r"so the shapes do not match"),
            rule("dtype-mismatch", 0.62, r"must have (?:identical|equal|the same) types, (?:got|but)"),
            # The two sides of a branch or a loop, as JAX prints them.
            rule("dtype-mismatch", 0.88, r"ShapedArray\((\w+)\[[^\]]{0,60}\][^\n]{0,40}vs\. ShapedArray\((?!\1\[)"),
            rule(
                "shape-mismatch", 0.86, r"ShapedArray\((\w+)\[([^\]]{0,60})\][^\n]{0,40}vs\. ShapedArray\(\1\[(?!\2\])"
            ),
            rule("checkpoint-mismatch", 0.66, r"^", "ScopeParamNotFoundError ScopeCollectionNotFound"),
            rule("shape-mismatch", 0.93, r"^", "ScopeParamShapeError ShapeMismatchError DimensionMismatchError"),
            rule(
                "dtype-mismatch",
                0.9,
                DTYPES,
                unless=r"type torch\.cuda\.\w+ (?:but|for)|type torch\.\w+ but (?:found|got) type torch\.cuda|\(torch\.(?:cuda\.)\w+\) and weight type \(torch\.(?!cuda)|torch\.FloatTensor\) and weight type \(torch\.cuda",
            ),
            rule(
                "dtype-mismatch",
                0.65,
                r"could not convert string to float|Unable to parse string|invalid literal for int",
            ),
            rule("label-out-of-range", 0.96, LABELS + "|" + OF_CLASSES),
            rule(
                "label-out-of-range",
                0.88,
                r"is out of bounds for axis 1 with size",
                frames=r"to_categorical|categorical",
            ),
            rule("label-out-of-range", 0.86, r"device-side assert[\s\S]{0,200}(?:ClassNLLCriterion|NLLLoss|Loss\.cu)"),
            rule(
                "label-out-of-range",
                0.78,
                r"device-side assert",
                frames=r"nll_loss|cross_entropy|CrossEntropy|criterion|compute_loss|loss_fn",
            ),
            rule("label-out-of-range", 0.45, r"device-side assert|cuda runtime error \((?:59|710)\)"),
            rule(
                "index-out-of-range", 0.93, INDEXES, unless=r"is out of bounds for axis 1[\s\S]{0,2000}to_categorical"
            ),
            rule("index-out-of-range", 0.78, r"device-side assert", frames=r"embedding|index_select|gather"),
            rule("index-out-of-range", 0.42, r"device-side assert"),
            rule("index-out-of-range", 0.4, r"(?:list|string|tuple) index out of range"),
            rule("data-exhausted", 0.9, r"ran out of data|input ran out|Empty training data|steps_per_epoch \* epochs"),
            rule(
                "data-exhausted",
                0.87,
                r"End of sequence|insufficient elements|is closed and has insufficient",
                "OutOfRangeError StopIteration",
            ),
            rule("data-exhausted", 0.78, r"^", "StopIteration"),
            rule(
                "data-exhausted",
                0.75,
                r"generator raised StopIteration|Expected input data to be non-empty|Unexpected result of `train_function` \(Empty Logs\)",
            ),
            rule("corrupt-file", 0.92, CORRUPT, unless=r"No such file or directory|CUDA", outside=SPAWNING),
            rule(
                "corrupt-file",
                0.9,
                r"^",
                "CorruptedError UnidentifiedImageError BadZipFile DataLossError UnpicklingError ReadError BadGzipFile LZMAError",
                unless=r"Weights only|weights_only|WeightsUnpickler",
            ),
            rule(
                "corrupt-file",
                0.72,
                r"Unable to load weights from pytorch checkpoint file|Not an Arrow file|!buf\.empty\(\) in function 'imdecode",
            ),
            rule("corrupt-file", 0.6, r"Cannot load file containing pickled data"),
            rule(
                "dtype-mismatch",
                0.62,
                r"default_collate: batch must contain tensors|(?:should be|must be|expected) (?:an? )?(?:PIL Image|Tensor|ndarray|np\.ndarray)\b.{0,60}(?:got|not|but)\b",
                "TypeError",
            ),
            rule("corrupt-file", 0.5, r"^", "JSONDecodeError DecodeError"),
            # imread gives None where there is no image
            rule("missing-file", 0.5, r"'NoneType' object has no attribute '(?:shape|astype|copy)'", outside=r"\S"),
            rule("shape-mismatch", 0.5, r"(?:too many|not enough) values to unpack", outside=r"\S"),
            rule("missing-file", 0.92, r"^", "FileNotFoundError"),
            rule(
                "missing-file",
                0.9,
                MISSING,
                unless=r"cannot open shared object|dlopen|DLL|Transport endpoint|in checkpoint|from the checkpoint|"
                + OFFLINE,
            ),
            rule(
                "missing-file",
                0.75,
                r"^",
                "HFValidationError RepositoryNotFoundError EntryNotFoundError LocalEntryNotFoundError DatasetNotFoundError NotADirectoryError IsADirectoryError",
                unless=OFFLINE,
            ),
            rule(
                "missing-file",
                0.6,
                r"Found 0 (?:files|images)|No (?:images|files|data|samples|labels|annotations)\b.{0,40}(?:found|in)|num_samples=0",
            ),
            rule(
                "missing-file",
                0.6,
                r"!_src\.empty\(\)|'NoneType' object has no attribute 'shape'",
                frames=r"cv2|imread",
            ),
            rule(
                "missing-file", 0.55, r"!_src\.empty\(\)|!ssize\.empty\(\)|empty\(\) in function '(?:cvtColor|resize)'"
            ),
        ),
    )
)
LINES: tuple[Rule, ...] = flatten(
    (
        rules(
            "label-out-of-range",
            (0.95, r"Assertion `?(?:t|cur_target) >= 0 && (?:t|cur_target) < n_classes"),
            (0.85, r"(?:ClassNLLCriterion|NLLLoss|Loss\.cu)[^\n]{0,200}Assertion"),
            (0.72, r"(?:ClassNLLCriterion|NLLLoss)\w*\.cu(?::\d+: \w| line=\d)"),
            (0.9, OF_CLASSES),
            (0.85, r"Check failed: .{0,60}\blabel\w*\b.{0,40}(?:<=?|>=?) .{0,60}\(-?\d+ vs\. -?\d+\)"),
            (0.95, r"Received a label value of -?\d+ which is outside the valid range"),
            # The node that failed, without what it said: its labels are what it checks.
            (0.55, r"\[\[(?:Node: |\{\{node ).{0,200}SparseSoftmaxCrossEntropyWithLogits"),
        ),
        rules(
            "output-loss-mismatch",
            (0.9, r"Assertion `\*?input(?:_val)? >= (?:zero|0\.).{0,20}input(?:_val)? <= (?:one|1\.)"),
        ),
        rules(
            "index-out-of-range",
            (
                0.93,
                r"Assertion `?srcIndex < srcSelectDimSize|index out of bounds\"`? failed|-sizes\[i\] <= index && index < sizes\[i\]",
            ),
            (
                0.9,
                r"(?:Indexing|IndexKernel|ScatterGatherKernel|Embedding|IndexingUtils)\w*\.(?:cu|cuh)[^\n]{0,200}Assertion",
            ),
            (0.9, r"indices\[[\d,]*\] = -?\d+ is not in \[0, \d+\)"),
            (0.4, r"sequence length is longer than the specified maximum sequence length"),
        ),
        rules(
            "data-exhausted",
            (0.85, r"ran out of data; interrupting training"),
            (0.2, r"OUT_OF_RANGE: End of sequence"),
            (0.4, ENDED),
        ),
        rules(
            "corrupt-file",
            (0.72, r"moov atom not found|Invalid data found when processing input"),
            (0.8, r"corrupted record at \d+|Data loss: |libpng error: (?:IDAT|Read Error|bad adaptive)|DATA_LOSS"),
            (0.8, r"Not a (?:JPEG|PNG) file: starts with|^Input file read error$"),
            (0.3, r"Premature end of JPEG file|Corrupt JPEG data"),
        ),
        rules(
            "missing-file",
            (0.93, r"can't open file '?[^\n']{1,200}'?: \[Errno 2\]"),
            (0.82, r"Check failed: .{0,80}\((?:-1 vs\. -1|2 vs\. 0)\) (?:File not found|No such file)"),
            (0.42, r"(?<!shared object file: )No such file or directory"),
        ),
        rules(
            "checkpoint-mismatch",
            (0.9, r"size mismatch for [\w.]+: copying a param|(?:Missing|Unexpected) key\(s\) in state_dict"),
            (0.4, r"Unresolved object in checkpoint|Some weights of .{0,80} were not (?:initialized|used)"),
        ),
        rules(
            "shape-mismatch",
            (
                0.74,  # glog's CHECK says what it compared
                r"Check failed: .{0,100}\b\w*(?:shape|num_axes|channels|height|width|dims?|dimension|count)\w*\b.{0,60}(?:==|<=|>=) .{0,120}\(-?\d+ vs\. -?\d+\)",
            ),
            (
                0.7,
                r"INVALID_ARGUMENT: {1,2}(?:Incompatible shapes|Matrix size-incompatible|Input to reshape|required broadcastable)",
            ),
        ),
    )
)
