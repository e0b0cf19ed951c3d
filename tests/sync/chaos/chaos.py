"""Processes on several hosts, whose network is torn: network namespaces on one bridge, one process in each.

Each case says within which time what must have been said by whom. scripts/chaos-test builds the programs and runs this as root.
"""

import argparse
import contextlib
import os
import queue
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PREFIX = f"pstk{os.getpid() % 10000}"
BRIDGE = f"{PREFIX}b"


def sh(command, check=True):
    return subprocess.run(command, shell=True, check=check, capture_output=True, text=True)


def inside(host, command, check=True):
    return sh(f"ip netns exec {PREFIX}{host} {command}", check)


def make_hosts(count):
    sh(f"ip netns add {BRIDGE}")
    sh(f"ip -n {BRIDGE} link add br0 type bridge && ip -n {BRIDGE} link set br0 up")
    for host in range(count):
        name = f"{PREFIX}{host}"
        sh(f"ip netns add {name}")
        sh(f"ip link add eth0 netns {name} type veth peer name port{host} netns {BRIDGE}")
        sh(f"ip -n {name} addr add {address(host)}/24 dev eth0")
        sh(f"ip -n {name} link set lo up")
        set_up(host)
        sh(f"ip -n {BRIDGE} link set port{host} master br0 up")


def set_up(host):
    inside(host, "ip link set eth0 up")
    inside(host, f"ip addr replace fd77::{10 + host}/64 dev eth0 nodad")  # gone when it was down


def remove_hosts(count):
    for name in [f"{PREFIX}{host}" for host in range(count)] + [BRIDGE]:
        sh(f"ip netns del {name}", check=False)


def address(host):
    return f"10.77.0.{10 + host}"


def link_down(_, torn):
    inside(2, "ip link set eth0 down")
    torn.callback(lambda: set_up(2))


def has_filters():
    return inside(0, "nft list tables", check=False).returncode == 0


@contextlib.contextmanager
def dropped(*pairs, both=False):
    """Packets from host a never reach host b, for each pair (a, b)."""
    pairs = list(pairs) + ([(b, a) for a, b in pairs] if both else [])
    try:
        for a, b in pairs:
            inside(b, "nft add table inet torn")
            inside(b, "nft add chain inet torn in '{ type filter hook input priority 0; }'")
            inside(b, f"nft add rule inet torn in ip saddr {address(a)} drop")
        yield
    finally:
        for _, b in pairs:
            inside(b, "nft delete table inet torn", check=False)


@contextlib.contextmanager
def losing(host, percent):
    """Some packets from and to a host are lost."""
    try:
        inside(host, "nft add table inet lossy")
        for hook in ("input", "output"):
            inside(host, f"nft add chain inet lossy {hook} '{{ type filter hook {hook} priority 0; }}'")
            inside(host, f"nft add rule inet lossy {hook} numgen random mod 100 '<' {percent} drop")
        yield
    finally:
        inside(host, "nft delete table inet lossy", check=False)


@contextlib.contextmanager
def delayed(host, ms):
    """All that a host sends and gets goes through a relay of ours: not every kernel has netem."""
    sh(f"ip -n {BRIDGE} link set port{host} nomaster")
    sh(f"ip -n {BRIDGE} link add relay0 type veth peer name relay1")
    sh(f"ip -n {BRIDGE} link set relay0 up && ip -n {BRIDGE} link set relay1 up && ip -n {BRIDGE} link set relay1 master br0")
    relay = subprocess.Popen(["ip", "netns", "exec", BRIDGE, sys.executable, __file__, "--relay", f"port{host}", "relay0", str(ms)],
                             stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        if relay.stdout.readline().strip() != "relays":
            raise AssertionError("the relay does not run")
        yield
    finally:
        relay.kill()
        relay.wait()
        sh(f"ip -n {BRIDGE} link del relay0 && ip -n {BRIDGE} link set port{host} master br0")


def relay(names, seconds):
    """Frames from each of two devices to the other, some time later. With their headers of offloading, so that none is cut up."""
    packet, vnet_header, ignore_outgoing, all_protocols = 263, 15, 23, 3
    devices = []
    for name in names:
        device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(all_protocols))
        device.setsockopt(packet, vnet_header, 1)
        device.setsockopt(packet, ignore_outgoing, 1)
        device.bind((name, all_protocols))
        devices.append(device)

    def forward(source, to):
        frames = queue.SimpleQueue()

        def read():
            while True:
                frames.put((time.monotonic() + seconds, source.recv(1 << 17)))

        threading.Thread(target=read, daemon=True).start()
        while True:
            due, frame = frames.get()
            time.sleep(max(0.0, due - time.monotonic()))
            with contextlib.suppress(OSError):
                to.send(frame)

    threading.Thread(target=forward, args=devices, daemon=True).start()
    print("relays", flush=True)
    forward(devices[1], devices[0])


class Process:
    def __init__(self, host, rank, world, command, **variables):
        ours = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OMPI", "PMI", "SLURM", "TORCHELASTIC", "PENSTOCK"))
        }
        ours.update(
            RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1",
            MASTER_ADDR=address(0), MASTER_PORT="29500", PENSTOCK_RUN_ID="chaos",
        )  # fmt: skip
        ours.update(variables)
        self.rank, self.output, self.ended = rank, "", None
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", f"{PREFIX}{host}", *command],
            # Ignored in what a shell starts in the background, and so in its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            env=ours, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.output += line
        self.process.wait()
        self.ended = time.monotonic()

    def signal(self, number):
        self.process.send_signal(number)  # ip becomes the program: the same process

    def memory_mib(self):
        text = open(f"/proc/{self.process.pid}/status").read()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


class Run:
    def __init__(self, command, count, hosts=None, missing=(), **variables):
        self.processes = [
            Process(hosts[rank] if hosts else rank, rank, count, command, **variables)
            for rank in range(count)
            if rank not in missing
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self.processes:
            with contextlib.suppress(ProcessLookupError):
                each.signal(signal.SIGKILL)
            each.reader.join(10)

    def wait_until_said(self, what, seconds=60):
        end = time.monotonic() + seconds
        while not all(what in each.output for each in self.processes):
            if time.monotonic() > end or any(each.ended for each in self.processes):
                raise AssertionError(
                    f"not all said '{what}': " + " | ".join(each.output for each in self.processes)
                )
            time.sleep(0.01)

    def wait(self, ranks, seconds):
        """Until these have ended; None where they have not within `seconds`."""
        begin = time.monotonic()
        while not all(self.processes[rank].ended for rank in ranks):
            if time.monotonic() > begin + seconds:
                return None
            time.sleep(0.01)
        return max(self.processes[rank].ended for rank in ranks) - begin

    def codes(self, ranks):
        return [self.processes[rank].process.returncode for rank in ranks]


class Cases:
    def __init__(self, worker, trainer, runs):
        self.worker, self.trainer, self.runs = worker, trainer, runs
        self.rows, self.wrong = [], 0

    def record(self, fault, result, seconds=None, ok=True, detail=""):
        self.wrong += not ok
        times = [s for s in ([seconds] if not isinstance(seconds, list) else seconds) if s is not None]
        took = "" if not times else f"{statistics.median(times):.1f} s" + (
            f" (to {max(times):.1f})" if len(times) > 1 else ""
        )
        self.rows.append((fault, took, ("" if ok else "WRONG: ") + result))
        print(f"{'ok   ' if ok else 'WRONG'} {fault}: {result} {took}", flush=True)
        if not ok and detail:
            print(detail, flush=True)

    def fault(self, name, timeout, world, tear, innocent, within, said, runs=1):
        """`tear(run)` does it; each of the innocent ranks must say one of its texts within `within` seconds."""
        times, blamed = [], 0
        for _ in range(runs):
            with Run([self.worker, "gloo", "beat", str(timeout)], world) as run, contextlib.ExitStack() as torn:
                run.wait_until_said("beating")
                tear(run, torn)
                took = run.wait(innocent, within)
                ok = took is not None and all(
                    any(text in run.processes[rank].output for text in said(rank)) for rank in innocent
                )
                blamed += ok
                times.append(took)
                if not ok:
                    for rank in innocent:
                        print(f"  process {rank}: {run.processes[rank].output.strip()[-500:]}", flush=True)
        what = re.sub(r"\s+", " ", " or ".join(dict.fromkeys(t for r in innocent for t in said(r))))
        self.record(name, f"{blamed} of {runs} right: '{what}'", times, blamed == runs)

    # ---- processes ----

    def killed(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            self.fault(
                f"{signal.Signals(number).name} of process 2 of 4", 20, 4,
                lambda run, _, number=number: run.processes[2].signal(number), [0, 1, 3], 5,
                lambda _: ["process 2 has died"], self.runs if number == signal.SIGKILL else self.runs // 3 or 1,
            )  # fmt: skip
        self.fault("SIGKILL of process 0 of 4", 20, 4, lambda run, _: run.processes[0].signal(signal.SIGKILL),
                   [1, 2, 3], 5, lambda _: ["process 0 has died"], self.runs)  # fmt: skip

    def missing(self):
        """Some never start: those that do say who, or that process 0 is not there."""
        command = [self.trainer, "--synthetic", "100", "--batch", "30", "--steps", "2", "--devices", "host:1", "--quiet",
                   "--join-timeout", "3"]  # fmt: skip
        for absent, says in (
            ([2], "these did not join within 3 s: 2"),
            ([1, 3], "these did not join within 3 s: 1, 3"),
            ([0], "did not find process 0 at " + address(0)),
        ):
            times, right = [], 0
            runs = self.runs // 3 or 1
            for _ in range(runs):
                with Run(command, 4, missing=absent, TORCHELASTIC_RUN_ID="chaos") as run:
                    there = range(len(run.processes))
                    times.append(run.wait(there, 20))
                    ok = times[-1] is not None and all(says in each.output for each in run.processes)
                    right += ok
                    if not ok:
                        print("\n".join(f"  process {each.rank}: {each.output[-500:]}" for each in run.processes), flush=True)
            self.record(f"of 4 processes {' and '.join(map(str, absent))} never started, 3 s to join",
                        f"{right} of {runs} right: '{says}'", times, right == runs)  # fmt: skip

    def stopped(self):
        for victim in (2, 0):
            self.fault(
                f"SIGSTOP of process {victim} of 4, timeout 2 s", 2, 4,
                lambda run, _, victim=victim: run.processes[victim].signal(signal.SIGSTOP),
                [r for r in range(4) if r != victim], 12,
                lambda _, victim=victim: [f"process {victim} does not answer"], self.runs,
            )  # fmt: skip

    # ---- checkpoints ----

    def trained(self, flags, world, kill_after=None):
        """The losses of a training run, by step; None where it was killed."""
        command = [self.trainer, "--synthetic", "200", "--batch", "60", "--seed", "3", "--devices", "host:1", "--threads", "1",
                   "--quiet", "--timeout", "30", *flags]  # fmt: skip
        losses = flags[flags.index("--losses") + 1]
        with contextlib.suppress(FileNotFoundError):
            os.remove(losses)
        with Run(command, world, TORCHELASTIC_RUN_ID="chaos") as run:
            if kill_after is not None:
                checkpoint = flags[flags.index("--checkpoint") + 1]
                end = time.monotonic() + 60
                while not os.path.exists(checkpoint) and time.monotonic() < end:
                    time.sleep(0.001)
                time.sleep(kill_after)
                run.processes[0].signal(signal.SIGKILL)
            took = run.wait(range(world), 120)
            if kill_after is not None and run.codes([0]) == [-signal.SIGKILL]:
                return None
            if took is None or any(run.codes(range(world))):
                raise AssertionError("\n".join(each.output[-500:] for each in run.processes))
        with open(losses) as text:
            return {int(step): float(loss) for step, loss in (line.split() for line in text)}

    def checkpoints(self):
        """Process 0, which writes them at every step, is killed at random moments; what is there is whole."""
        with tempfile.TemporaryDirectory() as folder:
            flags = ["--steps", "40", "--losses", f"{folder}/losses"]
            whole = self.trained(flags, 2)
            flags += ["--checkpoint", f"{folder}/checkpoint", "--checkpoint-every", "1"]
            runs, right, killed = self.runs // 3 or 1, 0, 0
            for _ in range(runs):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(f"{folder}/checkpoint")
                killed += self.trained(flags, 2, kill_after=random.uniform(0, 0.3)) is None
                rest = self.trained([*flags, "--resume"], 2)
                right += all(whole[step] == loss for step, loss in rest.items())
            self.record("SIGKILL of the process that writes checkpoints, at every step",
                        f"{right} of {runs} go on with the same losses bit by bit, {killed} of them killed in time",
                        ok=right == runs and killed > 0)  # fmt: skip
            # Each goes on with the checkpoint of another number of processes; sums are rounded in another order.
            os.remove(f"{folder}/checkpoint")
            seen = {}
            for world, steps in ((4, 10), (2, 20), (1, 30), (3, 40)):
                flags[flags.index("--steps") + 1] = str(steps)
                seen.update(self.trained([*flags, "--resume"], world))
            far = max(abs(seen[step] - loss) / loss for step, loss in whole.items())
            self.record("training resumed by 4, 2, 1 and 3 processes", f"the same losses, to {far:.0e}",
                        ok=seen.keys() == whole.keys() and far < 1e-3)  # fmt: skip

    # ---- links ----

    def links(self):
        unreachable = lambda rank: [f"process {rank} does not answer", f"process {rank} is unreachable"]
        everybody = [(2, r) for r in (0, 1, 3)]
        self.fault("packets of host 2 dropped both ways, timeout 3 s", 3, 4,
                   lambda _, torn: torn.enter_context(dropped(*everybody, both=True)), [0, 1, 3], 15,
                   lambda _: unreachable(2), self.runs // 3 or 1)  # fmt: skip
        for name, pairs in (("to", [(r, 2) for r in (0, 1, 3)]), ("from", everybody)):
            self.fault(f"packets {name} host 2 dropped, timeout 3 s", 3, 4,
                       lambda _, torn, pairs=pairs: torn.enter_context(dropped(*pairs)), [0, 1, 3], 15,
                       lambda _: unreachable(2), self.runs // 3 or 1)  # fmt: skip
        self.fault("host 2's link down, timeout 3 s", 3, 4, link_down, [0, 1, 3], 15, lambda _: unreachable(2),
                   self.runs // 3 or 1)  # fmt: skip
        self.fault("packets from 2 to 1 dropped, timeout 3 s", 3, 4,
                   lambda _, torn: torn.enter_context(dropped((2, 1))), [0, 1, 2, 3], 15,
                   lambda _: ["what processes 1 and 2 send each other does not arrive"], self.runs)  # fmt: skip
        self.fault("packets between 1 and 2 dropped both ways, timeout 3 s", 3, 4,
                   lambda _, torn: torn.enter_context(dropped((2, 1), both=True)), [0, 1, 2, 3], 15,
                   lambda _: ["what processes 1 and 2 send each other does not arrive"], self.runs // 3 or 1)  # fmt: skip
        split = [(a, b) for a in (0, 1) for b in (2, 3)]
        self.fault("hosts 0, 1 split from 2, 3, timeout 3 s", 3, 4,
                   lambda _, torn: torn.enter_context(dropped(*split, both=True)), [0, 1, 2, 3], 15,
                   lambda rank: unreachable(2) + unreachable(3) if rank < 2 else unreachable(0), self.runs // 3 or 1)  # fmt: skip

    def unreachable(self):
        """A kernel knows that a machine is gone once that has answered nothing for 60 s: then all say so, before the timeout."""
        cuts = [("host 2's link down", link_down)]
        if has_filters():
            cuts.append(("packets of host 2 dropped both ways",
                         lambda _, torn: torn.enter_context(dropped(*[(2, r) for r in (0, 1, 3)], both=True))))  # fmt: skip
        for name, cut in cuts:
            self.fault(f"{name}, timeout 200 s", 200, 4, cut, [0, 1, 3], 120, lambda _: ["process 2 is unreachable"])

    def outages(self):
        for seconds, timeout in ((5, 20), (10, 20), (15, 40)):
            with Run([self.worker, "gloo", "beat", str(timeout)], 3) as run:
                run.wait_until_said("beating")
                with dropped((2, 0), (2, 1), both=True):
                    time.sleep(seconds)
                goes_on = run.wait([0, 1, 2], 15) is None
                self.record(f"an outage of {seconds} s, timeout {timeout} s", "goes on", ok=goes_on,
                            detail=run.processes[0].output[-500:])  # fmt: skip

    # ---- connecting ----

    def connecting(self):
        with dropped((2, 1), both=True), Run([self.worker, "gloo", "beat", "4"], 3) as run:
            took = run.wait([0, 1, 2], 30)
            ok = took is not None and took < 9 and run.codes([0, 1, 2]) == [3, 3, 3]
            self.record("1 and 2 cut before the start, timeout 4 s", "all end", took, ok,
                        "\n".join(each.output[-400:] for each in run.processes))  # fmt: skip
        silent = subprocess.Popen(
            ["ip", "netns", "exec", f"{PREFIX}0", sys.executable, __file__, "--listen", "29500"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            if silent.stdout.readline().strip() != "listens":
                raise AssertionError("the silent program does not listen")
            with Run([self.worker, "gloo", "beat", "10"], 3) as run:
                begin = time.monotonic()
                run.wait_until_said("beating", 20)
                self.record("a silent program at MASTER_PORT", "the next port is found", time.monotonic() - begin)
        finally:
            silent.kill()
            silent.wait()
        with Run([self.worker, "gloo", "beat", "10"], 3, MASTER_ADDR="fd77::10") as run:
            begin = time.monotonic()
            run.wait_until_said("beating", 20)
            self.record("MASTER_ADDR is an IPv6 address", "connected", time.monotonic() - begin)
        # Two launches at one port, their processes mixed.
        commands = [self.worker, "gloo", "--gtest_brief=1", "--gtest_filter=Collectives.HalvesAreAddedInF32"]
        order = [("a", 0), ("b", 0), ("b", 1), ("a", 1)]
        processes = [Process(rank, rank, 2, commands, PENSTOCK_RUN_ID=name) for name, rank in order]
        for each in processes:
            each.reader.join(60)
        codes = [each.process.returncode for each in processes]
        self.record("two launches at one port", "each finds its own", ok=codes == [0] * 4,
                    detail="\n".join(each.output[-300:] for each in processes))  # fmt: skip

    # ---- whole runs ----

    def training(self):
        command = [self.trainer, "--synthetic", "200", "--batch", "60", "--steps", "300", "--seed", "3",
                   "--devices", "host:1", "--threads", "1", "--quiet", "--timeout", "60"]  # fmt: skip

        def losses(run):
            took = run.wait(range(3), 120)
            if took is None or any(run.codes(range(3))):
                raise AssertionError("\n".join(each.output[-500:] for each in run.processes))
            return run.processes[0].output, took

        with Run(command, 3) as run:
            quiet, took = losses(run)
        self.record("nothing", "ends", took)
        short = [*command[: command.index("300")], "6", *command[command.index("300") + 1 :]]
        with Run(short, 3) as run:
            first, _ = losses(run)
        with delayed(1, 200), Run(short, 3) as run:
            slow, took = losses(run)
        self.record("200 ms on all ways of host 1, 6 steps", "the same losses", took, without_times(slow) == without_times(first))
        with delayed(1, 200), losing(1, 5), Run(short, 3) as run:
            slow, took = losses(run)
        self.record("the same, and 5% of its packets lost", "the same losses", took, without_times(slow) == without_times(first))
        inside(1, "tc qdisc add dev eth0 root tbf rate 50mbit burst 64kbit latency 400ms")
        try:
            with Run(command, 3) as run:
                slow, took = losses(run)
        finally:
            inside(1, "tc qdisc del dev eth0 root")
        self.record("host 1's network has 50 Mbit/s", "the same losses", took, without_times(slow) == without_times(quiet),
                    quiet + slow)  # fmt: skip
        attackers = subprocess.Popen(["ip", "netns", "exec", f"{PREFIX}1", sys.executable, __file__, "--attack", address(0)],
                                     stdout=subprocess.PIPE, text=True)  # fmt: skip
        try:
            if attackers.stdout.readline().strip() != "attacks":
                raise AssertionError("nobody attacks")
            with Run(command, 3) as run:
                attacked, took = losses(run)
        finally:
            attackers.kill()
            attackers.wait()
        self.record("strangers at the rendezvous all the while", "the same losses", took,
                    without_times(attacked) == without_times(quiet), quiet + attacked)  # fmt: skip

    def many(self):
        world = 128
        begin = time.monotonic()
        with Run([self.worker, "gloo", "join", "60"], world, hosts=[k % 4 for k in range(world)]) as run:
            run.wait_until_said("joined", 120)
            took = time.monotonic() - begin
        self.record(f"{world} processes join", "with their start", took, took < 10)


def without_times(text):
    found = re.findall(r"loss[ =:]+([0-9.e+-]+)", text)
    if not found:
        raise AssertionError(f"no losses in '{text}'")
    return found


def attack(where):
    """Strangers that connect and say too much, nothing, or something else, for ever."""
    open_ones = []
    print("attacks", flush=True)
    while True:
        for port in range(29500, 29504):
            try:
                stranger = socket.create_connection((where, port), timeout=1)
                stranger.setblocking(False)
                with contextlib.suppress(OSError):
                    stranger.send([b"", b"\x00\x00\x00\x01" + b"x" * 100_000, b"GET / HTTP/1.1\r\n\r\n"][len(open_ones) % 3])
                open_ones.append(stranger)
            except OSError:
                time.sleep(0.01)
        if len(open_ones) > 400:
            open_ones.pop(0).close()


def listen(port):
    """A program that takes connections and never says a word."""
    silent = socket.socket()
    silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    silent.bind(("", port))
    silent.listen()
    print("listens", flush=True)
    time.sleep(60)


CASES = ["killed", "stopped", "missing", "checkpoints", "links", "unreachable", "outages", "connecting", "training", "many"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker")
    parser.add_argument("--trainer")
    parser.add_argument("--runs", type=int, default=30, help="of most cases, of some a third")
    parser.add_argument("--only", nargs="*", default=CASES)
    parser.add_argument("--attack", metavar="ADDRESS", help=argparse.SUPPRESS)
    parser.add_argument("--relay", nargs=3, metavar=("DEVICE", "DEVICE", "MS"), help=argparse.SUPPRESS)
    parser.add_argument("--listen", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        attack(options.attack)
    if options.relay:
        relay(options.relay[:2], int(options.relay[2]) / 1e3)
    if options.listen:
        listen(options.listen)
        return 0
    cases = Cases(options.worker, options.trainer, options.runs)
    hosts = 4
    try:
        make_hosts(hosts)
        for name in options.only:
            getattr(cases, name)()
    finally:
        remove_hosts(hosts)
    print("\n| fault | time | result |\n| --- | --- | --- |")
    for row in cases.rows:
        print("| " + " | ".join(row) + " |")
    print(f"== {len(cases.rows)} faults, {cases.wrong} wrong")
    return 1 if cases.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
