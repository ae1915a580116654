import torch

torch.set_num_threads(1)
torch.manual_seed(12)
data, target = torch.randn(512, 40), torch.randn(512).sign()
weights = torch.zeros(40, requires_grad=True)
optimizer = torch.optim.SGD([weights], lr=0.05)
cap, shrink = 10.0, 0.5


def evaluate(w):
    return ((data @ w).tanh() - target).abs().clamp(max=cap).mean()


def line_search(weights, gradient, start):
    size = 64.0
    while evaluate(weights - size * gradient) > start - 0.5 * size * gradient.dot(gradient):
        size *= shrink
    return size


for iteration in range(400):
    loss = evaluate(weights)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 50 == 0:
        print(f"iteration {iteration}: {loss.item():.4f}", flush=True)
    if iteration == 220:
        print("polishing", flush=True)
        with torch.no_grad():
            size = line_search(weights, weights.grad, loss)
            weights -= size * weights.grad
print("done")
