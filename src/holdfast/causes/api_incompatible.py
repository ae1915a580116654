from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, shell, torch, words

LIBRARIES = r"(?:tensorflow|keras|torch|torchvision|torchaudio|torchtext|numpy|np|jax|jaxlib|flax|optax|haiku|scipy|sklearn|pandas|PIL|cv2|transformers|tokenizers|datasets|accelerate|peft|diffusers|lightning|pytorch_lightning|torchmetrics|deepspeed|apex|h5py|google\.protobuf|tensorboard|tf|K|gym|gymnasium|triton|xformers|bitsandbytes|trl|librosa|skimage|networkx|matplotlib|huggingface_hub|timm|mmcv|detectron2|fastai|spacy|nltk|gensim|ray|wandb|setuptools|pkg_resources|collections|inspect|typing)"
# A name missing in a file of the user's own is no library's doing; and such a file may hide a library.
OWN_FILE = (
    r"from '[\w.]+' \((?![^)]{0,300}(?:site-packages|dist-packages|lib[/\\]python\d))[^)]{0,200}[/\\][^)]{1,100}\)"
)
MOVED = (
    "'module' object has no attribute",
    "module '" + LIBRARIES + r"(?:\.[\w.]+)?' has no attribute",
    "No module named '?" + LIBRARIES + r"\.[\w.]+'?",
    r"cannot import name '?\w+'? from '?(?!\w*__main__)[\w.]+'?",
    "(?:is|are|was|has been|have been) (?:deprecated and )?(?:removed|no longer (?:supported|available))",
    "no longer support(?:s|ed)",
    "was deprecated in .{0,40} and (?:is now )?removed",
    "not compatible with eager execution",
    "Legacy autograd function",
    r"`np\.\w+` was a deprecated alias",
    "deprecated alias for the builtin",
    "[Uu]nexpected keyword argument passed to",
    "Unrecognized keyword arguments? passed to",
    "Unrecognized keyword arguments",
    "Keyword argument not understood",
    "[Uu]nexpected argument.{0,40}`",
    "filepath provided must end in",
    "not a valid argument for kwarg",
    "is deprecated in the new Keras optimizer",
    r"argument\(s\) (?:are|is) not supported",
    "A KerasTensor cannot be used as input to a TensorFlow function",
    "Weights only load failed",
    "File format not supported",
    r"`?\w+`? is not available (?:when using|with) (?:TensorFlow|Keras|PyTorch|JAX) \d",
    r"deprecat\w+ .{0,80}(?:use|switch to|replaced by) ",
    r"^AttributeError: \S{1,80} (?:is|was) deprecated",
    r"Only instances of `keras\.Layer` can be added",
    r"Argument\(s\) not recognized",
)
KERAS_OBJECTS = r"'(?:Sequential|Functional|Model|Adam|SGD|RMSprop|History|Tensor|EagerTensor|KerasTensor|DataFrame|Index|Figure\w*|Trainer|TrainingArguments|Tokenizer\w*|\w+Tokenizer(?:Fast)?|\w*Config|\w*Optimizer|\w*Scheduler|Dense|InputLayer|\w*ForCausalLM|\w+Model|FreeTypeFont|DataLoader\w*|_\w+DataLoaderIter)' object has no attribute"
# What was written for Python 2 or for a library's own kind of dict.
OF_ANOTHER_TIME = (
    "'dict' object has no attribute '(?:iteritems|itervalues|iterkeys|has_key|unfreeze|freeze)'",
    r"'dict_\w+' object (?:is not subscriptable|does not support indexing)",
    r"'(?:map|filter|zip|range|dict_\w+)' object (?:is not subscriptable|has no attribute '(?:sort|append|index|shape|reverse)')",
    "object of type '(?:map|filter|zip)' has no len",
    r"\bname '(?:xrange|unicode|raw_input|basestring|unichr|execfile|reload|cmp)' is not defined",
    "Missing parentheses in call to 'print'",
    r"No module named '?(?:cPickle|urllib2|Queue|ConfigParser|StringIO|commands|cStringIO|HTMLParser|itertools\.izip)(?![\w.])",
    "module '(?:string|itertools|time|os|sys|types|asyncio|collections|inspect|fractions|math|imp)' has no attribute '",
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
        rule(0.87, *MOVED, unless="partially initialized module|circular import|" + OWN_FILE),
        rule(0.9, "'str' object has no attribute 'decode'", frames="hdf5_format|saving|h5py|load_weights"),
        rule(0.6, "'str' object has no attribute 'decode'"),
        rule(0.66, KERAS_OBJECTS, types="AttributeError"),
        rule(0.66, r"has no attribute '_(?:keras|inbound|outbound)\w*'", types="AttributeError"),
        # A class of a library, by its name, and no place: one of two libraries is of another time.
        rule(
            0.56,
            r"'(?-i:[A-Z]\w*[a-z]\w*[A-Z]\w*)' object has no attribute '",
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
            "got an unexpected keyword argument",
            r"takes (?:from )?\d+ (?:to \d+ )?positional arguments? but",
            "Could not interpret optimizer",
            frames="site-packages|dist-packages",
        ),
        rule(0.72, r"cannot import name '?\w+'?$", types="ImportError", frames="site-packages|dist-packages"),
        rule(0.6, r"cannot import name '?\w+'?$", types="ImportError", outside=r"\S"),
        rule(0.58, "got an unexpected keyword argument"),
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
            "Unknown (?:layer|metric|loss|optimizer)",
            "Could not (?:locate|deserialize) (?:class|object)",
            "Error when deserializing",
        ),
    ),
)
