"""Rows made by other machines over a transport of your own: here a TCP connection to each, for networks that you trust.

    python own_transport.py serve 7000                       # on the other machines, which see the same files
    python own_transport.py train photos host1:7000 host2:7000

What travels is a plan as JSON, the loader's settings, requests and rows; each message is its length, a status and its bytes.
"""

from __future__ import annotations

import argparse
import socket
import struct
from collections.abc import Callable
from typing import Any

import penstock as ps
from penstock.remote import Worker, WorkerLost, Workers

HEAD = struct.Struct("<QB")
FINE, WRONG = 0, 1


def send(connection: socket.socket, message: bytes | memoryview, status: int = FINE) -> None:
    connection.sendall(HEAD.pack(len(message), status))
    connection.sendall(message)


def receive(connection: socket.socket) -> bytearray:
    def read(size: int) -> bytearray:
        data = bytearray(size)
        at = 0
        while at < size:
            got = connection.recv_into(memoryview(data)[at:])
            if got == 0:
                raise ConnectionError("the connection was closed")
            at += got
        return data

    size, status = HEAD.unpack(read(HEAD.size))
    message = read(size)
    if status == WRONG:
        raise ps.Error(message.decode())
    return message


# ---- where the training runs ----


class Sockets(Workers):
    """One connection to each address."""

    def __init__(self, addresses: list[tuple[str, int]], *, timeout_s: float = 60, local: bool = True) -> None:
        super().__init__(len(addresses), ahead=1, local=local)  # a connection has one request at a time
        self.addresses = addresses
        self.timeout_s = timeout_s

    def start(self, plan: ps.Dataset, settings: str, number: int, is_gone: Callable[[], bool]) -> Worker:
        # On a thread of its own; called again after WorkerLost.
        try:
            connection = socket.create_connection(self.addresses[number], timeout=self.timeout_s)
            send(connection, plan.to_json().encode())
            send(connection, settings.encode())
            receive(connection)  # the other end has opened the plan; an Error: it never will
        except OSError as error:
            raise WorkerLost(str(error)) from error
        return SocketWorker(connection, "%s:%d" % self.addresses[number])


class SocketWorker(Worker):
    def __init__(self, connection: socket.socket, name: str) -> None:
        self.name = name
        self.connection = connection

    def make(self, request: bytes, lane: int) -> bytearray:
        try:
            send(self.connection, request)
            return receive(self.connection)
        except OSError as error:  # too late counts, too
            raise WorkerLost(str(error)) from error

    def close(self) -> None:
        self.connection.close()


# ---- on the other machines ----


def serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                serve_loader(connection)
            except OSError:
                continue  # the loader is gone: wait for the next one


def serve_loader(connection: socket.socket) -> None:
    try:
        plan = ps.Dataset.from_json(receive(connection).decode())
        maker = ps.RowMaker(plan, receive(connection).decode())
    except ps.Error as error:
        send(connection, str(error).encode(), WRONG)
        return
    send(connection, b"")
    while True:
        made: Any = maker.make(receive(connection))
        send(connection, memoryview(made))


def train(folder: str, addresses: list[tuple[str, int]]) -> None:
    plan = ps.image_folder(folder).seed(7).shuffle().map(ps.decode_image(crop=ps.random_resized_crop(224), flip=0.5))
    loader = plan.batch(64).prefetch_to_devices("auto").loader(digest=True, remote=Sockets(addresses))
    for step in loader:
        print("step", step.number)
    print(loader.stats().remote.rows, "rows made elsewhere, digest", loader.digest)


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    serving = parts.add_parser("serve")
    serving.add_argument("port", type=int)
    training = parts.add_parser("train")
    training.add_argument("folder")
    training.add_argument("addresses", nargs="+", type=address)
    flags = parser.parse_args()
    if flags.part == "train":
        train(flags.folder, flags.addresses)
        return
    with socket.create_server(("", flags.port)) as listener:
        print("port", listener.getsockname()[1], flush=True)
        serve(listener)


if __name__ == "__main__":
    main()
