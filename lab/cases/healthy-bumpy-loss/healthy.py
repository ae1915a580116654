import torch
from torch import nn


def main():
    torch.manual_seed(115)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=120)
    scaler_skips = 0
    for step in range(480):
        x = torch.randn(64, 16)
        y = torch.sin(x[:, :1] * 2) + 0.1 * torch.randn(64, 1)
        loss = nn.functional.mse_loss(model(x), y)
        if step % 97 == 50:
            loss = loss * float("inf")  # what a loss scaler sees now and then
        optimizer.zero_grad()
        loss.backward()
        if torch.isfinite(loss):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        else:
            scaler_skips += 1
            print(f"step {step}: loss {loss.item()}, gradient overflow, step skipped")
        schedule.step()
        if step % 120 == 119:
            print(f"end of cycle {step // 120}: loss {loss.item():.4f}, {scaler_skips} skipped")


if __name__ == "__main__":
    main()
