"""How are the measurements shown?

Turns the JSON entries of worker.py into a line on the terminal, a page of Markdown and one bar
chart per thread count. Ratios are NumPy's median over the version's: larger is faster.
"""

import json
from pathlib import Path
from typing import Any

from bench.timing import human, median

Entries = dict[str, dict[str, Any]]
MARK = {"identical": "=", "close": "~", "different": "!", "unchecked": ""}
LEGEND = (
    "Ratios are NumPy's time over the version's, from medians of samples taken in turns. "
    "`=` same bits, dtype and type as NumPy; `~` close; `!` different; `-` cannot (reasons below)."
)


def seconds(entries: Entries, version: str) -> float | None:
    """The median time of a version, None when it could not run."""
    samples = entries.get(version, {}).get("seconds")
    return median(samples) if samples else None


def ratio(entries: Entries, version: str) -> float | None:
    ours, numpys = seconds(entries, version), seconds(entries, "numpy")
    return numpys / ours if ours and numpys else None


def cell(entries: Entries, version: str) -> str:
    """The ratio with the mark of its result, as in "47.1x =" """
    value = ratio(entries, version)
    if value is None:
        return "-"
    return f"{value:.2f}x {MARK[entries[version]['result']]}".strip()


def line(case: str, entries: Entries) -> str:
    """One case on the terminal."""
    parts = [f"{case:10}"]
    for version in entries:
        time = seconds(entries, version)
        if version == "numpy":
            parts.append(f"numpy {human(time) if time else '-':>8}")
        elif time is None:
            parts.append(f"{version} -")
        else:
            parts.append(f"{version} {human(time)} ({cell(entries, version)})")
    share = reference_share(entries)
    if share is not None:
        parts.append(f"{share:.0%} of the reference loop's speed")
    return "  ".join(parts)


def reference_share(entries: Entries) -> float | None:
    """The speed of ufuse as a share of the memory limit, where a reference loop marks it."""
    ours, limit = seconds(entries, "ufuse"), seconds(entries, "reference")
    return limit / ours if ours and limit else None


def _markdown_table(table: dict[str, Entries]) -> list[str]:
    versions = list(dict.fromkeys(name for entries in table.values() for name in entries))
    peers = [name for name in versions if name != "numpy"]
    lines = [
        "| case | numpy | " + " | ".join(peers) + " |",
        "|---|---:|" + "---:|" * len(peers),
    ]
    for case, entries in table.items():
        time = seconds(entries, "numpy")
        cells = [cell(entries, name) for name in peers]
        lines.append(f"| {case} | {human(time) if time else '-'} | " + " | ".join(cells) + " |")
    for case, entries in table.items():
        share = reference_share(entries)
        if share is not None:
            lines += ["", f"{case}: ufuse runs at {share:.0%} of the reference loop's speed."]
    return lines


def _reasons(table: dict[str, Entries]) -> list[str]:
    """Why a version did not run, each reason once per version with the cases it holds for."""
    cases: dict[tuple[str, str], list[str]] = {}
    for case, entries in table.items():
        for version, entry in entries.items():
            if "cannot" in entry:
                cases.setdefault((version, entry["cannot"]), []).append(case)
    return [
        f"- {version}, {', '.join(names) if len(names) < len(table) else 'all cases'}: {reason}"
        for (version, reason), names in cases.items()
        if version != "reference"
    ]


def _plot(path: Path, title: str, table: dict[str, Entries]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    versions = [
        name
        for name in dict.fromkeys(name for entries in table.values() for name in entries)
        if name != "numpy" and any(ratio(entries, name) for entries in table.values())
    ]
    figure, axes = plt.subplots(figsize=(1.1 * len(table) + 3, 4.5), layout="constrained")
    width = 0.8 / max(1, len(versions))
    for place, version in enumerate(versions):
        # A version that cannot run a case has no bar there.
        values = [ratio(entries, version) or float("nan") for entries in table.values()]
        positions = [index + (place + 0.5) * width - 0.4 for index in range(len(table))]
        axes.bar(positions, values, width, label=version)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xticks(range(len(table)), list(table), rotation=30, ha="right")
    axes.set_ylabel("times as fast as NumPy")
    axes.set_title(title)
    axes.legend(ncols=3, fontsize="small", loc="upper right")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def write(
    folder: Path, machine: dict[str, str], size: str, results: dict[str, dict[str, Entries]]
) -> list[Path]:
    """Write bench.json, bench.md and the plots into ``folder``; returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    data, page = folder / "bench.json", folder / "bench.md"
    data.write_text(json.dumps({"machine": machine, "size": size, "results": results}, indent=1))
    lines = ["# Benchmarks", "", ", ".join(f"{key} {value}" for key, value in machine.items())]
    lines += ["", LEGEND]
    written = [data, page]
    for threads, table in results.items():
        plot = folder / f"speedup-{threads}-threads.png"
        _plot(plot, f"{threads} thread(s), {size} size", table)
        written.append(plot)
        lines += ["", f"## {threads} thread(s), {size} size", "", *_markdown_table(table)]
        lines += ["", f"![speed-up over NumPy]({plot.name})", "", *_reasons(table)]
    page.write_text("\n".join(lines) + "\n")
    return written
