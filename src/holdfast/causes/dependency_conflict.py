from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, shell

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
    r"^\W*(?:\w+Error: )?(?:Could not import [\w.]+|Missing optional dependency)",
    r"""\brequires (?:the )?[`'\"]?[\w.-]+[`'\"]?(?: package| library)? (?:to be installed|but it was not found)""",
    r"\b(?:is|are) not installed\b",
    "[Pp]lease (?:pip )?install ",
)
VERSIONS = (
    r"requires? [\w.\[\]-]+ ?[<>=!~]=? ?[\d.]+[^\n]{0,60}but (?:you have|found|got)",
    "is required for a normal functioning of this module",
    "VersionConflict",
    "DistributionNotFound",
    "dependency resolver",
    "conflicting dependencies",
    "ResolutionImpossible",
    "Descriptors (?:cannot|should not) (?:not )?be created directly",
    "Downgrade the protobuf",
    "expected bytes, Descriptor found",
    r"google/protobuf/pyext/\w+\.cc:\d+: bad argument",
    "compiled with different CUDA",
    r"operator torchvision::\w+ does not exist",
    r"Couldn't load custom C\+\+ ops",
    "(?:torchvision|torchaudio).{0,60}(?:incompatible|compiled)",
    "Keras requires TensorFlow",
    "not yet supported in Transformers",
    "is newer than and incompatible with jax version",
    "jaxlib version .{0,40}incompatible",
    "jaxlib is version",
    "compiled against (?:API|ABI) version",
    "size changed, may indicate binary incompatibility",
    "multiarray failed to import",
    "compiled using NumPy 1",
    "Numpy is not available",
    "_ARRAY_API not found",
    r"requires the (?:PyTorch|TensorFlow|\w+) library but it was not found",
    "Unable to import required dependenc",
    "you (?:need|must) (?:to )?(?:install|upgrade|downgrade)",
    r"""[Pp]lease (?:install|upgrade|downgrade|update) [`'\"]?\w+""",
    "(?:is )?incompatible (?:with (?:the )?)?(?:installed )?version",
    "detected CUDA version .{0,40}mismatches the version",
    "does not match the version torch was compiled with",
    r"requires `?\w[\w.-]{0,40}[<>=]=?[\d.]+`?: Please run",
    "Cannot convert a symbolic Tensor .{0,120}to a numpy array",
    "unsupported pickle protocol",
    "bad marshal data",
    r"The installed version of \S+ .{0,60}(?:is|does)",
    r"numpy\.core\.(?:multiarray|umath) failed",
    "Numba needs NumPy",
)
NCCL_VERSIONS = (
    "Mismatched NCCL version detected",
    "NCCL version mismatch with",
    "compiled with NCCL version .{0,80}but is running",
)
NEWER = (
    r"(?:requires?|needs?) [`']?\w[\w.-]{1,30}[`']? ?(?:version )?(?:[<>=~]=? ?)?v?\d+(?:\.\d+)*(?: or (?:higher|newer|above|later|greater)|\b.{0,40}(?:installed|current|found|but|got))",
    "(?:not|un)supported (?:by|in|with) (?:this|your|the (?:current|installed)) version",
    "created with a newer version",
    "saved with an older version",
    "too old of a version",
    "version .{0,40}is too (?:old|new)",
    "(?:is|are|was|were) not (?:installed|found on your system)",
    r"(?:to|must|should) be installed\b",
    "[Tt]ry `?pip install",
    r"pip install [\w-]",
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
        rule(0.62, "No module named"),
        rule(0.6, r"lib(?:GL|glib|sndfile|gomp|stdc|X)[\w.+-]*: cannot open shared object"),
        rule(0.5, "DLL load failed"),
        rule(
            0.74,
            "descriptor",
            "proto",
            types="TypeError AttributeError SystemError ImportError RuntimeError",
            frames=r"google[/\\]protobuf|_pb2\.py",
        ),
        rule(0.82, *ABSENT, types="ImportError ModuleNotFoundError"),
        rule(0.7, "^KeyError: '[a-z]", types="KeyError", frames="configuration_auto|tokenization_auto"),
        rule(0.66, r"Tokenizer class \w+ does not exist or is not currently imported"),
        rule(0.72, *NEWER, unless="driver|compute capability|file|GPU"),
        rule(
            0.68,
            r"\b\w+ is required to load C\+\+ extensions",
            r"\bversions?\b.{0,80}\b(?:mismatch(?:es)?|incompatib\w+|conflicts?|not compatible)",
            unless="driver|kernel version|cuDNN",
        ),
    ),
    lines=(
        rule(0.8, *VERSIONS),
        rule(0.6, "pip's dependency resolver", "which is incompatible"),
        rule(0.72, r"fatal error: [\w/.+-]{1,80}\.(?:h|hpp|cuh): No such file"),
        rule(
            0.6,
            "Error compiling objects for extension",
            r"error: command '\S*(?:gcc|g\+\+|nvcc|cl\.exe)\S*' failed",
            "Failed building wheel for",
        ),
        rule(0.9, *NCCL_VERSIONS),
    ),
)
