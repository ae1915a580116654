"""Hugging Face's Trainer, as it is written; nothing in it knows of Holdfast. `gpu_hf.py CAP_GIB ROWS RESULT.npy`.

A small GPT-2 with random weights: two accumulated batches a step, rows of different lengths.
"""

import json
import os
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

cap, rows = float(sys.argv[1]), int(sys.argv[2])
if cap:
    torch.cuda.set_per_process_memory_fraction(cap * 2**30 / torch.cuda.get_device_properties(0).total_memory)
torch.manual_seed(1)
off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=256, n_embd=256, n_layer=4, n_head=4, **off)).double()
random = torch.Generator().manual_seed(2)
words = torch.randint(0, 1000, (rows * 6, 256), generator=random)
lengths = torch.randint(32, 257, (rows * 6, 1), generator=random)
labels = torch.where(torch.arange(256) < lengths, words, -100)
data = [{"input_ids": line, "labels": wanted} for line, wanted in zip(words, labels, strict=True)]
how = TrainingArguments(
    tempfile.mkdtemp(), per_device_train_batch_size=rows, gradient_accumulation_steps=2, num_train_epochs=1, optim="sgd",
    learning_rate=0.1, save_strategy="no", report_to=[], disable_tqdm=True, seed=1,
)  # fmt: skip
trainer = Trainer(model, how, train_dataset=data)
began = time.perf_counter()
trainer.train()
torch.cuda.synchronize()
seconds = time.perf_counter() - began
np.save(sys.argv[3], np.concatenate([p.detach().cpu().numpy().ravel() for p in model.parameters()]))
print(json.dumps({"peak_gib": torch.cuda.max_memory_reserved() / 2**30, "seconds": seconds}))
