from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, near, rule, says, shell, torch, words
from holdfast.causes.shared.words import NO_PICKLE

LIBRARIES = r"(?:tensorflow|keras|torch|torchvision|torchaudio|torchtext|numpy|np|jax|jaxlib|flax|optax|haiku|scipy|sklearn|pandas|PIL|cv2|transformers|tokenizers|datasets|accelerate|peft|diffusers|lightning|pytorch_lightning|torchmetrics|deepspeed|apex|h5py|google\.protobuf|tensorboard|tf|K|gym|gymnasium|triton|xformers|bitsandbytes|trl|librosa|skimage|networkx|matplotlib|huggingface_hub|timm|mmcv|detectron2|fastai|spacy|nltk|gensim|ray|wandb|setuptools|pkg_resources|collections|inspect|typing)"
# A name missing in a file of the user's own is no library's doing; and such a file may hide a library.
OWN_FILE = (
    r"from '[\w.]+' \((?![^)]{0,300}(?:site-packages|dist-packages|lib[/\\]python\d))[^)]{0,200}[/\\][^)]{1,100}\)"
)
OWN = r"<lambda>\(\)"  # a function that libraries call, but do not have
MOVED = (
    says(
        "'module' object has no attribute",
        ("CPython 2.7 with tensorflow 0.12", "AttributeError: 'module' object has no attribute 'rnn_cell'"),
    ),
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
    says(
        "was deprecated (?:in|since) .{0,40} and (?:is now )?removed",
        (
            "scipy 1.17.1",
            "TypeError: Argument `a` is not recognized as numeric. Support for input that cannot be coerced to a numeric array was deprecated in SciPy 1.9.0 and removed in SciPy 1.11.0. Please consider `np.unique`.",
        ),
        (
            "torch 2.13.0",
            "RuntimeError: This function was deprecated since version 1.9 and is now removed. `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed and does not return the LU factorization.\n\nTo get the LU factorization see `torch.lu`, which can be used with `torch.lu_solve` or `torch.lu_unpack`.\nX = torch.solve(B, A).solution should be replaced with:\nX = torch.linalg.solve(A, B)",
        ),
    ),
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
    says(
        "[Uu]nexpected keyword argument passed to",
        ("tensorflow 2.21.0", "TypeError: Unexpected keyword argument passed to optimizer: amsgrad"),
    ),
    says(
        "Unrecognized keyword arguments",
        ("keras 3.15.1", "ValueError: Unrecognized keyword arguments passed to LSTM: {'time_major': False}"),
    ),
    says("Keyword argument not understood", ("tensorflow 2.21.0", "Keyword argument not understood:")),
    says(
        "filepath provided must end in",
        (
            "keras 3.15.1",
            "ValueError: The filepath provided must end in `.keras` (Keras model format). Received: filepath=a.ckpt",
        ),
    ),
    says(
        r"argument\(s\) (?:are|is) not supported",
        ("keras 3.15.1", "ValueError: The following argument(s) are not supported: ['save_traces', 'options']"),
    ),
    says(
        "A KerasTensor cannot be used as input to a TensorFlow function",
        (
            "keras 3.15.1",
            "ValueError: A KerasTensor cannot be used as input to a TensorFlow function. A KerasTensor is a symbolic placeholder for a shape and dtype, used when constructing Keras Functional models or Keras Functions. You can only use it as input to a Keras layer or a Keras operation (from the namespaces `keras.layers` and `keras.ops`). You are likely doing something like:",
        ),
    ),
    says(
        r"Weights only load failed(?![\s\S]{0,1500}" + NO_PICKLE + ")",
        (
            "torch 2.13.0",
            "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options, do those steps only if you trust the source of the checkpoint. ",
        ),
        near(
            "torch 2.6, of a page in place of a checkpoint",
            "_pickle.UnpicklingError: Weights only load failed. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. Do it only if you got the file from a trusted source.\nPlease file an issue with the following so that we can make `weights_only=True` compatible with your use case: WeightsUnpickler error: Unsupported operand 60",
        ),
    ),
    says("File format not supported", ("keras 3.15.1", "File format not supported: filepath=")),
    says(
        r"`?\w+`? is not available (?:when using|with) (?:TensorFlow|Keras|PyTorch|JAX) \d",
        (
            "tensorflow 2.21.0",
            "AttributeError: `tf.compat.v2.keras` is not available with Keras 3. Just use `import keras` instead.",
        ),
    ),
    says(
        r"deprecat\w+ .{0,80}(?:use|switch to|replaced by) ",
        (
            "keras 2.11",
            "ValueError: decay is deprecated in the new Keras optimizer, pleasecheck the docstring for valid arguments, or use the legacy optimizer, e.g., tf.keras.optimizers.legacy.Adam.",
        ),
    ),
    says(
        r"^AttributeError: \S{1,80} (?:is|was) deprecated",
        (
            "jax 0.10.2",
            "AttributeError: jax.cloud_tpu_init was deprecated in JAX v0.8.1. You do not need to call this function explicitly; JAX calls this function automatically.",
        ),
    ),
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
    says(
        r"'dict_\w+' object does not support indexing",
        ("CPython 3.6", "TypeError: 'dict_keys' object does not support indexing"),
    ),
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
        rule(
            0.66,
            says(
                r"has no attribute '_(?:keras|inbound|outbound)\w*'",
                ("keras 2.1.2", "AttributeError: 'Conv2D' object has no attribute '_inbound_nodes'"),
            ),
            types="AttributeError",
        ),
        # A class of a library, by its name, and no place: one of two libraries is of another time.
        rule(
            0.56,
            says(
                r"'(?-i:[A-Z]\w*[a-z]\w*[A-Z]\w*)' object has no attribute '",
                ("transformers 4.45 with accelerate 0.33", "AttributeError: 'AdamW' object has no attribute 'train'"),
            ),
            types="AttributeError",
            unless="'NoneType'|'EagerTensor'|'DataFrame'",
            outside=r"\S",
        ),
        # A library does not find what it expects in an object of its own kind.
        rule(
            0.6,
            says(
                r"'[A-Z]\w+' object has no attribute '",
                (
                    "transformers 4.45 with accelerate 0.33",
                    "Traceback (most recent call last):\n  File \"/usr/local/lib/python3.10/site-packages/transformers/trainer.py\", line 3445, in training_step\n    self.optimizer.train()\n  File \"/usr/local/lib/python3.10/site-packages/accelerate/optimizer.py\", line 128, in train\n    return self.optimizer.train()\nAttributeError: 'AdamW' object has no attribute 'train'",
                ),
            ),
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
            says(
                r"takes (?:from )?\d+ (?:to \d+ )?positional arguments? but",
                (
                    "lightning 2.6.6",
                    'Traceback (most recent call last):\n  File "train.py", line 40, in <module>\n    trainer.fit(model, train_loader)\n  File "/usr/lib/python3.11/site-packages/lightning/pytorch/loops/optimization/automatic.py", line 270, in _optimizer_step\n    call._call_lightning_module_hook(\n  File "/usr/lib/python3.11/site-packages/lightning/pytorch/trainer/call.py", line 177, in _call_lightning_module_hook\n    output = fn(*args, **kwargs)\n             ^^^^^^^^^^^^^^^^^^^\nTypeError: LitClassifier.optimizer_step() takes 4 positional arguments but 5 were given',
                ),
            ),
            says(
                "Could not interpret optimizer",
                (
                    "keras 2.3 with tensorflow 2.0",
                    'Traceback (most recent call last):\n  File "p2b1_baseline_keras2.py", line 231, in run\n    molecular_model.compile(optimizer=opt, loss=loss_func, metrics=[\'mean_squared_error\', \'mean_absolute_error\'])\n  File "/opt/anaconda3/envs/candle-tf1/lib/python3.7/site-packages/keras/engine/training.py", line 95, in compile\n    self.optimizer = optimizers.get(optimizer)\n  File "/opt/anaconda3/envs/candle-tf1/lib/python3.7/site-packages/keras/optimizers.py", line 873, in get\n    str(identifier))\nValueError: Could not interpret optimizer identifier: <tensorflow.python.keras.optimizer_v2.adam.Adam object at 0x7f06fa323d90>',
                ),
            ),
            unless=OWN,
            frames="site-packages|dist-packages",
        ),
        rule(
            0.72,
            says(
                r"cannot import name '?\w+'?$",
                (
                    "tensorflow 1.8",
                    "Traceback (most recent call last):\n  File \"/usr/local/lib/python3.5/dist-packages/tensorflow/python/keras/backend/__init__.py\", line 22, in <module>\n    from tensorflow.python.keras._impl.keras.backend import abs\nImportError: cannot import name 'abs'",
                ),
                ("CPython 2.7 with tensorflow 1.8", "ImportError: cannot import name abs"),
            ),
            types="ImportError",
            frames="site-packages|dist-packages",
        ),
        rule(0.6, r"cannot import name '?\w+'?$", types="ImportError", outside=r"\S"),
        rule(
            0.58,
            says(
                "got an unexpected keyword argument",
                (
                    "transformers 5.22.2",
                    "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'",
                ),
                near("keras 3.15.1", "TypeError: <lambda>() got an unexpected keyword argument 'logs'"),
            ),
            unless=OWN,
        ),
        # A model's description that was written by another version of Keras.
        rule(
            0.68,
            says(
                "^",
                (
                    "keras 3.15.1",
                    "Traceback (most recent call last):\n  File \"load.py\", line 4, in <module>\n    model = keras.models.model_from_json(open(\"model.json\").read())\n  File \"/usr/lib/python3.11/site-packages/keras/src/models/model.py\", line 1122, in model_from_json\n    return serialization_lib.deserialize_keras_object(\n  File \"/usr/lib/python3.11/site-packages/keras/src/saving/serialization_lib.py\", line 740, in deserialize_keras_object\n    raise TypeError(\nTypeError: Expected 'config' to be a dict for Sequential,\ninstead got <class 'list'>\nFull config: {'class_name': 'Sequential', 'keras_version': '2.1.6', 'backend': 'tensorflow', 'config': [{'class_name': 'Dense', 'config': {'name': 'dense_1', 'trainable': True, 'batch_input_shape': [None, 784], 'dtype': 'float32', 'units': 128, 'activation': 'relu', 'use_bias': True}}]}",
                ),
            ),
            types="KeyError TypeError ValueError AttributeError",
            frames=r"\b(?:from_config|layer_from_config|model_from_config|model_from_json|model_from_yaml|deserialize_keras_object|func_load)\b",
            deepest="keras",
        ),
        rule(
            0.55,
            says(
                "Unknown (?:layer|metric|loss|optimizer)",
                ("keras 3.15.1", "ValueError: Unknown loss function: 'mean_square_error'."),
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
                    "TypeError: Error when deserializing class 'Dense' using config={'name': 'dense_1', 'units': 10, 'weights': [1], 'quantization_config': None}.\n\nException encountered: Unrecognized keyword arguments passed to Dense: {'weights': [1]}",
                ),
            ),
        ),
    ),
)
