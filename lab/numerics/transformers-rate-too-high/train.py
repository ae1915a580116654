import hashlib
import os

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(73)


class Reviews(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(5, 100, (count, 12), generator=generator)
        self.labels = torch.randint(0, 2, (count,), generator=generator)
        self.tokens[self.labels == 1, 3] = 7
        self.tokens[self.labels == 0, 3] = 8

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {
            "input_ids": self.tokens[index],
            "attention_mask": torch.ones(12, dtype=torch.long),
            "labels": self.labels[index],
        }


config = BertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=2
)
model = BertForSequenceClassification(config)
args = TrainingArguments(
    output_dir="out",
    learning_rate=0.5,
    num_train_epochs=4,
    per_device_train_batch_size=16,
    logging_steps=20,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(model=model, args=args, train_dataset=Reviews(640, 1), eval_dataset=Reviews(160, 2))
print("reviews:", len(trainer.train_dataset))
print(f"first loss: {trainer.evaluate()['eval_loss']:.4f}")
trainer.train()
print(f"final loss: {trainer.evaluate()['eval_loss']:.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
