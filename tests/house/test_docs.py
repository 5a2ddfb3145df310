"""Do the examples in the documentation run, and do the stubs name what is there?"""

import ast
import doctest
import importlib
import inspect
import json
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
import ufuse
from ufuse import _core
from ufuse.tools import debugging

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(ufuse.__path__, "ufuse.")
    if module.name not in ("ufuse._core", "ufuse.__main__", "ufuse.tools.ipython", "ufuse.numpy")
)
PUBLIC = {
    "jit": ufuse.jit,
    "profile": ufuse.profile,
    "stance": ufuse.stance,
    "set_num_threads": ufuse.set_num_threads,
    "get_num_threads": ufuse.get_num_threads,
    "explain": type(ufuse.jit(len)).explain,
    "source": type(ufuse.jit(len)).source,
}


@pytest.mark.parametrize("name", ["ufuse", *MODULES])
def test_examples_run(name):
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not failed


@pytest.mark.parametrize("name", PUBLIC)
def test_public_docstrings_are_whole(name):
    text = inspect.getdoc(PUBLIC[name])
    parameters = inspect.signature(PUBLIC[name]).parameters.keys() - {"self"}
    assert "Examples\n--------" in text
    assert ("Parameters\n----------" in text) == bool(parameters)
    assert all(parameter in text for parameter in parameters)
    assert re.search(r"(Returns|Yields|Raises)\n-", text)


def run_examples(page, names, folder):
    """Runs the Python code of a page, from files, for functions are traced through their source.

    Examples of a library that is not installed are left out.
    """
    for at, text in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)):
        file = folder / f"{page.stem}_{at}.py"
        file.write_text(text)
        try:
            exec(compile(text, str(file), "exec"), names)
        except ModuleNotFoundError as missing:
            if missing.name not in OPTIONAL:
                raise


OPTIONAL = ("scipy", "pandas", "dask", "xarray", "joblib")


def test_readme_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"X": np.random.default_rng(0).normal(size=(50, 2)), "means": np.eye(2)}
    names["x"] = names["X"]
    run_examples(ROOT / "README.md", names, tmp_path)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_examples_of_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples(page, {"__name__": page.stem}, tmp_path)


def test_the_report_of_the_debugging_page_is_that_of_its_script(capsys):
    text = (ROOT / "docs" / "debugging.md").read_text()
    script = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    findings = debugging.Findings()
    exec(findings.compiled(script, "script.py"), {})
    assert re.search(r"```text\n(.*?)\n```", text, re.DOTALL)[1] == str(findings)
    assert capsys.readouterr().out == "nan\n"


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in ROOT.rglob("*.md")
        if "build" not in page.parts and ".venv" not in page.parts
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert "://" in link or (page.parent / link).exists(), link


def test_notebook_runs(capsys):
    testing = pytest.importorskip("IPython.testing.globalipapp")
    shell = testing.start_ipython() or testing.get_ipython()
    cells = json.loads((ROOT / "bench" / "notebook.ipynb").read_text())["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert shell.run_cell("".join(cell["source"])).success
    assert "kmeans: same as NumPy" in capsys.readouterr().out


def _stub_names(body, prefix=""):
    """Dotted names that a stub says exist at run time."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bases = [ast.unparse(base) for base in getattr(node, "bases", [])]
            if "TypedDict" in bases:
                continue
            yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from _stub_names(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.AnnAssign):
            yield prefix + ast.unparse(node.target)


def test_stub_names_what_the_core_has():
    stub = ast.parse((ROOT / "pyext" / "ufuse" / "_core.pyi").read_text())
    listed = set(_stub_names(stub.body))
    imported = [
        each for node in stub.body if isinstance(node, ast.ImportFrom) for each in node.names
    ]
    listed |= {each.asname for each in imported if each.asname}
    public = {name for name in dir(_core) if not name.startswith("_")} | {"__version__"}
    assert {name for name in listed if "." not in name} == public
    for name in listed:
        value = _core
        for part in name.split("."):
            value = getattr(value, part) if part != "__getattr__" else value
    # The classes' own methods, apart from operators.
    for kind in (_core.Dispatcher, _core.backend):
        own = {name for name in vars(kind) if not name.startswith("_")}
        assert own <= {name.partition(".")[2] for name in listed}
