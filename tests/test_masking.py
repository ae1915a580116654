"""Tokens and passwords do not reach a record or a page; what only looks like one stays readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.masking import MASK, is_secret_name, masked_command, masked_text

NAMES = (
    "api-key", "api_key", "apikey", "token", "hf_token", "auth-token", "password", "db.password", "client_secret", "wandb-key",
    "WANDB_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "DB_PASSWORD", "accessToken", "secret", "passphrase",
)  # fmt: skip
SECRETS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/_.", min_size=8, max_size=40).map(
    lambda text: f"x7{text}"
)
WAYS = {
    "option": lambda name, secret: [f"--{name}", secret],
    "one word": lambda name, secret: [f"--{name}={secret}"],
    "assignment": lambda name, secret: ["env", f"{name}={secret}", "python"],
    "nested": lambda name, secret: [f"model.{name}={secret}"],
    "shell": lambda name, secret: ["bash", "-c", f"export {name}='{secret}'; python a.py --{name} {secret} --epochs 3"],
    "query": lambda name, secret: [f"https://host/data?shard=1&{name}={secret.replace('/', '')}"],
}


@given(st.sampled_from(NAMES), SECRETS, st.sampled_from(sorted(WAYS)))
def test_what_is_given_under_the_name_of_a_secret_is_masked(name: str, secret: str, way: str) -> None:
    words = ["python", "train.py", *WAYS[way](name, secret), "--epochs", "10"]
    found = masked_command(words)
    hidden = secret.replace("/", "") if way == "query" else secret
    assert hidden not in " ".join(found) and MASK in " ".join(found)
    assert len(found) == len(words) and found[:2] == words[:2] and found[-2:] == words[-2:]
    assert masked_command(found) == found


@pytest.mark.parametrize("name", NAMES)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name) and is_secret_name(f"--{name}")


PLAIN = (
    "--tokenizer bert", "--key-dim 64", "--max-tokens 512", "--monkey 3", "--pad_token <pad>", "--eos-token </s>", "--image-key jpg",
    "--sort_key loss", "--token-file t.txt", "--password-file /run/p", "--keyboard qwerty", "--secret-name s3", "--num_tokens=5",
    "--key a", "--use-auth-token train.py", "--revision 0123456789abcdef0123456789abcdef01234567", "PWD=/home/me", "tokenizer=gpt2",
    "model.key_dim=8", "https://host:8080/path", "git@github.com:me/x.git", "s3://bucket/key=1/part", "--token $HF_TOKEN",
    "--token-type-ids 3", "--optimizer sgd", "sk-learn", "-c import os", "--basic 5", "--hidden_act bearer",
)  # fmt: skip


@pytest.mark.parametrize("line", PLAIN)
def test_what_only_looks_like_one_stays(line: str) -> None:
    words = ["python", "train.py", *line.split(" ")]
    assert masked_command(words) == words and masked_text(line) == line


SHAPES = (
    "hf_" + "aB3" * 12, "ghp_" + "aB3d" * 9, "github_pat_" + "aB3d" * 10, "sk-" + "a1B2" * 8, "AKIA" + "ABCD1234" * 2,
    "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", "xoxb-123456789012-abc", "glpat-" + "a1b2c3" * 4,
)  # fmt: skip


@pytest.mark.parametrize("secret", SHAPES)
def test_tokens_of_known_shapes_are_masked_wherever_they_stand(secret: str) -> None:
    for word in (secret, f"--data={secret}", f"https://{secret}@host/x", f"say '{secret}'"):
        found = masked_command(["python", word])
        assert secret not in found[1] and masked_command(found) == found


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("postgresql://me:pa55@db/x", "postgresql://me:***@db/x"),
        ("curl -H 'Authorization: Bearer abcd1234efgh'", "curl -H 'Authorization: Bearer ***'"),
        ("wandb login " + "ab12" * 10, "wandb login ***"),
        ("python a.py --api-key abc --lr 0.1", "python a.py --api-key *** --lr 0.1"),
        ("A_KEY=1 B=2", "A_KEY=*** B=2"),
    ],
)
def test_lines_in_one_piece(text: str, left: str) -> None:
    assert masked_text(text) == left and masked_text(left) == left


@given(st.lists(st.text(min_size=0, max_size=30), max_size=8))
def test_any_words_are_taken_and_what_was_masked_stays_as_it_is(words: list[str]) -> None:
    found = masked_command(words)
    assert len(found) == len(words) and masked_command(found) == found
