from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, words

NAMED_FILE = r"(?:filepath=|File not found: )(?!filepath=)(?P<named>[^\s,;'\"]+?)[.,]?(?:\s|$)"
OFFLINE = "couldn't connect to|[Cc]heck your (?:internet )?connection|Internet connection is on"
MISSING = (
    says(
        "No such file or directory",
        (
            "tensorflow 2.21.0",
            "NotFoundError: {{function_node __wrapped__ReadFile_device_/job:localhost/replica:0/task:0/device:CPU:0}} no.txt; No such file or directory [Op:ReadFile]",
        ),
    ),
    says(
        r"\[Errno 2\]",
        (
            "CPython 3.11.7 with glibc 2.42, translated",
            "FileNotFoundError: [Errno 2] Datei oder Verzeichnis nicht gefunden: 'a.npy'",
        ),
    ),
    says(
        "Failed to find any matching files",
        (
            "tensorflow 2.21.0",
            "NotFoundError: Unsuccessful TensorSliceReader constructor: Failed to find any matching files for nothing",
        ),
    ),
    r"errno = 2\b",
    r"unable to (?:synchronously )?open file(?! \((?!unable to open|no such|name))",
    says(
        "does not appear to have a file named",
        ("transformers 5.22.2", "OSError: data/train.bin does not appear to have a file named dense or dense."),
    ),
    says(
        "File not found",
        (
            "keras 3.15.1",
            "ValueError: File not found: filepath=c.keras. Please ensure the file is an accessible `.keras` zip file.",
        ),
    ),
    says(
        "(?:file|directory|path|folder) .{0,160}(?:does not|doesn't) exist",
        ("torch 2.13.0", "RuntimeError: Parent directory /nonexistent does not exist."),
    ),
    says(
        "Can't load (?:the )?(?:tokenizer|config|model|image processor|feature extractor|weights)",
        (
            "transformers 5.22.2",
            "OSError: Can't load the configuration of 'dense'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name. Otherwise, make sure 'dense' is the correct path to a directory containing a data/train.bin file",
        ),
    ),
    "Can't find (?:a )?(?:file|model|config)",
    says(
        "No valid checkpoint found in",
        ("transformers 5.22.2", "ValueError: No valid checkpoint found in output directory (out)"),
    ),
    says(
        "is not a valid checkpoint: ",
        ("tensorflow 2.21.0", "ValueError: The passed save_path is not a valid checkpoint: 3"),
    ),
    says(
        "Can't load save_path when it is None",
        ("tensorflow 2.21.0", "ValueError: Can't load save_path when it is None."),
    ),
    "Couldn't match files for checkpoint",
    "No files matched pattern",
    says(
        "is not a local folder and is not a valid model identifier",
        (
            "transformers 5.22.2",
            "OSError: data/train.bin is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'\nIf this is a private repository, make sure to pass a token having permission to this repo either by logging in with `hf auth login` or by passing `token=<your_token>`",
        ),
    ),
    says("No file or directory found", ("tf-keras v2.21.0", "IOError: No file or directory found at data/train.bin")),
    says(
        "Couldn't find (?:a dataset|any data|file)",
        (
            "datasets 5.0.1",
            "FileNotFoundError: Couldn't find any data file at data/train.bin. Couldn't find 'data/train.bin' on the Hugging Face Hub either: dense: 3",
        ),
    ),
    "cannot find the (?:path|file)",
    "NewRandomAccessFile failed to Create/Open",
    "NewReadOnlyMemoryRegionFromFile failed",
    says(
        r"no file named (?:pytorch_model|model\.safetensors|tf_model)",
        (
            "transformers 5.22.2",
            "OSError: Error no file named model.safetensors, or pytorch_model.bin, found in directory ./emp.",
        ),
    ),
    "Cannot find (?:file|checkpoint|the)",
    says("Dataset not found", ("lightning 2.6.6", "RuntimeError: Dataset not found.")),
    "not found or corrupted",
)
CAUSE = CauseRecord(
    id="missing-file",
    family="data",
    title="A file is not there",
    meaning="The script opened a path that does not exist. Paths are looked up from the directory the run was started in.",
    sure="The system's own error names the path.",
    in_passing=True,
    recipes=(
        words("If it is to be written, make its folder first", 'os.makedirs("$folder", exist_ok=True)'),
        words("If it is to be read, look from the directory the run had", 'ls -l "$path"'),
        words("If it is to be read, look from the directory the run had", 'ls -l "$named"', said=NAMED_FILE),
    ),
    exceptions=(
        # imread gives None where there is no image
        rule(
            0.5,
            says(
                "'NoneType' object has no attribute '(?:shape|astype|copy)'",
                ("CPython 3.11.7", "AttributeError: 'NoneType' object has no attribute 'shape'"),
            ),
            outside=r"\S",
        ),
        rule(0.92, "^", types="FileNotFoundError"),
        rule(
            0.9,
            *MISSING,
            unless="cannot open shared object|dlopen|DLL|Transport endpoint|in checkpoint|from the checkpoint|"
            + OFFLINE,
        ),
        rule(
            0.75,
            "^",
            types="HFValidationError RepositoryNotFoundError EntryNotFoundError LocalEntryNotFoundError DatasetNotFoundError NotADirectoryError IsADirectoryError",
            unless=OFFLINE,
        ),
        rule(
            0.6,
            "Found 0 (?:files|images)",
            says(
                r"No (?:images|files|data|samples|labels|annotations)\b.{0,40}\b(?:found|in)\b",
                (
                    "keras 3.15.1",
                    "ValueError: No images found in directory .. Allowed formats: ('.bmp', '.gif', '.jpeg', '.jpg', '.png')",
                ),
            ),
            says(
                "num_samples=0",
                ("torch 2.13.0", "ValueError: num_samples should be a positive integer value, but got num_samples=0"),
            ),
        ),
        rule(0.6, r"!_src\.empty\(\)", "'NoneType' object has no attribute 'shape'", frames="cv2|imread"),
        rule(0.55, r"!_src\.empty\(\)", r"!ssize\.empty\(\)", r"empty\(\) in function '(?:cvtColor|resize)'"),
        rule(
            0.8,
            says(
                r"(?:file|path|directory|folder|checkpoint|dataset|annotation|image|label|video)s?\b.{0,160}\b(?:not found|does not exist|doesn't exist|do not exist|is missing|cannot be found|could not be found)",
                (
                    "keras 3.15.1",
                    "ValueError: File not found: filepath=c.keras. Please ensure the file is an accessible `.keras` zip file.",
                ),
            ),
            unless="shared object|librar|module|attribute|dlopen|from (?:the )?checkpoint",
        ),
    ),
    lines=(
        rule(0.93, r"can't open file '?[^\n']{1,200}'?: \[Errno 2\]"),
        rule(0.82, r"Check failed: .{0,80}\((?:-1 vs\. -1|2 vs\. 0)\) (?:File not found|No such file)"),
        rule(
            0.42,
            says(
                "(?<!shared object file: )No such file or directory",
                ("CPython 3.11.7", "FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent'"),
            ),
        ),
    ),
)
