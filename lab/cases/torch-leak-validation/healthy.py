import torch
from torch import nn

WIDTH, BATCH = 256, 128


class Trainer:
    def __init__(self):
        torch.manual_seed(71)
        self.model = nn.Sequential(
            nn.Linear(64, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.validation_losses = []

    def batch(self):
        x = torch.randn(BATCH, 64)
        return x, x[:, :4].sum(dim=1, keepdim=True)

    def train_step(self):
        x, y = self.batch()
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def validate(self):
        x, y = self.batch()
        self.validation_losses.append(nn.functional.mse_loss(self.model(x), y).item())


def main():
    torch.set_num_threads(1)
    trainer = Trainer()
    print("training with a validation after each step")
    for step in range(1500):
        trainer.train_step()
        trainer.validate()
        if step % 100 == 99:
            recent = sum(float(loss) for loss in trainer.validation_losses[-100:]) / 100
            print(f"step {step + 1}: validation loss {recent:.4f}", flush=True)


if __name__ == "__main__":
    main()
