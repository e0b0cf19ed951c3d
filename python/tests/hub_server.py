"""A stand-in for the Hugging Face Hub: its API for data sets, and the server with another name that keeps large files."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

TOKEN = "hf_aTokenThatIsNoWord"
PAGE = 3  # entries of a page, so that lists have several


@dataclass
class Request:
    server: str  # "hub" or "cdn"
    method: str
    path: str  # as it came: encoded, with its query
    headers: dict[str, str]


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0  # bytes of the body that are announced and not sent


def _refusal(status: int, code: str, message: str) -> Answer:
    return Answer(status, json.dumps({"error": message}).encode(), {"X-Error-Code": code, "X-Error-Message": message})


def _partial(content: bytes, headers: dict[str, str], asked: str | None) -> Answer:
    if asked is None:
        return Answer(200, content, headers)
    first, _, last = asked.removeprefix("bytes=").partition("-")
    begin, end = int(first), min(int(last), len(content) - 1)
    return Answer(206, content[begin : end + 1], {**headers, "Content-Range": f"bytes {begin}-{end}/{len(content)}"})


class Hub:
    """The data set owner/name. Files whose names end in .md, .txt or .csv are kept in git, all others by the other server."""

    def __init__(self) -> None:
        self.commits: dict[str, dict[str, bytes]] = {}
        self.revisions: dict[str, str] = {}
        self.requests: list[Request] = []
        self.is_private = False
        self.signature = 1  # of the other server's URLs: others have expired
        # Called first: an Answer is given in place of the usual one.
        self.instead: Callable[[Request], Answer | None] = lambda request: None
        self._lock = threading.Lock()

    def __enter__(self) -> Hub:
        self._servers = {name: self._start(name) for name in ("hub", "cdn")}
        self.url, self.cdn_url = (f"http://127.0.0.1:{self._servers[name].server_address[1]}" for name in ("hub", "cdn"))
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    def push(self, folder: Path, revision: str = "main") -> str:
        """Makes a commit of the files of a folder; returns its hash."""
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        commit = hashlib.sha1(b"".join(name.encode() + data for name, data in sorted(files.items()))).hexdigest()
        self.commits[commit] = files
        self.revisions[revision] = commit
        return commit

    def count(self, server: str, part: str = "") -> int:
        """The requests so far whose path has this in it."""
        with self._lock:
            return sum(request.server == server and part in request.path for request in self.requests)

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
        instead = self.instead(request)
        if instead is not None:
            return instead
        return self._file(request) if request.server == "cdn" else self._hub(request)

    def _hub(self, request: Request) -> Answer:
        if self.is_private and request.headers.get("authorization") != f"Bearer {TOKEN}":
            return _refusal(401, "RepoNotFound", "Repository not found")
        url = urlsplit(request.path)
        below = url.path.removeprefix("/api").removeprefix("/datasets/owner/name")
        if not url.path.removeprefix("/api").startswith("/datasets/owner/name") or (below and below[0] != "/"):
            return _refusal(401, "RepoNotFound", "Repository not found")
        kind, *parts = (below[1:] or "revision/main").split("/")
        revision, path = unquote(parts[0]), unquote("/".join(parts[1:]))
        commit = self.revisions.get(revision, revision)
        if commit not in self.commits:
            return _refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        files = self.commits[commit]
        if kind == "revision":
            return Answer(body=json.dumps({"_id": "1", "id": "owner/name", "sha": commit}).encode())
        if kind == "tree":
            return self._tree(files, path, url.query)
        if kind == "paths-info":
            wanted = parse_qs(request.headers["body"])["paths"]
            return Answer(body=json.dumps([self._entry(name, files[name]) for name in wanted if name in files]).encode())
        if kind == "resolve":
            if path not in files:
                return _refusal(404, "EntryNotFound", "Entry not found")
            headers = {"X-Repo-Commit": commit, "ETag": f'"{hashlib.sha1(files[path]).hexdigest()}"'}
            if path.endswith((".md", ".txt", ".csv")):
                return Answer(200, files[path], headers)  # it does not read ranges of these
            location = f"{self.cdn_url}/{commit}/{quote(path)}?Signature={self.signature}"
            headers |= {"X-Linked-Size": str(len(files[path])), "X-Linked-ETag": hashlib.sha256(files[path]).hexdigest()}
            return Answer(302, b"Found. Redirecting", {**headers, "Location": location})
        return _refusal(404, "", "Sorry, we can't find the page you are looking for.")

    def _tree(self, files: dict[str, bytes], path: str, query: str) -> Answer:
        options = parse_qs(query)
        prefix = f"{path}/" if path else ""
        below = {name: data for name, data in files.items() if name.startswith(prefix)}
        if not below:
            return _refusal(404, "EntryNotFound", f"{path} does not exist on this revision")
        entries = {}
        for name, data in sorted(below.items()):
            folders = name[len(prefix) :].split("/")[:-1]
            for depth in range(1, len(folders) + 1):
                folder = prefix + "/".join(folders[:depth])
                entries[folder] = {"type": "directory", "oid": "0" * 40, "size": 0, "path": folder}
            entries[name] = self._entry(name, data)
        if options["recursive"] != ["true"]:
            entries = {name: entry for name, entry in entries.items() if "/" not in name[len(prefix) :]}
        begin = int(options.get("cursor", ["0"])[0])
        page = list(entries.values())[begin : begin + PAGE]
        headers = {}
        if begin + PAGE < len(entries):
            following = f"recursive={options['recursive'][0]}&expand=false&cursor={begin + PAGE}"
            headers["Link"] = f'<{self.url}/api/datasets/owner/name/tree/main?{following}>; rel="next"'
        return Answer(body=json.dumps(page).encode(), headers=headers)

    @staticmethod
    def _entry(name: str, data: bytes) -> dict[str, object]:
        oid = hashlib.sha1(data).hexdigest()
        entry = {"type": "file", "oid": oid, "size": len(data), "path": name}
        if not name.endswith((".md", ".txt", ".csv")):
            entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            entry["xetHash"] = hashlib.sha256(data + b"x").hexdigest()
        return entry

    def _file(self, request: Request) -> Answer:
        url = urlsplit(request.path)
        if parse_qs(url.query).get("Signature") != [str(self.signature)]:
            return Answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        commit, _, name = url.path.removeprefix("/").partition("/")
        return _partial(self.commits[commit][unquote(name)], {}, request.headers.get("range"))

    def _start(self, name: str) -> ThreadingHTTPServer:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                headers = {key.lower(): value for key, value in self.headers.items()}
                if "content-length" in headers:
                    headers["body"] = self.rfile.read(int(headers["content-length"])).decode()
                answer = hub.answer(Request(name, self.command, self.path, headers))
                self.send_response(answer.status)
                for header, value in answer.headers.items():
                    self.send_header(header, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body[: len(answer.body) - answer.cut])
                self.close_connection = answer.cut > 0

            do_POST = do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # with fewer, connections of many threads wait for a second

        server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server
