"""A real HTTP server on loopback that speaks the OpenAI and the Gemini protocol and fails when told to."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def said(text, reason="stop", *, tool=None, **message):
    """A reply in the OpenAI protocol; `tool` is a name and arguments, as an object or as text."""
    calls = []
    if tool:
        name, arguments = tool
        arguments = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls = [{"id": "", "type": "function", "function": {"name": name, "arguments": arguments}}]
    body = {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {}) | message
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else reason, "message": body}
    return 200, {"object": "chat.completion", "created": 1, "choices": [choice], "usage": USAGE}


def gemini(parts, reason):
    """A reply in the Gemini protocol."""
    content = {"content": {"role": "model", "parts": parts}} if parts else {}
    usage = {"promptTokenCount": 100, "thoughtsTokenCount": 20, "totalTokenCount": 120}
    candidate = {"finishReason": reason, "index": 0} | content
    return 200, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash-001"}


def failed(status, message="no", headers=(), **error):
    """An HTTP error, such as 429 with `headers={"Retry-After": "2"}`."""
    return status, {"error": {"message": message, **error}}, dict(headers)


class ModelServer(ThreadingHTTPServer):
    """Answers each request with what `answer(request body)` returns, and remembers requests and keys."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.requests, self.keys, self.lock = answer, [], [], threading.Lock()
        self.ids = count(1)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        """No log: requests are remembered."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(request)
            self.server.keys.append(self.headers.get("Authorization") or self.headers.get("x-goog-api-key"))
            try:
                status, body, *rest = self.server.answer(request)
            except Exception as error:  # a mistake in the test: said at once, not waited for as an outage
                status, body, *rest = failed(400, f"the test's server failed: {error!r}")
            number = next(self.server.ids)
        for choice in body.get("choices", []):
            body |= {"id": f"chat{number}", "model": "served-model-2026"}
            for call in choice["message"].get("tool_calls") or []:
                call["id"] = call["id"] or f"call{number}"
        content = json.dumps(body).encode()
        try:
            self.send_response(status)
            for name, value in (rest[0] if rest else {}).items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            """The client gave up waiting, as a test told it to."""


@contextmanager
def serving(answer):
    """Serve until the block ends. `answer` is a function of the request, or a list of answers in order."""
    if not callable(answer):
        waiting = iter(answer)
        server = ModelServer(lambda request: next(waiting))
    else:
        server = ModelServer(answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def slowly(seconds, answer):
    """The answer after some seconds, for timeouts."""
    time.sleep(seconds)
    return answer
