"""Hugging Face's Trainer over a tiny model made from a configuration, with accumulation and evaluation."""

import hashlib
import json
import os
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
warnings.filterwarnings("ignore")

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback

torch.set_num_threads(1)
torch.manual_seed(0)
# It has a shorter name since Transformers 4.41.
NAME_OF_EVALUATION = "eval_strategy" if hasattr(TrainingArguments, "eval_strategy") else "evaluation_strategy"


class Sentences(torch.utils.data.Dataset):
    def __init__(self, count):
        self.words = torch.randint(0, 100, (count, 12))

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return {"input_ids": self.words[index], "labels": self.words[index].sum() % 2}


class Losses(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_step_end(self, args, state, control, **_):
        self.seen.append(self.last)


class OwnTrainer(Trainer):
    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        losses.last = loss.item()
        return loss


config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
model = BertForSequenceClassification(config)
losses = Losses()
trainer = OwnTrainer(
    model=model,
    args=TrainingArguments(
        output_dir="out",
        num_train_epochs=3,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        **{NAME_OF_EVALUATION: "epoch"},
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=0,
        logging_strategy="no",
    ),
    train_dataset=Sentences(640),
    eval_dataset=Sentences(64),
    callbacks=[losses],
)
trainer.remove_callback(PrinterCallback)
trainer.train()
weights = hashlib.sha256(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest()
print(
    json.dumps(
        {
            "steps": trainer.state.global_step,
            "epochs": 3,
            "losses": losses.seen,
            "batch_shape": [8, 12],
            "wait_share": None,
            "weights": weights,
        }
    )
)
