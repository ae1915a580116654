import torch
from torch import nn


class GatedCell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width + 1, width)
        self.value = nn.Linear(width + 1, width)

    def forward(self, x, state):
        joined = torch.cat([x, state], dim=1)
        gate = torch.sigmoid(self.gate(joined))
        state = gate * state + (1 - gate) * torch.tanh(self.value(joined))
        gate.clamp_(0.05, 0.95)
        return state, gate.mean()


def main():
    torch.manual_seed(23)
    width = 16
    cell, readout = GatedCell(width), nn.Linear(width, 1)
    series = torch.randn(1200, 12, 1).cumsum(dim=1)
    print(f"training on {len(series)} series")
    optimizer = torch.optim.Adam([*cell.parameters(), *readout.parameters()], lr=1e-2)
    for epoch in range(1, 4):
        for batch in series.split(60):
            state = torch.zeros(len(batch), width)
            opened = 0.0
            for moment in range(batch.shape[1] - 1):
                state, gate = cell(batch[:, moment], state)
                opened = opened + gate
            loss = nn.functional.mse_loss(readout(state), batch[:, -1]) + 1e-3 * opened
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
