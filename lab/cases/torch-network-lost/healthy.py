import io
import socket
import struct
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
from torch import nn

SHARDS = 12
RESET_AT = 7


class ShardServer(BaseHTTPRequestHandler):
    """Stands for the object store."""

    def do_GET(self):
        number = int(self.path.rsplit("-", 1)[1])
        if number == RESET_AT + SHARDS:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        body = io.BytesIO()
        np.save(body, np.random.default_rng(number).normal(size=(200, 10)).astype("float32"))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.getvalue())

    def log_message(self, *_):
        pass

    def finish(self):
        if not self.connection._closed:
            super().finish()


def shards(address):
    for number in range(SHARDS):
        with urllib.request.urlopen(f"{address}/shard-{number}", timeout=10) as answer:
            yield torch.from_numpy(np.load(io.BytesIO(answer.read())))


def main():
    torch.manual_seed(55)
    server = ThreadingHTTPServer(("127.0.0.1", 0), ShardServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    print(f"streaming from {address}")
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for number, shard in enumerate(shards(address)):
        for rows in shard.split(25):
            loss = nn.functional.mse_loss(model(rows), rows[:, :1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"shard {number}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
