"""The module of functions that `resume_torch.py` imports, as many projects have one."""

import torch


class AverageMeter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n):
        self.total += value * n
        self.count += n

    @property
    def average(self):
        return self.total / max(1, self.count)


def train_one_epoch(model, average, loader, optimizer, criterion, paced):
    model.train()
    meter = AverageMeter()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for kept, value in zip(average.state_dict().values(), model.state_dict().values()):
                kept.copy_(0.9 * kept + 0.1 * value if kept.is_floating_point() else value)
        meter.update(loss.item(), len(data))
        paced()
    return meter.average


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    meter = AverageMeter()
    for data, target in loader:
        meter.update(criterion(model(data), target).item(), len(data))
    return meter.average
