"""How does ufuse compare with NumPy and with its peers, case by case? (`make bench`)

Runs worker.py for each case and thread count, prints a table as it goes, and leaves
bench/out/bench.json, bench.md and one plot per thread count.

    python -m bench.run                         all cases, full size, one and two threads
    python -m bench.run kmeans chain --size small --versions numpy,ufuse
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from bench import report
from bench.cases import CASES
from bench.peers import PEERS

OUT = Path(__file__).parent / "out"
ROOT = Path(__file__).parents[1]


def run_worker(case: str, threads: int, options: argparse.Namespace) -> dict[str, Any]:
    """One case in a process of its own; a process that dies gives an entry that says so."""
    command = [sys.executable, "-m", "bench.worker", f"--case={case}", f"--threads={threads}"]
    command += [f"--size={options.size}", f"--budget={options.budget}"]
    command += [f"--versions={options.versions}"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        reason = {"cannot": f"the measuring process ended with status {done.returncode}"}
        return dict.fromkeys(options.versions.split(","), reason)
    entries: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return entries


def machine() -> dict[str, str]:
    """What the figures depend on: processor, Python and package versions."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].split(":", 1)[1].strip() if models else cpu
    versions = {}
    for package in ("numpy", "ufuse", "numba", "jax", "torch", "numexpr"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    cores = len(os.sched_getaffinity(0))
    return {"cpu": cpu, "cores": str(cores), "python": platform.python_version(), **versions}


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="names of cases; all by default")
    parser.add_argument("--size", choices=["full", "small"], default="full")
    parser.add_argument("--versions", default=",".join(PEERS), help="separated by commas")
    parser.add_argument("--threads", default="1,2", help="thread counts, separated by commas")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds per case")
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"unknown cases {sorted(unknown)}; there are {', '.join(CASES)}")

    results: dict[str, dict[str, Any]] = {}
    for threads in (int(text) for text in options.threads.split(",")):
        if threads > cores:
            print(f"skipping {threads} threads: this machine lends us {cores} cores")
            continue
        print(f"\n{threads} thread(s), {options.size} size", flush=True)
        table = results.setdefault(str(threads), {})
        for case in options.cases or CASES:
            table[case] = run_worker(case, threads, options)
            print(report.line(case, table[case]), flush=True)
    written = report.write(OUT, machine(), options.size, results)
    print("\n" + "\n".join(f"wrote {path}" for path in written))


if __name__ == "__main__":
    main()
