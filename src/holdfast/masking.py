"""Tokens and passwords in command lines and in what is printed, masked before they are stored or shown. Pure; imports nothing of ours.

What is secret is told by the name it is given under (`--api-key`, `HF_TOKEN=`, `?token=`), by its place (the password of a
URL, an Authorization header), or by its shape (`hf_…`, `ghp_…`). Names of the trade stay: `--tokenizer bert`, `--pad-token`,
`--max-tokens 512`, `--key-dim 64`, `--image-key jpg`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

MASK = "***"
_ALWAYS = {"password", "passwd", "passphrase", "secret", "secrets", "apikey", "credentials"}
_OF_TOKENS = {
    "access", "api", "auth", "aws", "bearer", "bot", "ci", "clearml", "comet", "deploy", "gh", "github", "gitlab", "hf", "hub",
    "huggingface", "login", "mlflow", "neptune", "npm", "oauth", "personal", "private", "pypi", "refresh", "registry", "security",
    "session", "slack", "upload", "user", "wandb",
}  # fmt: skip
_OF_KEYS = {
    "access", "account", "anthropic", "api", "auth", "aws", "azure", "comet", "encryption", "hf", "license", "master", "neptune",
    "openai", "private", "secret", "shared", "signing", "storage", "subscription", "wandb",
}  # fmt: skip
_ABOUT_A_SECRET = {
    "file",
    "path",
    "dir",
    "name",
    "env",
    "var",
    "length",
    "len",
    "count",
    "type",
    "url",
    "id",
}  # no secret itself
_SWITCHES = {"use", "no", "with", "has", "show", "skip", "allow", "require", "without", "enable", "disable"}
_HARMLESS = re.compile(r"(?i:true|false|none|null|yes|no|\$.*|%\w+%|)")
_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{18,}|sk-[\w-]{20,}|xox[abprs]-[\w-]{10,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,})"
)
# Names have a length at most and begin where none goes on: a word of a megabyte is gone through once.
_URL_PASSWORD = re.compile(r"((?<![a-zA-Z0-9])[a-zA-Z][\w+.-]{0,30}://[^\s/:@]{0,200}:)(?!\*\*\*@)[^\s/@]{1,500}(?=@)")
_HEADER = re.compile(r"(?i)(\b(?:authorization\s*[:=]\s*)?(?:bearer|basic)\s+)(?!\*\*\*)(?=[^\s'\"]*\d)[^\s'\"]{8,}")
_LOGIN = re.compile(r"(\blogin\s+(?:--relogin\s+)?)[0-9a-f]{40}\b")  # `wandb login KEY`
_GIVEN = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<name>[A-Za-z_][\w.-]{0,99})(?P<is>=|:\s?(?!//))(?P<quote>['\"]?)(?P<value>[^\s'\"&;]+)"
)
_QUERY = re.compile(r"(?<=[?&])(?P<name>[A-Za-z_][\w.-]{0,99})(?P<is>=)(?P<quote>)(?P<value>[^\s'\"&;#]+)")
_FOLLOWED = re.compile(r"(?P<name>(?<!\S)--?[A-Za-z][\w.-]*)(?P<is>\s+)(?P<quote>['\"]?)(?P<value>[^\s'\"-][^\s'\"]*)")
# As programs print them: `"api_key": "…"` of a dict or of JSON, `password = …` of a settings file, and keys in PEM.
_NAMED = re.compile(
    r"(?P<before>(?<![A-Za-z0-9_.])(?P<mark>['\"]?)(?P<name>[A-Za-z_][\w.-]{0,99})(?P=mark)\s{0,4}[:=]\s{0,4})"
    r"(?P<value>'[^'\n]{1,4000}'|\"[^\"\n]{1,4000}\"|[^\s'\"&;,(){}\[\]<>]{1,200})"
)
_REST = re.compile(r"[^\s'\"&;,(){}\[\]<>]*")
_COUNTED = re.compile(r"[\d.,]{1,12}")  # `tokens: 512` and `token = 3` are figures
_PEM = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[^-]{1,20000}(-----END|$)")


def masked_command(words: Sequence[str]) -> list[str]:
    """Word for word; a word may be a whole line for a shell."""
    found = [masked_text(word) for word in words]
    for number, (word, following) in enumerate(itertools.pairwise(words), 1):
        if (_names_the_next(word) and not following.startswith("-") and not _HARMLESS.fullmatch(following)) or (
            word == "login" and re.fullmatch(r"[0-9a-f]{40}", following)
        ):
            found[number] = MASK
    return found


def _names_the_next(word: str) -> bool:
    return word.startswith("-") and "=" not in word and not any(map(str.isspace, word)) and _takes_a_secret(word)


def masked_text(text: str) -> str:
    """A command line in one piece, or a word of one."""
    text = _URL_PASSWORD.sub(rf"\g<1>{MASK}", text)
    text = _HEADER.sub(rf"\g<1>{MASK}", text)
    text = _LOGIN.sub(rf"\g<1>{MASK}", text)
    text = _GIVEN.sub(_given, _QUERY.sub(_given, text))
    text = _FOLLOWED.sub(_followed, text)
    return _SHAPES.sub(MASK, text)


def masked_output(text: str) -> str:
    """What a program printed, of any length."""
    text = _PEM.sub(rf"\g<1>{MASK}\g<2>", masked_text(text))
    pieces, begin, place = [], 0, 0
    while (match := _NAMED.search(text, place)) is not None:
        place = match.start("value")  # `wandb: token = …`: what is given under a harmless name may be a name itself
        if _is_named_secret(match["name"], match["value"].strip("'\"")):
            quote = match["value"][0] if match["value"][0] in "'\"" else ""
            pieces += [text[begin:place], f"{quote}{MASK}{quote}"]
            begin = place = match.end() if quote else _REST.match(text, match.end()).end()  # type: ignore[union-attr]
    return "".join([*pieces, text[begin:]])


def is_secret_name(name: str) -> bool:
    """Of an option, a variable or a parameter."""
    parts = _parts(name)
    if not parts or parts[-1] in _ABOUT_A_SECRET:
        return False
    before = parts[-2] if len(parts) > 1 else ""
    if name.isupper() and len(parts) > 1 and parts[-1] in ("key", "token", "pwd"):  # of the environment
        return True
    if parts[-1] == "token":
        return not before or before in _OF_TOKENS
    named = _ALWAYS.intersection(parts) or any(part.endswith("password") for part in parts)  # PGPASSWORD
    return bool(named) or (parts[-1] == "key" and before in _OF_KEYS)


def _takes_a_secret(option: str) -> bool:
    return is_secret_name(option) and _parts(option)[0] not in _SWITCHES


def _parts(name: str) -> list[str]:
    """`--wandbApiKey`, `WANDB_API_KEY` and `logger.wandb-api-key` are the same three."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.rpartition(".")[2])
    return [part for part in re.split(r"[\s_-]+", spaced.lower()) if part]


def _given(match: re.Match[str]) -> str:
    whole, name, value = match[0], match["name"], match["value"]
    if not is_secret_name(name) or _HARMLESS.fullmatch(value):
        return whole
    return f"{name}{match['is']}{match['quote']}{MASK}"


def _followed(match: re.Match[str]) -> str:
    if not _takes_a_secret(match["name"]) or _HARMLESS.fullmatch(match["value"]):
        return match[0]
    return f"{match['name']}{match['is']}{match['quote']}{MASK}"


def _is_named_secret(name: str, value: str) -> bool:
    return is_secret_name(name) and not (value == MASK or _HARMLESS.fullmatch(value) or _COUNTED.fullmatch(value))
