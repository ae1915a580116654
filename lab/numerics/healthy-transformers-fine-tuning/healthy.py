import hashlib
import os

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(162)


class Sentences(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(5, 80, (count, 10), generator=generator)
        self.labels = torch.randint(0, 2, (count,), generator=generator)
        self.tokens[self.labels == 1, 2] = 7

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.labels[index]}


def arguments(rate, epochs, **more):
    return TrainingArguments(
        output_dir="out",
        learning_rate=rate,
        num_train_epochs=epochs,
        per_device_train_batch_size=16,
        logging_steps=20,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        **more,
    )


config = BertConfig(
    vocab_size=80, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=2
)
model = BertForSequenceClassification(config)
Trainer(model=model, args=arguments(2e-3, 4), train_dataset=Sentences(480, 1)).train()
for parameter in model.bert.embeddings.parameters():
    parameter.requires_grad = False
trainer = Trainer(
    model=model,
    args=arguments(2e-5, 3, warmup_steps=20),
    train_dataset=Sentences(480, 2),
    eval_dataset=Sentences(160, 3),
)
trainer.train()
print(f"evaluation: {trainer.evaluate()['eval_loss']:.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
