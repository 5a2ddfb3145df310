"""How do programs as people write them run with `ufuse.jit`, from the first call on?

    python -m bench.programs                                  the programs of this folder
    python -m bench.programs --npbench ../npbench             those of a checkout of NPBench
    python -m bench.programs gravity spins --settle 0         some of them

Each program runs in a process of its own, with an empty disk cache. The table says NumPy's median
time, the first call's, NumPy's time for its ten calls over that of the first ten, the regret of
these ten (seconds beyond NumPy's ten, which run in another process), the ratio in the steady state,
whether all bits were NumPy's, and how many calls were answered in which way. Also written to
bench/out/programs.json.
"""

import argparse
import json
import math
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.programs import Program
from bench.report import MARK
from bench.run import OUT, ROOT
from bench.timing import human

OWN = (
    "callbacks",
    "grids",
    "images",
    "learning",
    "linear",
    "lists",
    "sequences",
    "simulations",
    "statements",
)


def collection(npbench: Path | None, preset: str) -> dict[str, Program]:
    """The programs to choose from, by name."""
    if npbench is not None:
        return import_module("bench.programs.npbench").programs(npbench, preset)
    found: dict[str, Program] = {}
    for name in OWN:
        found.update(import_module(f"bench.programs.{name}").PROGRAMS)
    return found


def run_worker(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One program in a process of its own, and NumPy's first calls in another."""
    command = [sys.executable, "-m", "bench.programs.worker", name, f"--preset={options.preset}"]
    command += [f"--settle={options.settle}", f"--budget={options.budget}"]
    if options.npbench is not None:
        command.append(f"--npbench={options.npbench.resolve()}")
    reports: list[dict[str, Any]] = []
    for more in ([], ["--plain"]):
        done = subprocess.run(
            command + more, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode != 0:
            return {"cannot": f"the measuring process ended with status {done.returncode}"}
        reports.append(json.loads(done.stdout.splitlines()[-1]))
    report, plain = reports
    report["ten"] = sum(plain["first"])
    report["regret"] = sum(report["first"]) - report["ten"]
    return report


def line(name: str, entry: dict[str, Any]) -> str:
    """One row of the table."""
    if "cannot" in entry:
        return f"{name:28} {entry['cannot']}"
    first, numpy = entry["first"], entry["numpy"]
    ways: dict[str, int] = {}
    for stats in entry["stats"]:
        for way in ("replayed", "traced", "plain"):
            ways[way] = ways.get(way, 0) + stats[way]
    shown = ", ".join(f"{count} {way}" for way, count in ways.items() if count)
    return (
        f"{name:28} {human(numpy):>8} {human(first[0]):>8} {entry['ten'] / sum(first):7.2f}x"
        f" {entry['regret']:8.3f} {numpy / entry['steady']:7.2f}x {MARK[entry['result']]}  {shown}"
    )


def summary(entries: dict[str, dict[str, Any]]) -> str:
    """Geometric means, and how many are slower than NumPy."""
    measured = [entry for entry in entries.values() if "cannot" not in entry]
    if not measured:
        return "nothing measured"
    steady = [entry["numpy"] / entry["steady"] for entry in measured]
    tens = [entry["ten"] / sum(entry["first"]) for entry in measured]
    mean = [math.exp(sum(map(math.log, each)) / len(each)) for each in (steady, tens)]
    same = sum(entry["result"] == "identical" for entry in measured)
    slower = sum(ratio < 0.95 for ratio in steady)
    regret = max(entry["regret"] for entry in measured)
    return (
        f"{len(measured)} programs, {same} with NumPy's bits; steady {mean[0]:.2f}x, {slower} below"
        f" 0.95x; first ten calls {mean[1]:.2f}x, regret at most {regret:.3f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="names of programs; all by default")
    parser.add_argument("--npbench", type=Path, help="the folder of a checkout of NPBench")
    parser.add_argument("--preset", default="S", help="the size of NPBench's data")
    parser.add_argument("--settle", type=float, default=1.5, help="seconds before the steady state")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of measuring after them")
    options = parser.parse_args()
    names = list(collection(options.npbench, options.preset))
    unknown = set(options.names) - set(names)
    if unknown:
        parser.error(f"unknown programs {sorted(unknown)}; there are {', '.join(names)}")

    heads = ("NumPy", "first", "ten calls", "regret", "steady")
    print(f"{'program':28} {heads[0]:>8} {heads[1]:>8} {heads[2]:>8} {heads[3]:>8} {heads[4]:>8}")
    entries = {}
    for name in options.names or names:
        entries[name] = run_worker(name, options)
        print(line(name, entries[name]), flush=True)
    print(summary(entries))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "programs.json").write_text(json.dumps(entries, indent=1))


if __name__ == "__main__":
    main()
