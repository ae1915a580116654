import http.client
import http.server
import threading
import time

import keras
import numpy as np


class Bucket(http.server.BaseHTTPRequestHandler):
    """Takes what it is given and thinks it over."""

    def do_PUT(self):
        left = int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, 1 << 16)))
            time.sleep(0.0)
        time.sleep(60)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


class Upload(keras.callbacks.Callback):
    def __init__(self, port):
        super().__init__()
        self.port = port

    def on_epoch_end(self, epoch, logs=None):
        body = np.concatenate([weight.ravel() for weight in self.model.get_weights()]).tobytes()
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("PUT", f"/run/{epoch}", body)
        print(f"uploaded epoch {epoch}:", connection.getresponse().status, flush=True)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
threading.Thread(target=server.serve_forever, daemon=True).start()
x = np.random.rand(800, 64).astype("float32")
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, x.max(1), epochs=2, batch_size=40, verbose=2, callbacks=[Upload(server.server_port)])
