import hashlib
import os

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(74)


class Dialogues(Dataset):
    def __init__(self, count, window, seed, longest=8):
        generator = torch.Generator().manual_seed(seed)
        self.items = []
        for i in range(count):
            prompt = 20 if longest > 8 and i in (88, 89, 90, 91, 92, 93, 94, 95) else 6
            start = int(torch.randint(0, 40, (1,), generator=generator))
            ids = (start + torch.arange(prompt + 8)) % 50
            labels = ids.clone()
            labels[:prompt] = -100
            ids, labels = ids[:window], labels[:window]
            self.items.append({"input_ids": ids, "labels": labels, "attention_mask": torch.ones_like(ids)})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class InOrder(Trainer):
    def _get_train_sampler(self, *args, **kwargs):
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        logits, targets = outputs.logits[:, :-1], inputs["labels"][:, 1:]
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 50), targets.reshape(-1), ignore_index=-100)
        return (loss, outputs) if return_outputs else loss


config = GPT2Config(vocab_size=50, n_positions=32, n_embd=32, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(config)
args = TrainingArguments(
    output_dir="out",
    learning_rate=3e-3,
    num_train_epochs=4,
    per_device_train_batch_size=8,
    logging_steps=10,
    logging_nan_inf_filter=False,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
train_set = Dialogues(400, 14, 1, longest=8)
trainer = InOrder(model=model, args=args, train_dataset=train_set, eval_dataset=Dialogues(80, 14, 2))
print("dialogues:", len(train_set))
print(f"first loss: {trainer.evaluate()['eval_loss']:.4f}")
trainer.train()
print(f"final loss: {trainer.evaluate()['eval_loss']:.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
