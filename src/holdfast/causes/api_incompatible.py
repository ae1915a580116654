from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, says, shell, torch, words

LIBRARIES = r"(?:tensorflow|keras|torch|torchvision|torchaudio|torchtext|numpy|np|jax|jaxlib|flax|optax|haiku|scipy|sklearn|pandas|PIL|cv2|transformers|tokenizers|datasets|accelerate|peft|diffusers|lightning|pytorch_lightning|torchmetrics|deepspeed|apex|h5py|google\.protobuf|tensorboard|tf|K|gym|gymnasium|triton|xformers|bitsandbytes|trl|librosa|skimage|networkx|matplotlib|huggingface_hub|timm|mmcv|detectron2|fastai|spacy|nltk|gensim|ray|wandb|setuptools|pkg_resources|collections|inspect|typing)"
# A name missing in a file of the user's own is no library's doing; and such a file may hide a library.
OWN_FILE = (
    r"from '[\w.]+' \((?![^)]{0,300}(?:site-packages|dist-packages|lib[/\\]python\d))[^)]{0,200}[/\\][^)]{1,100}\)"
)
MOVED = (
    "'module' object has no attribute",
    says(
        "module '" + LIBRARIES + r"(?:\.[\w.]+)?' has no attribute",
        ("keras 3.15.1", "AttributeError: module 'keras.preprocessing.image' has no attribute 'ImageDataGenerator'"),
    ),
    says(
        "No module named '?" + LIBRARIES + r"\.[\w.]+'?",
        ("CPython 3.11.7", "ModuleNotFoundError: No module named 'tensorflow.contrib'"),
    ),
    says(
        r"cannot import name '?\w+'? from '?(?!\w*__main__)[\w.]+'?",
        (
            "CPython 3.11.7",
            "ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/python3.11/collections/__init__.py)",
        ),
    ),
    says(
        "(?:is|are|was|has been|have been) (?:deprecated and )?(?:removed|no longer (?:supported|available))",
        (
            "lightning 2.6.6",
            "NotImplementedError: The `HPUParallelStrategy` class has been removed. Please contact developer@lightning.ai",
        ),
    ),
    says(
        "no longer support(?:s|ed)",
        (
            "torch 2.13.0",
            "ValueError: Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != 1.0.",
        ),
    ),
    "was deprecated in .{0,40} and (?:is now )?removed",
    says(
        "not compatible with eager execution",
        (
            "tensorflow 2.21.0",
            "Merging tf.summary.* ops is not compatible with eager execution. Use tf.contrib.summary instead.",
        ),
    ),
    says(
        "Legacy autograd function",
        (
            "torch 2.13.0",
            "RuntimeError: Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)",
        ),
    ),
    r"`np\.\w+` was a deprecated alias",
    "deprecated alias for the builtin",
    says(
        "[Uu]nexpected keyword argument passed to",
        ("tensorflow 2.21.0", "TypeError: Unexpected keyword argument passed to optimizer: 3"),
    ),
    "Unrecognized keyword arguments? passed to",
    says("Unrecognized keyword arguments", ("tensorflow 2.21.0", "Unrecognized keyword arguments for tf.print: dense")),
    says("Keyword argument not understood", ("tensorflow 2.21.0", "Keyword argument not understood:")),
    says("[Uu]nexpected argument.{0,40}`", ("bash", "unexpected argument `dense' to conditional unary operator")),
    says(
        "filepath provided must end in",
        (
            "keras 3.15.1",
            "ValueError: The filepath provided must end in `.keras` (Keras model format). Received: filepath=a.ckpt",
        ),
    ),
    "not a valid argument for kwarg",
    "is deprecated in the new Keras optimizer",
    r"argument\(s\) (?:are|is) not supported",
    "A KerasTensor cannot be used as input to a TensorFlow function",
    says("Weights only load failed", ("torch 2.13.0", "Weights only load failed. 3\n 3")),
    says("File format not supported", ("keras 3.15.1", "File format not supported: filepath=")),
    says(
        r"`?\w+`? is not available (?:when using|with) (?:TensorFlow|Keras|PyTorch|JAX) \d",
        (
            "tensorflow 2.21.0",
            "AttributeError: `tf.compat.v2.keras` is not available with Keras 3. Just use `import keras` instead.",
        ),
    ),
    r"deprecat\w+ .{0,80}(?:use|switch to|replaced by) ",
    r"^AttributeError: \S{1,80} (?:is|was) deprecated",
    says(
        r"Only instances of `keras\.Layer` can be added",
        (
            "keras 3.15.1",
            "ValueError: Only instances of `keras.Layer` can be added to a Sequential model. Received: 1 (of type <class 'int'>)",
        ),
    ),
    says(r"Argument\(s\) not recognized", ("keras 3.15.1", "ValueError: Argument(s) not recognized: {'lr': 1}")),
)
KERAS_OBJECTS = r"'(?:Sequential|Functional|Model|Adam|SGD|RMSprop|History|Tensor|EagerTensor|KerasTensor|DataFrame|Index|Figure\w*|Trainer|TrainingArguments|Tokenizer\w*|\w+Tokenizer(?:Fast)?|\w*Config|\w*Optimizer|\w*Scheduler|Dense|InputLayer|\w*ForCausalLM|\w+Model|FreeTypeFont|DataLoader\w*|_\w+DataLoaderIter)' object has no attribute"
# What was written for Python 2 or for a library's own kind of dict.
OF_ANOTHER_TIME = (
    says(
        r"deprecated since version [\d.]{1,12} and is now removed",
        (
            "torch 2.13.0",
            "RuntimeError: This function was deprecated since version 1.9 and is now removed. The default behavior has changed from using the upper triangular portion of the matrix by default to using the lower triangular portion.",
        ),
    ),
    says(
        "'dict' object has no attribute '(?:iteritems|itervalues|iterkeys|has_key|unfreeze|freeze)'",
        ("CPython 3.11.7", "AttributeError: 'dict' object has no attribute 'iteritems'"),
    ),
    r"'dict_\w+' object (?:is not subscriptable|does not support indexing)",
    says(
        r"'(?:map|filter|zip|range|dict_\w+)' object (?:is not subscriptable|has no attribute '(?:sort|append|index|shape|reverse)')",
        ("CPython 3.11.7", "TypeError: 'map' object is not subscriptable"),
    ),
    says(
        "object of type '(?:map|filter|zip)' has no len",
        ("CPython 3.11.7", "TypeError: object of type 'map' has no len()"),
    ),
    says(
        r"\bname '(?:xrange|unicode|raw_input|basestring|unichr|execfile|reload|cmp)' is not defined",
        ("CPython 3.11.7", "NameError: name 'xrange' is not defined"),
    ),
    says(
        "Missing parentheses in call to 'print'",
        (
            "CPython 3.11.7",
            "SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)? (<string>, line 1)",
        ),
    ),
    says(
        r"No module named '?(?:cPickle|urllib2|Queue|ConfigParser|StringIO|commands|cStringIO|HTMLParser|itertools\.izip)(?![\w.])",
        ("CPython 3.11.7", "ModuleNotFoundError: No module named 'cPickle'"),
    ),
    says(
        "module '(?:string|itertools|time|os|sys|types|asyncio|collections|inspect|fractions|math|imp)' has no attribute '",
        ("CPython 3.11.7", "AttributeError: module 'inspect' has no attribute 'getargspec'"),
    ),
)
CAUSE = CauseRecord(
    id="api-incompatible",
    family="process",
    title="The script is written for another version of a library",
    meaning="It uses a name or an argument that the installed version does not have. Either the code follows the library, or the library stays at the version the code was written for.",
    sure="The name that is missing, and the version that is installed.",
    message_in_title=True,
    of_the_installation=True,
    recipes=(
        torch(
            "If you trust the file: let it hold more than weights",
            'torch.load("model.pt", weights_only=False)',
            said=r"Weights only load failed",
        ),
        keras(
            "The argument is called learning_rate now",
            "keras.optimizers.Adam(learning_rate=1e-3)",
            said=r"not recognized: \{'lr'",
        ),
        words("Start at your own line", "$frame"),
        shell("See what is installed", "pip list | grep -iE 'torch|tensorflow|keras|jax|numpy|transformers'"),
        shell("Stay at the version it was written for", "pip install 'PACKAGE<NEXT_MAJOR'"),
    ),
    exceptions=(
        rule(0.86, *OF_ANOTHER_TIME),
        rule(0.87, *MOVED, unless="partially initialized module|circular import|is not a package|" + OWN_FILE),
        rule(
            0.9,
            says(
                "'str' object has no attribute 'decode'",
                ("CPython 3.11.7", "AttributeError: 'str' object has no attribute 'decode'"),
            ),
            frames="hdf5_format|saving|h5py|load_weights",
        ),
        rule(
            0.6,
            says(
                "'str' object has no attribute 'decode'",
                ("CPython 3.11.7", "AttributeError: 'str' object has no attribute 'decode'"),
            ),
        ),
        rule(
            0.66,
            says(
                KERAS_OBJECTS,
                ("keras 3.15.1", "AttributeError: 'Sequential' object has no attribute 'predict_classes'"),
            ),
            types="AttributeError",
        ),
        rule(0.66, r"has no attribute '_(?:keras|inbound|outbound)\w*'", types="AttributeError"),
        # A class of a library, by its name, and no place: one of two libraries is of another time.
        rule(
            0.56,
            says(
                r"'(?-i:[A-Z]\w*[a-z]\w*[A-Z]\w*)' object has no attribute '",
                ("numpy 2.4.6", "AttributeError: 'EnvironmentConfig' object has no attribute 'dense'"),
            ),
            "'(?:AdamW|Adam|SGD)' object has no attribute '",
            types="AttributeError",
            unless="'NoneType'|'EagerTensor'|'DataFrame'",
            outside=r"\S",
        ),
        # A library does not find what it expects in an object of its own kind.
        rule(
            0.6,
            r"'[A-Z]\w+' object has no attribute '",
            types="AttributeError",
            unless="'NoneType'|'Tensor'|'EagerTensor'|'DataFrame'|'Series'",
            deepest="site-packages|dist-packages",
        ),
        rule(
            0.66,
            says(
                "got an unexpected keyword argument",
                (
                    "transformers 5.22.2",
                    "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'",
                ),
            ),
            r"takes (?:from )?\d+ (?:to \d+ )?positional arguments? but",
            "Could not interpret optimizer",
            frames="site-packages|dist-packages",
        ),
        rule(0.72, r"cannot import name '?\w+'?$", types="ImportError", frames="site-packages|dist-packages"),
        rule(0.6, r"cannot import name '?\w+'?$", types="ImportError", outside=r"\S"),
        rule(
            0.58,
            says(
                "got an unexpected keyword argument",
                (
                    "transformers 5.22.2",
                    "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'",
                ),
            ),
        ),
        # A model's description that was written by another version of Keras.
        rule(
            0.68,
            "^",
            types="KeyError TypeError ValueError AttributeError",
            frames=r"\b(?:from_config|layer_from_config|model_from_config|model_from_json|model_from_yaml|deserialize_keras_object|func_load)\b",
            deepest="keras",
        ),
        rule(
            0.55,
            says(
                "Unknown (?:layer|metric|loss|optimizer)", ("keras 3.15.1", "ValueError: Unknown loss function: '3'.")
            ),
            says(
                "Could not (?:locate|deserialize) (?:class|object)",
                (
                    "keras 3.15.1",
                    "TypeError: Could not locate class 'Foo'. Make sure custom classes and functions are decorated with `@keras.saving.register_keras_serializable()`. If they are already decorated, make sure they are all imported so that the decorator is run before trying to load them. Full object config: {'class_name': 'Foo', 'config': {}}",
                ),
            ),
            says(
                "Error when deserializing",
                (
                    "keras 3.15.1",
                    "TypeError: Error when deserializing class 'dense' using config=3.\n\nException encountered: 3",
                ),
            ),
        ),
    ),
)
