import torch


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    first = (torch.randn(256, 512) * 0.05).requires_grad_()
    second = (torch.randn(512, 1) * 0.05).requires_grad_()
    trace = []
    for turn in range(1500):
        x = torch.randn(256, 256)
        cost = ((torch.relu(x @ first) @ second - x[:, :1]) ** 2).mean()
        cost.backward()
        with torch.no_grad():
            for weights in (first, second):
                weights -= 1e-3 * weights.grad
                weights.grad = None
            trace.append((turn, first.clone()))
        if turn % 100 == 0:
            print(f"turn {turn}: cost {cost.item():.4f}, {len(trace)} kept", flush=True)


if __name__ == "__main__":
    main()
