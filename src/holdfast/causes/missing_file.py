from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, words

NAMED_FILE = r"(?:filepath=|File not found: )(?!filepath=)(?P<named>[^\s,;'\"]+?)[.,]?(?:\s|$)"
OFFLINE = "couldn't connect to|[Cc]heck your (?:internet )?connection|Internet connection is on"
MISSING = (
    "No such file or directory",
    r"\[Errno 2\]",
    "Failed to find any matching files",
    r"errno = 2\b",
    r"unable to (?:synchronously )?open file(?! \((?!unable to open|no such|name))",
    "does not appear to have a file named",
    "File not found",
    "file does not exist",
    "(?:file|directory|path|folder) .{0,160}(?:does not|doesn't) exist",
    "Can't load (?:the )?(?:tokenizer|config|model|image processor|feature extractor|weights)",
    "Can't find (?:a )?(?:file|model|config)",
    "is not a valid checkpoint: ",
    "Can't load save_path when it is None",
    "Couldn't match files for checkpoint",
    "No files matched pattern",
    "is not a local folder and is not a valid model identifier",
    "SavedModel file does not exist",
    "No file or directory found",
    "Couldn't find (?:a dataset|any data|file)",
    "cannot find the (?:path|file)",
    "NewRandomAccessFile failed to Create/Open",
    "NewReadOnlyMemoryRegionFromFile failed",
    r"no file named (?:pytorch_model|model\.safetensors|tf_model)",
    "Cannot find (?:file|checkpoint|the)",
    "Dataset not found",
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
        rule(0.5, "'NoneType' object has no attribute '(?:shape|astype|copy)'", outside=r"\S"),
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
            r"No (?:images|files|data|samples|labels|annotations)\b.{0,40}(?:found|in)",
            "num_samples=0",
        ),
        rule(0.6, r"!_src\.empty\(\)", "'NoneType' object has no attribute 'shape'", frames="cv2|imread"),
        rule(0.55, r"!_src\.empty\(\)", r"!ssize\.empty\(\)", r"empty\(\) in function '(?:cvtColor|resize)'"),
        rule(
            0.8,
            r"(?:file|path|directory|folder|checkpoint|dataset|annotation|image|label|video)s?\b.{0,160}\b(?:not found|does not exist|doesn't exist|do not exist|is missing|cannot be found|could not be found)",
            unless="shared object|librar|module|attribute|dlopen|from (?:the )?checkpoint",
        ),
    ),
    lines=(
        rule(0.93, r"can't open file '?[^\n']{1,200}'?: \[Errno 2\]"),
        rule(0.82, r"Check failed: .{0,80}\((?:-1 vs\. -1|2 vs\. 0)\) (?:File not found|No such file)"),
        rule(0.42, "(?<!shared object file: )No such file or directory"),
    ),
)
