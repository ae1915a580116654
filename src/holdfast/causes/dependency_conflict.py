from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, rule, says, shell
from holdfast.causes.shared.package_versions import VERSIONS

ABSENT_MODULE = r"No module named '(?:{})[.']"
OTHER_NAMES = {  # modules whose package is called otherwise
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "tensorflow_addons": "tensorflow-addons",
    "torch_geometric": "torch-geometric",
    "pytorch_lightning": "pytorch-lightning",
    "mpl_toolkits": "matplotlib",
}
ABSENT = (
    says(
        r"^\W*(?:\w+Error: )?(?:Could not import [\w.]+|Missing optional dependency)",
        ("keras 3.15.1", "ImportError: Could not import PIL.Image. The use of `load_img` requires PIL."),
    ),
    says(
        r"""\brequires (?:the )?[`'\"]?[\w.-]+[`'\"]?(?: package| library)? (?:to be installed|but it was not found)""",
        (
            "transformers 5.22.2",
            "ImportError: \nAutoImageProcessor requires the PIL library but it was not found in your environment. You can install it with pip:\n`pip install pillow`. Please note that you may need to restart your runtime after installation.\n",
        ),
    ),
    says(
        r"\b(?:is|are) not installed\b",
        (
            "accelerate 1.15.0",
            "ImportError: DeepSpeed is not installed => run `pip3 install deepspeed` or build it from source.",
        ),
    ),
    says(
        "[Pp]lease (?:pip )?install ",
        (
            "huggingface-hub 2.4.0",
            "ImportError: Please install `torch` to load torch tensors. You can install it with `pip install torch`.",
        ),
    ),
)
NCCL_VERSIONS = (
    says(
        "Mismatched NCCL version detected",
        (
            "nccl nccl4py-v0.3.1",
            "node1:4242:4242 [0] NCCL WARN Mismatched NCCL version detected : rank 0 version 22703 rank 5 version 21805",
        ),
    ),
    says(
        "NCCL version mismatch with",
        (
            "nccl nccl4py-v0.3.1",
            "node1:4242:4242 [0] NCCL WARN NCCL version mismatch with remote peer 10.0.0.7<41843> (local: 22703, remote 21805)",
        ),
    ),
    says(
        "compiled with NCCL version .{0,80}but is running",
        (
            "nccl nccl4py-v0.3.1",
            "NCCL library is too old. This application was compiled with NCCL version 2.27.3, but is running with NCCL library version 2.18.5.",
        ),
    ),
)
NEWER = (
    says(
        r"(?:requires?|needs?) [`']?\w[\w.-]{1,30}[`']? ?(?:version )?(?:[<>=~]=? ?)?v?\d+(?:\.\d+)*(?: or (?:higher|newer|above|later|greater)|\b.{0,40}(?:installed|current|found|but|got))",
        ("numba 0.61", "ImportError: Numba needs NumPy 2.2 or less. Got NumPy 2.3."),
    ),
    says(
        "(?:not |un)supported (?:by|in|with) (?:this|your|the (?:current|installed)) version",
        ("jax 0.10.2", "AssertionError: `subcore_index` is not supported in this version of jaxlib."),
        (
            "tensorflow 2.21.0",
            "ValueError: The type 'DatasetSpec' is not supported by this version of TensorFlow. (The object you are loading must have been created with a newer version of TensorFlow.)",
        ),
    ),
    says(
        "version .{0,40}is too (?:old|new)",
        (
            "scikit-learn 1.8.0rc1",
            "ImportError: Your version of pytest is too old. Got version 6.2.5, you should have pytest >= 7.1.2 installed.",
        ),
    ),
    says(
        "(?:is|are|was|were) not (?:installed|found on your system)",
        (
            "accelerate 1.15.0",
            "ImportError: DeepSpeed is not installed => run `pip3 install deepspeed` or build it from source.",
        ),
    ),
    says(
        r"(?:to|must|should) be installed\b",
        (
            "lightning 2.6.6",
            "ModuleNotFoundError: `LitClassifier.to_onnx(dynamo=True)` requires `onnxscript` and `torch>=2.5.0` to be installed.",
        ),
    ),
    says(
        "[Tt]ry `?pip install",
        (
            "lightning 2.6.6",
            "ModuleNotFoundError: Neither `tensorboard` nor `tensorboardX` is available. Try `pip install`ing either.",
        ),
    ),
    says(
        r"pip install [\w-]",
        (
            "transformers 5.22.2",
            "ImportError: \nAutoImageProcessor requires the PIL library but it was not found in your environment. You can install it with pip:\n`pip install pillow`. Please note that you may need to restart your runtime after installation.\n",
        ),
    ),
)
CAUSE = CauseRecord(
    id="dependency-conflict",
    family="process",
    title="Installed packages do not fit each other",
    meaning="A package needs another one that is missing, or in another version. The installation has to be mended, not the script.",
    sure="The package and versions that the message names.",
    message_in_title=True,
    of_the_installation=True,
    recipes=(
        *(
            shell("Install it where the run looks", f"python -m pip install {name}", said=ABSENT_MODULE.format(module))
            for module, name in OTHER_NAMES.items()
        ),
        shell(
            "Install it where the run looks",
            "python -m pip install $module",
            said=ABSENT_MODULE.format(r"(?P<module>[a-z]\w*)"),
            unsaid=ABSENT_MODULE.format("|".join(OTHER_NAMES)),
        ),
        shell("See what does not fit", "pip check"),
        shell(
            "Begin with an environment of its own",
            "python -m venv fresh\n./fresh/bin/pip install -r requirements.txt",
        ),
    ),
    exceptions=(
        rule(0.85, *VERSIONS),
        rule(0.62, says("No module named", ("CPython 3.11.7", "ModuleNotFoundError: No module named 'nosuchmodule'"))),
        rule(
            0.6,
            says(
                r"lib(?:GL|glib|sndfile|gomp|stdc|X)[\w.+-]*: cannot open shared object",
                (
                    "glibc with opencv-python 4.8",
                    "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
                ),
            ),
        ),
        rule(
            0.5,
            says(
                "DLL load failed",
                ("CPython 3.7 on Windows", "ImportError: DLL load failed: The specified module could not be found."),
            ),
        ),
        rule(
            0.74,
            says(
                "descriptor",
                (
                    "protobuf 3.17",
                    'Traceback (most recent call last):\n  File "train.py", line 44, in <module>\n    options=None),\n  File "/usr/lib/python3.8/site-packages/google/protobuf/descriptor.py", line 530, in __new__\n    _message.Message._CheckCalledFromGeneratedFile()\nTypeError: Descriptors should not be created directly, but only retrieved from their parent.',
                ),
            ),
            says(
                "proto",
                (
                    "protobuf 3.19",
                    "Traceback (most recent call last):\n  File \"/usr/local/lib/python3.8/dist-packages/object_detection/protos/anchor_generator_pb2.py\", line 5, in <module>\n    from google.protobuf.internal import builder as _builder\nImportError: cannot import name 'builder' from 'google.protobuf.internal' (/usr/local/lib/python3.8/dist-packages/google/protobuf/internal/__init__.py)",
                ),
            ),
            types="TypeError AttributeError SystemError ImportError RuntimeError",
            frames=r"google[/\\]protobuf|_pb2\.py",
        ),
        rule(0.82, *ABSENT, types="ImportError ModuleNotFoundError"),
        rule(
            0.7,
            says(
                "^KeyError: '[a-z]",
                (
                    "transformers 4.36",
                    'Traceback (most recent call last):\n  File "/usr/local/lib/python3.10/dist-packages/transformers/models/auto/auto_factory.py", line 526, in from_pretrained\n    config, kwargs = AutoConfig.from_pretrained(\n  File "/usr/local/lib/python3.10/dist-packages/transformers/models/auto/configuration_auto.py", line 1098, in from_pretrained\n    config_class = CONFIG_MAPPING[config_dict["model_type"]]\nKeyError: \'qwen2\'',
                ),
            ),
            types="KeyError",
            frames="configuration_auto|tokenization_auto",
        ),
        rule(
            0.66,
            says(
                r"Tokenizer class \w+ does not exist or is not currently imported",
                (
                    "transformers 4.27",
                    "ValueError: Tokenizer class LLaMATokenizer does not exist or is not currently imported.",
                ),
            ),
        ),
        rule(0.72, *NEWER, unless="driver|compute capability|file|GPU"),
        rule(
            0.68,
            says(
                r"\b\w+ is required to load C\+\+ extensions",
                (
                    "torch 2.13.0",
                    "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)",
                ),
            ),
            says(
                r"\bversions?\b.{0,80}\b(?:mismatch(?:es)?|incompatib\w+|conflicts?|not compatible)",
                (
                    "pydantic 2.14.3",
                    "SystemError: The installed pydantic-core version (2.49.0) is incompatible with the current pydantic version, which requires 2.50.4. If you encounter this error, make sure that you haven't upgraded pydantic-core manually.",
                ),
            ),
            unless="driver|kernel version|cuDNN",
        ),
    ),
    lines=(
        rule(0.8, *VERSIONS),
        rule(
            0.6,
            says(
                "pip's dependency resolver",
                (
                    "pip 26.2.1",
                    "pip's dependency resolver does not currently take into account all the packages that are installed. This behaviour is the source of the following dependency conflicts.",
                ),
            ),
            says(
                "which is incompatible(?! to)",
                near(
                    "transformers 5.22.2",
                    "You passed `num_labels=3` which is incompatible to the `id2label` map of length `2`.",
                ),
                (
                    "pip 23.2.1",
                    "tensorflow-intel 2.13.0 requires numpy<=1.24.3,>=1.22, but you have numpy 1.26.4 which is incompatible.",
                ),
            ),
        ),
        rule(
            0.72,
            says(
                r"fatal error: [\w/.+-]{1,80}\.(?:h|hpp|cuh): No such file",
                ("gcc 12.2", "ph.c:1:10: fatal error: Python.h: No such file or directory"),
            ),
        ),
        rule(
            0.6,
            says("Error compiling objects for extension", ("torch 2.13.0", "Error compiling objects for extension")),
            says(
                r"error: command '\S*(?:gcc|g\+\+|nvcc|cl\.exe)\S*' failed",
                ("setuptools 84.2.1", "error: command '/usr/bin/gcc' failed with exit code 1"),
            ),
            says("Failed building wheel for", ("pip 26.2.1", "  ERROR: Failed building wheel for flash-attn")),
        ),
        rule(0.9, *NCCL_VERSIONS),
    ),
)
