"""A web server that gives the files of a folder by ranges, as nginx does."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Request:
    method: str
    path: str  # as it came: encoded, with its query
    headers: dict[str, str]


@dataclass
class Answer:
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Web:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[Request] = []
        self.query = ""  # what each request has to have
        self.has_ranges = True
        # Called first: an Answer is given in place of the usual one.
        self.instead: Callable[[Request], Answer | None] = lambda request: None
        self._lock = threading.Lock()

    def __enter__(self) -> Web:
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body together: with two packets each answer waits for the client's word

            def do_GET(self) -> None:
                answer = web.answer(Request("GET", self.path, {name.lower(): value for name, value in self.headers.items()}))
                self.send_response(answer.status)
                for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # of five at once the others would come a second later

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
        instead = self.instead(request)
        if instead is not None:
            return instead
        url = urlsplit(request.path)
        if url.query != self.query:
            return Answer(403)
        path = self.folder / unquote(url.path)[1:]
        if not path.is_file():
            return Answer(404)
        content = path.read_bytes()
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"'}
        asked = request.headers.get("range")
        if asked is None or not self.has_ranges:
            return Answer(200, content, headers)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last), len(content) - 1)
        if begin >= len(content):
            return Answer(416, headers={"Content-Range": f"bytes */{len(content)}"})
        headers["Content-Range"] = f"bytes {begin}-{end}/{len(content)}"
        return Answer(206, content[begin : end + 1], headers)
