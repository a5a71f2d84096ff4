"""A tool server for tests. It records every call and behaves as its path says.

It listens on a free port of 127.0.0.1, prints the port on its first line, and ends when its standard input
ends, so that it never outlives the test that started it. Only the standard library is used.

  POST /echo                      200, the very bytes of the request
  POST /effect                    200; takes effect once per Idempotency-Key and answers repetitions alike
  POST /hold                      takes effect like /effect, then waits for /_release before it answers
  POST /flaky?fail=N&status=S[&retry_after=T]
                                  answers S to the first N calls of a key, then like /effect
  POST /drop?fail=N               reads the first N calls of a key, closes without an answer; then like /effect
  POST /status/S[?bytes=N]        answers S with a text, or with N letters
  POST /large?bytes=N[&chunked=1] 200 with N letters
  POST /cut                       200 with half of the body that it announced
  POST /binary                    200 with bytes that are not UTF-8
  POST /redirect?status=S&to=URL  S with that Location
  POST /around                    307 to itself

  GET  /_calls[?at_least=N]       what was called so far; waits (30 s) until there are N
  GET  /_effects                  the keys that took effect, in order
  POST /_release                  lets everything go that waits in /hold, now and later
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

changed = threading.Condition()
calls = []
effects = []
seen = {}
released = False


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/_calls":
            with changed:
                changed.wait_for(lambda: len(calls) >= int(query.get("at_least", 0)), 30)
                self.answer_json(calls)
        elif url.path == "/_effects":
            with changed:
                self.answer_json(effects)
        else:
            self.record("")
            self.answer(200, b"fetched")

    def do_POST(self):
        global released
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if url.path == "/_release":
            with changed:
                released = True
                changed.notify_all()
            return self.answer(204, b"")
        key = self.headers.get("idempotency-key", "")
        self.record(body.decode())
        if url.path == "/echo":
            self.answer(200, body)
        elif url.path == "/effect":
            self.take_effect(key)
        elif url.path == "/hold":
            self.take_effect(key, wait=True)
        elif url.path == "/flaky":
            if self.attempt(url.path + key) <= int(query["fail"]):
                later = {"Retry-After": query["retry_after"]} if "retry_after" in query else {}
                self.answer(int(query["status"]), b"not now", later)
            else:
                self.take_effect(key)
        elif url.path == "/drop":
            if self.attempt(url.path + key) <= int(query["fail"]):
                self.close_connection = True
            else:
                self.take_effect(key)
        elif url.path.startswith("/status/"):
            size = query.get("bytes")
            self.answer(int(url.path.rsplit("/", 1)[1]), b"x" * int(size) if size else b"so it is")
        elif url.path == "/large":
            self.answer_large(int(query["bytes"]), "chunked" in query)
        elif url.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"x" * 50)
            self.close_connection = True
        elif url.path == "/binary":
            self.answer(200, b"\xff\xfe\x00")
        elif url.path == "/redirect":
            self.answer(int(query["status"]), b"", {"Location": query["to"]})
        elif url.path == "/around":
            self.answer(307, b"", {"Location": "/around"})
        else:
            self.answer(404, b"no such tool")

    def record(self, body):
        headers = {name.lower(): value for name, value in self.headers.items()}
        with changed:
            calls.append({"method": self.command, "path": self.path, "headers": headers, "body": body})
            changed.notify_all()

    def attempt(self, key):
        with changed:
            seen[key] = seen.get(key, 0) + 1
            return seen[key]

    def take_effect(self, key, wait=False):
        with changed:
            if key not in effects:
                effects.append(key)
            number = effects.index(key) + 1
            if wait:
                changed.wait_for(lambda: released)
        self.answer(200, json.dumps({"effect": number}).encode())

    def answer_json(self, value):
        self.answer(200, json.dumps(value).encode())

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status not in (204, 304):
            self.wfile.write(body)

    def answer_large(self, size, chunked):
        self.send_response(200)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(size))
        self.end_headers()
        for start in range(0, size, 65536):
            part = b"x" * min(65536, size - start)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 256


def main():
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


main()
