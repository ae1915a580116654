"""How the program was set up and how its processes ended: workers, natives, versions, signals, schedulers."""

from __future__ import annotations

from holdfast.diagnosis.reading.rule import Rule, any_of, flatten, rule, rules

LIBRARIES = (
    r"(?:tensorflow|keras|torch|torchvision|torchaudio|torchtext|numpy|np|jax|jaxlib|flax|optax|haiku|scipy|sklearn|pandas|PIL|cv2"
    r"|transformers|tokenizers|datasets|accelerate|peft|diffusers|lightning|pytorch_lightning|torchmetrics|deepspeed|apex|h5py"
    r"|google\.protobuf|tensorboard|tf|K|gym|gymnasium|triton|xformers|bitsandbytes|trl|librosa|skimage|networkx|matplotlib"
    r"|huggingface_hub|timm|mmcv|detectron2|fastai|spacy|nltk|gensim|ray|wandb|setuptools|pkg_resources|collections|inspect|typing)"
)
# A name missing in a file of the user's own is no library's doing; and such a file may hide a library.
OWN_FILE = (
    r"from '[\w.]+' \((?![^)]{0,300}(?:site-packages|dist-packages|lib[/\\]python\d))[^)]{0,200}[/\\][^)]{1,100}\)"
)
SHADOWED = (
    r"from '(?P<name>random|string|json|logging|types|typing|queue|signal|copy|enum|token|code|profile|inspect|statistics|torch|tensorflow|keras|numpy|jax|transformers|datasets)'"
    r" \((?![^)]{0,300}(?:site-packages|dist-packages|lib[/\\]python\d))[^)]{0,300}[/\\](?P=name)\.py\)"
    r"|partially initialized module '(?P<hidden>torch|tensorflow|keras|numpy|jax|transformers|datasets)' has no attribute"
)
ABSENT = r"^\W*(?:\w+Error: )?(?:Could not import [\w.]+|Missing optional dependency)|\brequires (?:the )?[`'\"]?[\w.-]+[`'\"]?(?: package| library)? (?:to be installed|but it was not found)|\b(?:is|are) not installed\b|[Pp]lease (?:pip )?install "
MOVED = any_of(
    r"'module' object has no attribute",
    r"module '" + LIBRARIES + r"(?:\.[\w.]+)?' has no attribute",
    r"No module named '?" + LIBRARIES + r"\.[\w.]+'?",
    r"cannot import name '?\w+'? from '?(?!\w*__main__)[\w.]+'?",
    r"(?:is|are|was|has been|have been) (?:deprecated and )?(?:removed|no longer (?:supported|available))|no longer support(?:s|ed)|was deprecated in .{0,40} and (?:is now )?removed",
    r"not compatible with eager execution|Legacy autograd function|`np\.\w+` was a deprecated alias|deprecated alias for the builtin",
    r"[Uu]nexpected keyword argument passed to|Unrecognized keyword arguments? passed to|Unrecognized keyword arguments|Keyword argument not understood|[Uu]nexpected argument.{0,40}`",
    r"filepath provided must end in|not a valid argument for kwarg|is deprecated in the new Keras optimizer|argument\(s\) (?:are|is) not supported",
    r"A KerasTensor cannot be used as input to a TensorFlow function|Weights only load failed|File format not supported",
    r"`?\w+`? is not available (?:when using|with) (?:TensorFlow|Keras|PyTorch|JAX) \d",
    r"deprecat\w+ .{0,80}(?:use|switch to|replaced by) |^AttributeError: \S{1,80} (?:is|was) deprecated|Only instances of `keras\.Layer` can be added|Argument\(s\) not recognized",
)
KERAS_OBJECTS = (
    r"'(?:Sequential|Functional|Model|Adam|SGD|RMSprop|History|Tensor|EagerTensor|KerasTensor|DataFrame|Index|Figure\w*|Trainer|TrainingArguments"
    r"|Tokenizer\w*|\w+Tokenizer(?:Fast)?|\w*Config|\w*Optimizer|\w*Scheduler|Dense|InputLayer|\w*ForCausalLM|\w+Model|FreeTypeFont|DataLoader\w*|_\w+DataLoaderIter)' object has no attribute"
)
VERSIONS = any_of(
    r"requires? [\w.\[\]-]+ ?[<>=!~]=? ?[\d.]+[^\n]{0,60}but (?:you have|found|got)|is required for a normal functioning of this module",
    r"VersionConflict|DistributionNotFound|dependency resolver|conflicting dependencies|ResolutionImpossible",
    r"Descriptors (?:cannot|should not) (?:not )?be created directly|Downgrade the protobuf|expected bytes, Descriptor found|google/protobuf/pyext/\w+\.cc:\d+: bad argument",
    r"compiled with different CUDA|operator torchvision::\w+ does not exist|Couldn't load custom C\+\+ ops|(?:torchvision|torchaudio).{0,60}(?:incompatible|compiled)",
    r"Keras requires TensorFlow|not yet supported in Transformers|is newer than and incompatible with jax version|jaxlib version .{0,40}incompatible|jaxlib is version",
    r"compiled against (?:API|ABI) version|size changed, may indicate binary incompatibility|multiarray failed to import|compiled using NumPy 1",
    r"Numpy is not available|_ARRAY_API not found|requires the (?:PyTorch|TensorFlow|\w+) library but it was not found|Unable to import required dependenc",
    r"you (?:need|must) (?:to )?(?:install|upgrade|downgrade)|[Pp]lease (?:install|upgrade|downgrade|update) [`'\"]?\w+|(?:is )?incompatible (?:with (?:the )?)?(?:installed )?version",
    r"detected CUDA version .{0,40}mismatches the version|does not match the version torch was compiled with|requires `?\w[\w.-]{0,40}[<>=]=?[\d.]+`?: Please run|"
    r"Cannot convert a symbolic Tensor .{0,120}to a numpy array|unsupported pickle protocol|bad marshal data|The installed version of \S+ .{0,60}(?:is|does)|numpy\.core\.(?:multiarray|umath) failed|Numba needs NumPy",
)
# What was written for Python 2 or for a library's own kind of dict.
OF_ANOTHER_TIME = any_of(
    r"'dict' object has no attribute '(?:iteritems|itervalues|iterkeys|has_key|unfreeze|freeze)'|'dict_\w+' object (?:is not subscriptable|does not support indexing)",
    r"'(?:map|filter|zip|range|dict_\w+)' object (?:is not subscriptable|has no attribute '(?:sort|append|index|shape|reverse)')|object of type '(?:map|filter|zip)' has no len",
    r"\bname '(?:xrange|unicode|raw_input|basestring|unichr|execfile|reload|cmp)' is not defined|Missing parentheses in call to 'print'|No module named '?(?:cPickle|urllib2|Queue|ConfigParser|StringIO|commands|cStringIO|HTMLParser|itertools\.izip)(?![\w.])",
    r"module '(?:string|itertools|time|os|sys|types|asyncio|collections|inspect|fractions|math|imp)' has no attribute '",
)
PICKLE = any_of(
    r"Can't pickle|cannot pickle|can't pickle|Can't get local object|Could not pickle|not picklable|(?:cannot|can't|can not) be pickled|Pickling an AuthenticationString",
    r"Can't get attribute '[\w.]+' on <module '__m(?:p_)?main__'",
)
CLASHES = any_of(
    r"Initializing lib\w+[^\n]{0,80}but found [^\n]{0,60}already initialized|OMP: Error #15|multiple copies of the OpenMP runtime have been linked",
    r"undefined symbol|symbol lookup error|version `?(?:GLIBC|GLIBCXX|CXXABI)[\w.]*'? not found|Symbol not found",
    r"cannot enable executable stack as shared object|not defined in file \S{1,80} with link time reference|static TLS block|MKL FATAL ERROR|MKL_THREADING_LAYER|incompatible with libgomp",
    r"File already exists in database|requires version [\d.]+ of the Protocol Buffer|Loaded (?:runtime )?cudnn library: [\d.]+[^\n]{0,60}but source was compiled|Found \w+ version \d+, but JAX was built against version \d",
    r"cuDNN version incompatibility|was compiled against .{0,60}but found runtime version|CUDNN_STATUS_(?:VERSION|SUBLIBRARY_VERSION)_MISMATCH",
    r"mach-o.{0,60}(?:wrong|incompatible) architecture|wrong ELF class|invalid ELF header|multiple libomp|_ZN\d+\w{6,}",
)
DIED = (
    r"(?:child|sub-?|worker|helper|loader) ?process(?:es)?\b.{0,40}\b(?:abruptly|unexpectedly|died|was killed|crashed)"
)
HEAP = r"free\(\): |malloc\(\): |realloc\(\): |munmap_chunk\(\)|double free|corrupted (?:size|double|unsorted)|(?:or|memory) corruption|stack smashing"
# What the shell says of a child that got SIGKILL, also in other tongues, also right behind a progress bar.
KILLED = (
    r"^(?:.{0,200}: line \d+: *\d+ )?(?:Killed\b(?! process| \d| by)|已杀死|已砍掉|Getötet$|Processus arrêté|Terminado \(killed\)|Убито|強制終了|죽었음)"
    r"|\d(?:\]|s/it\]?|it/s\]?)?Killed$"
    r"|^(?:zsh: |\[\d+\] {1,4}[-+]? {0,4}\d+ )killed\b|terminated by signal (?:9\b|SIGKILL)"
)
CRASHED = any_of(
    r"段错误|已放弃 ?\(|中止 ?\(コアダンプ|Speicherzugriffsfehler|Erreur de segmentation|Ошибка сегментирования|세그멘테이션",
    r"Segmentation fault|SIGSEGV|^Aborted\b(?! by)|\d Aborted\b|Aborted \(core|\*\*\* Aborted at \d|\*\*\* SIG(?:SEGV|ABRT|BUS|FPE|ILL)\b.{0,20} received by|SIGABRT|Floating point exception|access violation|0xC0000005|core dumped",
    r"terminate called|pure virtual method called|exit ?code:? 13[49]\b|exitcode\s{0,4}: -(?:6|11)\b|Check failed:|-1073741819|3221225477|0xC0000(?:409|374|0FD)\b|-10737(?:40791|40940|41571)|32212(?:26505|26356)",
)
DEVICES = any_of(
    r"Expected all tensors to be on the same device|Tensor on device \S+ is not on the expected device|on the same device, but (?:found|got)|but found at least two devices",
    r"Input type \(torch\.cuda\.\w+\) and weight type \(torch\.(?!cuda)|\(torch\.\w*Tensor\) and weight type \(torch\.cuda",
    r"type torch\.cuda\.\w+ but (?:found|got) type torch\.(?!cuda)|type torch\.(?!cuda)\w+ but (?:found|got) type torch\.cuda|Expected object of (?:device type|backend) \w+ but got|is on cpu, but expected|is on CPU, but expected|on different (?:GPUs|devices)|conflicting devices",
    r"must have its parameters and buffers on device|can't convert (?:CUDA|cuda|mps|xpu)[^\n]{0,40}to numpy|either on cpu or on the same device",
    r"Input, output and indices must be on the current device|incompatible devices for jitted|expected (?:it|them) to be on GPU|indices should be (?:either )?on",
    r"tensors? (?:should|must) be on (?:the same|cuda|gpu)|Expected a '?cuda'? device",
    r"Passed CPU tensor to MPS op|Placeholder storage has not been allocated on MPS",
)

EXCEPTIONS: tuple[Rule, ...] = flatten(
    (
        (
            rule("interrupted", 0.9, r"^", "KeyboardInterrupt"),
            rule(
                "worker-spawn-unguarded",
                0.97,
                r"before the\s+current process has finished its bootstrapping|freeze_support\(\)",
            ),
            rule(
                "cuda-in-forked-worker",
                0.97,
                r"re-initialize CUDA in forked|fork(?:ed)?.{0,60}CUDA|CUDA.{0,80}'spawn' start method",
            ),
            rule(
                "cuda-in-forked-worker",
                0.75,
                r"CUDA error: initialization error|cuda runtime error \(3\)|CUDA_ERROR_NOT_INITIALIZED",
            ),
            rule(
                "unpicklable-worker-object",
                0.93,
                PICKLE,
                frames=r"multiprocessing|popen_|reduction|joblib|concurrent|spawn|ray[/\\]|dill|cloudpickle",
            ),
            rule("unpicklable-worker-object", 0.84, PICKLE, unless=r"torch\.save|deepcopy"),
            rule(
                "unpicklable-worker-object",
                0.74,
                r"Ran out of input|pickle data was truncated",
                frames=r"multiprocessing[/\\]+spawn|reduction\.pickle",
            ),
            rule(
                "unpicklable-worker-object",
                0.8,
                r"^",
                "AttributeError TypeError ImportError ModuleNotFoundError",
                deepest=r"multiprocessing[/\\]+spawn\.py$",
            ),
            rule("unpicklable-worker-object", 0.85, r"failed to un-?serialize.{0,120}picklable"),
            rule("worker-died", 0.76, DIED),
            rule(
                "worker-died",
                0.78,
                r"(?:DataLoader )?worker \(pid\(?s?\)?[^\n]{0,40}(?:exited unexpectedly|killed by signal)|BrokenProcessPool|TerminatedWorkerError|process pool was terminated abruptly",
            ),
            rule(
                "worker-died",
                0.7,
                r"background workers are no longer alive|A worker process managed by the executor was unexpectedly terminated|worker died|WorkerCrashedError|ActorDiedError|actor died unexpectedly",
            ),
            rule("deadlock", 0.52, r"DataLoader timed out after \d+ seconds"),
            rule("device-mismatch", 0.95, DEVICES),
            rule("device-mismatch", 0.6, r"deserialize object on (?:a )?(?:CUDA|cuda)"),
            rule(
                "autograd-inplace",
                0.96,
                r"modified by an in-?place operation|leaf Variable that requires grad (?:is being|has been)|is a view and (?:is being|its base)|is being modified in-?place",
            ),
        ),
        rules(
            "native-library-conflict",
            (0.85, CLASHES),
            (0.7, r"dynamic module does not define (?:init|module export) function"),
            (0.62, r"RET_CHECK failure .{0,200}\bdnn != nullptr"),
            (0.72, r"DLL load failed[^\n]{0,200}specified procedure could not be found"),
            (
                0.6,
                r"0xC00001(?:35|39)\b|-10737415(?:15|11)|DLL load failed[^\n]{0,60}_pywrap|Failed to load the native TensorFlow runtime",
            ),
        ),
        rules(
            "dependency-conflict",
            (0.85, VERSIONS),
            (0.62, r"No module named"),
            (0.6, r"lib(?:GL|glib|sndfile|gomp|stdc|X)[\w.+-]*: cannot open shared object"),
            (0.5, r"DLL load failed"),
        ),
        (
            rule(
                "dependency-conflict",
                0.74,
                r"descriptor|proto",
                "TypeError AttributeError SystemError ImportError RuntimeError",
                frames=r"google[/\\]protobuf|_pb2\.py",
            ),
            rule("api-incompatible", 0.86, OF_ANOTHER_TIME),
            rule("api-incompatible", 0.87, MOVED, unless=r"partially initialized module|circular import|" + OWN_FILE),
            rule("unhandled-exception", 0.78, SHADOWED, headline="The script's own $name.py hides the module $name"),
            rule("dependency-conflict", 0.82, ABSENT, "ImportError ModuleNotFoundError"),
            rule(
                "api-incompatible",
                0.9,
                r"'str' object has no attribute 'decode'",
                frames=r"hdf5_format|saving|h5py|load_weights",
            ),
            rule("api-incompatible", 0.6, r"'str' object has no attribute 'decode'"),
            rule("api-incompatible", 0.66, KERAS_OBJECTS, "AttributeError"),
            rule("api-incompatible", 0.66, r"has no attribute '_(?:keras|inbound|outbound)\w*'", "AttributeError"),
            # A class of a library, by its name, and no place: one of two libraries is of another time.
            rule(
                "api-incompatible",
                0.56,
                r"'(?-i:[A-Z]\w*[a-z]\w*[A-Z]\w*)' object has no attribute '|'(?:AdamW|Adam|SGD)' object has no attribute '",
                "AttributeError",
                unless="'NoneType'|'EagerTensor'|'DataFrame'",
                outside=r"\S",
            ),
            # A library does not find what it expects in an object of its own kind.
            rule(
                "api-incompatible",
                0.6,
                r"'[A-Z]\w+' object has no attribute '",
                "AttributeError",
                unless="'NoneType'|'Tensor'|'EagerTensor'|'DataFrame'|'Series'",
                deepest=r"site-packages|dist-packages",
            ),
            rule(
                "dependency-conflict",
                0.7,
                r"^KeyError: '[a-z]",
                "KeyError",
                frames=r"configuration_auto|tokenization_auto",
            ),
            rule("dependency-conflict", 0.66, r"Tokenizer class \w+ does not exist or is not currently imported"),
            rule(
                "api-incompatible",
                0.66,
                r"got an unexpected keyword argument|takes (?:from )?\d+ (?:to \d+ )?positional arguments? but|Could not interpret optimizer",
                frames=r"site-packages|dist-packages",
            ),
            rule(
                "api-incompatible",
                0.72,
                r"cannot import name '?\w+'?$",
                "ImportError",
                frames=r"site-packages|dist-packages",
            ),
            rule("api-incompatible", 0.6, r"cannot import name '?\w+'?$", "ImportError", outside=r"\S"),
            rule("api-incompatible", 0.58, r"got an unexpected keyword argument"),
            # A model's description that was written by another version of Keras.
            rule(
                "api-incompatible",
                0.68,
                r"^",
                "KeyError TypeError ValueError AttributeError",
                frames=r"\b(?:from_config|layer_from_config|model_from_config|model_from_json|model_from_yaml|deserialize_keras_object|func_load)\b",
                deepest=r"keras",
            ),
            rule(
                "api-incompatible",
                0.55,
                r"Unknown (?:layer|metric|loss|optimizer)|Could not (?:locate|deserialize) (?:class|object)|Error when deserializing",
            ),
            rule(
                "illegal-instruction",
                0.97,
                r"built using AVX|compiled to use (?:AVX|SSE)\w* instructions|Illegal instruction",
            ),
            rule(
                "cuda-library-missing",
                0.8,
                r"'NoneType' and 'str'|expected str, bytes or os\.PathLike object, not NoneType|No such file or directory: '\S{0,80}nvcc",
                frames=r"CUDA_HOME|bin[/\\]nvcc|get_cuda_bare_metal",
            ),
            rule("terminated", 0.9, r"got sig(?:nal|val): ?(?:15|12|10)\b|SIGTERM", "SignalException"),
            rule("terminated", 0.85, r"SIGTERM|preempt|time limit", unless=r"Exited|exit code"),
            rule("terminal-closed", 0.9, r"got sig(?:nal|val): ?1\b|SIGHUP", "SignalException"),
            rule("interrupted", 0.85, r"got signal: 2\b", "SignalException"),
            rule(
                "io-stall",
                0.6,
                r"\[Errno 116\]|Stale (?:NFS )?file handle|Transport endpoint is not connected",
            ),
            rule(
                "io-stall", 0.45, r"\[Errno 5\]|Input/output error"
            ),  # a dying disk, a lost mount, or one that is full
        ),
    )
)
LINES: tuple[Rule, ...] = flatten(
    (
        rules(
            "killed",
            (
                0.35,
                KILLED
                + r"|signal 9|SIGKILL|exit(?:ed with)? ?(?:code|status)?:? 137|<Signals.SIGKILL|exitcode\s{0,4}: -9\b|return ?code =? ?-9\b",
            ),
        ),
        rules(
            "host-memory-exhausted",
            (
                0.45,
                KILLED
                + r"|signal 9\b|SIGKILL|exit(?:ed with)? ?(?:code|status)?:? 137|<Signals.SIGKILL|exitcode\s{0,4}: -9\b|return ?code =? ?-9\b",
            ),
        ),
        rules(
            "illegal-instruction",
            (
                0.95,
                r"Illegal instruction|非法指令|SIGILL|exitcode\s{0,4}: -4\b|exit code 132|0xC000001D|compiled to use (?:AVX|SSE)\w* instructions|trap invalid opcode",
            ),
        ),
        rules(
            "native-library-conflict",
            (0.9, CLASHES),
            (0.6, r"RET_CHECK failure .{0,200}\bdnn != nullptr|already registered for platform"),
        ),
        rules("native-crash", (0.62, r"\[\d+\]: segfault at|segfault at [0-9a-f]+ ip"), (0.63, HEAP), (0.6, CRASHED)),
        rules(
            "worker-spawn-unguarded",
            (0.9, r"before the\s+current process has finished its bootstrapping|freeze_support\(\)"),
        ),
        rules("cuda-in-forked-worker", (0.35, r"os\.fork\(\) was called.{0,80}JAX is multithreaded")),
        rules(
            "terminated",
            (0.96, r"CANCELLED AT .{0,40}DUE TO (?:TIME LIMIT|PREEMPTION|JOB REQUEUE)"),
            (0.85, r"\bJobState=(?:TIMEOUT|PREEMPTED|CANCELLED|DEADLINE)\b"),
            (0.78, r"\*\*\* (?:JOB|STEP) [\d.]+ ON \S+ CANCELLED AT"),
            (
                0.95,
                r"TERM_RUNLIMIT|walltime \d+ exceeded|job killed: walltime|CPU time limit exceeded|SIGXCPU|exceeded (?:the )?(?:time|wall ?clock) limit|DeadlineExceeded",
            ),
            (
                0.9,
                r"imminent node shutdown|\b(?:job|task|instance|node|pod|worker)\b.{0,40}\bpreempted\b(?!,? or)|[Ss]pot (?:instance|VM).{0,40}(?:interrupt|reclaim|terminat)|has been preempted|Preempted by|received a shutdown signal",
            ),
            (
                0.8,
                r"[Rr]eceived (?:signal )?(?:SIGTERM|15\b)|Received 15 death signal|SIGTERM received|Process \d+ got signal: 15|caught SIGTERM|[Gg]raceful shutdown (?:initiated|requested|started)",
            ),
            (
                0.6,
                r"^Terminated(?:: 15)?$|^.{0,200}: line \d+: *\d+ Terminated\b|[Cc]aught signal (?:15|SIGTERM)\b|exit (?:code|status):? 143\b|exitcode\s{0,4}: -15\b",
            ),
            (0.8, r"Job allocation \d+ has been revoked"),
            (0.62, r"lame workers found|TPU (?:node |worker )?(?:was |has been )?preempted"),
            (0.1, r"closing signal SIGTERM"),
        ),
        rules(
            "interrupted",
            (0.6, r"^\^C$|\d(?:s/it|it/s)[^\n]{0,200}\]\^C$|exit code 130\b"),
            (0.66, r"^\^CTraceback \(most recent call last\)"),
            (0.85, r"got signal: 2\b"),
            (0.8, r"^\^C.{0,80}(?:[Ss]top|[Ii]nterrupt|signal)|[Ss]top signal received|(?:received|caught) SIGINT"),
        ),
        rules(
            "terminal-closed",
            (0.85, r"got signal: 1\b|closing signal SIGHUP|Received 1 death signal|^Hangup$"),
            (0.6, r"SIGHUP"),
        ),
        rules(
            "machine-went-down",
            (
                0.88,
                r"DUE TO NODE FAILURE|NODE_FAIL|Kernel panic|system is going down for (?:reboot|power)|-- Boot [0-9a-f]{20,}",
            ),
            (0.45, r"BUG: soft lockup|rcu_\w+ (?:self-)?detected stall"),
            (
                0.85,
                # sinfo cuts a reason off after 20 characters
                r"[Nn]ode unexpectedly re(?:boot|\s|$)|[Uu]nexpected(?:ly)? (?:reboot|power (?:loss|off|cycle|outage))|rebooted without cleanly shutting down|Kernel-Power\W.{0,60}\b41\b|\b41\b.{0,60}Kernel-Power",
            ),
            (0.7, r"-- Reboot --|hard LOCKUP|node .{0,60}marked (?:as )?dead"),
        ),
        rules(
            "io-stall",
            (0.85, r"task \S{1,40}:\d+ blocked for more than \d+ seconds|nfs: server \S+ not responding"),
            (
                0.8,
                r"Lustre: .{0,300}(?:timed out for slow reply|was lost; in progress)|nfs: server \S+ (?:timed out|not responding)|ceph: .{0,60}(?:hung|session lost)",
            ),
            (
                0.72,
                r"CIFS: .{0,60}has not responded|nvme\S* .{0,60}(?:timeout, (?:aborting|reset)|controller is down)|ata\d[\d.]*: .{0,40}(?:hard resetting link|failed command)",
            ),
            (0.7, r"[Rr]emounting filesystem read-only|EXT4-fs error|XFS \(\S+\): .{0,60}(?:I/O error|shut ?down)"),
            (0.6, r"Stale (?:NFS )?file handle|I/O error, dev|Buffer I/O error|LustreError"),
        ),
        rules(
            "dependency-conflict",
            (0.8, VERSIONS),
            (0.6, r"pip's dependency resolver|which is incompatible"),
            (0.72, r"fatal error: [\w/.+-]{1,80}\.(?:h|hpp|cuh): No such file"),
            (
                0.6,
                r"Error compiling objects for extension|error: command '\S*(?:gcc|g\+\+|nvcc|cl\.exe)\S*' failed|Failed building wheel for",
            ),
        ),
        rules(
            "worker-died",
            (
                0.55,
                r"could be because a worker has died|exit codes of the workers are|DataLoader worker .{0,60}(?:killed|exited unexpectedly)|worker died unexpectedly|A worker died or was killed",
            ),
            (0.55, r"has been shut down. This was caused by an exception on one of the ranks"),
        ),
        rules("cpu-oversubscribed", (0.35, r"DataLoader will create \d+ worker processes in total")),
    )
)
