"""An OpenAI-compatible server for tests, stricter than the real ones: a transcript that a provider might
refuse is answered with 400 and its reason, and remembered.

It listens on a free port of 127.0.0.1, prints the port on its first line, and ends when its standard input
ends. Only the standard library is used.

  POST /_scenario                what is answered from now on, one of
         {"replies": [REPLY, …]}         one after the other, whoever asks; then `otherwise`
         {"conversations": [{"when": TEXT, "replies": [REPLY, …]}, …]}
                                         by the first user message and the number of assistant messages so far
         {…, "otherwise": REPLY}         when there is nothing else; a plain message, if not given
       REPLY is {"message": OBJECT, or the TEXT of one, kept byte for byte}, with "finish_reason", if needed,
       {"status": S, "headers": {}, "body": TEXT}, {"drop": true}, or {"hold": true} (waits for /_release)
  POST /v1/chat/completions      the answer
  POST /v1/messages              the answer by Anthropic's Messages API; a REPLY is then also {"content": TEXT},
                                 the blocks, kept byte for byte
  GET  /_requests[?at_least=N]   headers and body of each request; waits (30 s) until there are N
  GET  /_verdict                 {"requests": how many, "violations": [reason, …]}
  POST /_release                 lets everything go that is held, now and later
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import messages_api
import transcript

PLAIN = {"message": {"role": "assistant", "content": "That is all."}}

changed = threading.Condition()
requests = []
violations = []
scenario = {}
released = False


def due(request):
    """The reply to this request. The caller holds the lock."""
    otherwise = scenario.get("otherwise", PLAIN)
    if scenario.get("replies"):
        return scenario["replies"].pop(0)
    opening = next((m.get("content") for m in request["messages"] if m["role"] == "user"), "")
    done = sum(m["role"] == "assistant" for m in request["messages"])
    for conversation in scenario.get("conversations", []):
        if conversation["when"] in str(opening):
            replies = conversation["replies"]
            return replies[done] if done < len(replies) else otherwise
    return otherwise


def completion(reply, model):
    message = reply["message"]
    text = message if isinstance(message, str) else json.dumps(message)
    calls = json.loads(text).get("tool_calls")
    reason = reply.get("finish_reason", "tool_calls" if calls else "stop")
    head = json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model})
    choice = '{"index":0,"message":%s,"finish_reason":%s}' % (text, json.dumps(reason))
    usage = '{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}'
    return '%s,"choices":[%s],"usage":%s}' % (head[:-1], choice, usage)


def blocks(reply, model):
    plain = json.dumps([{"type": "text", "text": PLAIN["message"]["content"]}])
    return messages_api.reply(reply.get("content", plain), model)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        with changed:
            if url.path == "/_requests":
                changed.wait_for(lambda: len(requests) >= int(query.get("at_least", 0)), 30)
                self.answer_json(200, requests)
            elif url.path == "/_verdict":
                self.answer_json(200, {"requests": len(requests), "violations": violations})
            else:
                self.fault(404, "not_found", "no such address")

    def do_POST(self):
        global scenario, released
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        if self.path == "/_scenario":
            with changed:
                scenario = json.loads(body)
            self.answer(204, "")
        elif self.path == "/_release":
            with changed:
                released = True
                changed.notify_all()
            self.answer(204, "")
        elif self.path == "/v1/chat/completions":
            self.complete(body, transcript.fault, completion)
        elif self.path == "/v1/messages":
            self.complete(body, messages_api.fault, blocks)
        else:
            self.fault(404, "not_found", "no such address")

    def complete(self, body, fault, written):
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            request = json.loads(body)
            reason = fault(request)
        except ValueError as error:
            request, reason = None, f"the request is no JSON: {error}"
        with changed:
            requests.append({"headers": headers, "body": body})
            if reason:
                violations.append(reason)
            reply = None if reason else due(request)
            changed.notify_all()
            if reply and reply.get("hold"):
                changed.wait_for(lambda: released)
                reply = {**PLAIN, **reply}
        if reason:
            self.fault(400, "invalid_transcript", reason)
        elif reply.get("drop"):
            self.close_connection = True
        elif "status" in reply:
            self.answer(reply["status"], reply.get("body", ""), reply.get("headers"))
        else:
            self.answer(200, written(reply, request["model"]))

    def fault(self, status, code, message):
        error = {"message": message, "type": "invalid_request_error", "code": code}
        self.answer_json(status, {"error": error})

    def answer_json(self, status, value):
        self.answer(status, json.dumps(value))

    def answer(self, status, text, headers=None):
        body = text.encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

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
