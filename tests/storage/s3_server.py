"""An S3 server for tests: moto's, on a free port of the loopback, with a folder's files as objects.

Says "port N" when it listens, and ends when its input does, so that it cannot outlive a test.
"""
import argparse
import json
import os
import sys
import threading

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--bucket", default="photos")
parser.add_argument("--folder", required=True)
parser.add_argument("--fail-every", type=int, default=0,
                    help="each so manieth GET fails, or the next one of an object whose last GET did not")
parser.add_argument("--fail-how", choices=("busy", "cut"), default="busy")
parser.add_argument("--hang-after", type=int, default=0, help="GETs; later ones get no answer")
parser.add_argument("--hang-parts", action="store_true",
                    help="parts of uploads get no answer, until a GET of /_answer_parts")
parser.add_argument("--check-signatures", action="store_true")
parser.add_argument("--may-write", action="store_true", help="that user; else it may only read")
arguments = parser.parse_args()

# What moto and boto3 ask for, whatever the machine has.
os.environ.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing",
                  AWS_DEFAULT_REGION="us-east-1", NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
    os.environ.pop(name, None)

import boto3
from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    def log_request(self, *_):
        pass


class Application:
    """Moto, with faults, a count of requests, and what hands out credentials."""

    def __init__(self):
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.lock = threading.Lock()
        self.seeding = True
        self.gets = 0
        self.next_failure = arguments.fail_every
        self.failed = set()  # objects, by their last GET
        self.hang_parts = arguments.hang_parts
        self.keys = ("testing", "testing")

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        if path == "/_gets":
            return self.answer(start_response, str(self.gets))
        if path == "/_answer_parts":
            self.hang_parts = False
            return self.answer(start_response, "")
        if self.hang_parts and "partNumber=" in environ["QUERY_STRING"]:
            threading.Event().wait()
        if path == "/_keys" or path.endswith("/security-credentials/role"):
            return self.answer(start_response, json.dumps({
                "AccessKeyId": self.keys[0], "SecretAccessKey": self.keys[1], "Token": "",
                "Expiration": "2099-01-01T00:00:00Z"}))
        if path.endswith("/security-credentials/"):
            allowed = environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN") == "a token"
            return self.answer(start_response, "role", "200 OK" if allowed else "401 Unauthorized")
        if path == "/latest/api/token":
            return self.answer(start_response, "a token")
        if environ["REQUEST_METHOD"] != "GET" or self.seeding or path.count("/") < 2:
            return self.moto(environ, start_response)
        with self.lock:
            self.gets += 1
            number = self.gets
            # Never the same object twice in a row: whoever reads it again has it, in whatever order requests come.
            fails = arguments.fail_every and number >= self.next_failure and path not in self.failed
            if fails:
                self.failed.add(path)
                self.next_failure += arguments.fail_every
            else:
                self.failed.discard(path)
        if arguments.hang_after and number > arguments.hang_after:
            threading.Event().wait()
        if fails:
            if arguments.fail_how == "busy":
                return self.answer(start_response,
                                   "<Error><Code>SlowDown</Code><Message>Reduce your request rate"
                                   "</Message></Error>", "503 Slow Down")
            return self.cut(environ, start_response)
        return self.moto(environ, start_response)

    @staticmethod
    def answer(start_response, text, status="200 OK"):
        start_response(status, [("Content-Length", str(len(text)))])
        return [text.encode()]

    def cut(self, environ, start_response):
        whole = b"".join(self.moto(environ, start_response))
        return [whole[: len(whole) // 2]]


application = Application()
server = make_server("127.0.0.1", arguments.port, application, threaded=True,
                     request_handler=Quiet)
server.daemon_threads = True
endpoint = f"http://127.0.0.1:{server.server_port}"

# Past its own HTTP, which takes ten times as long for an object.
backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
backend.create_bucket(arguments.bucket, "us-east-1")
for folder, _, names in os.walk(arguments.folder):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            # No folder can be called nothing; a part of a key can.
            key = os.path.relpath(path, arguments.folder).replace("/NOTHING/", "//")
            backend.put_object(arguments.bucket, key, file.read())
# Not before: one that comes back at its port must have what it had.
threading.Thread(target=server.serve_forever, daemon=True).start()
if arguments.check_signatures:
    iam = boto3.client("iam", endpoint_url=endpoint)
    iam.create_user(UserName="reader")
    policy = {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": ["s3:Get*", "s3:List*", "s3:Head*"] + ["s3:*"] * arguments.may_write,
         "Resource": "*"}]}
    iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    application.keys = (key["AccessKeyId"], key["SecretAccessKey"])
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0.0
application.seeding = False
print("port", server.server_port, *application.keys, flush=True)
sys.stdin.read()
