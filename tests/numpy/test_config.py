"""Does `ufuse.config` show the settings that hold, and where they come from?"""

import os
import re
import subprocess
import sys

import pytest
import ufuse

BACKENDS = ["compiled"]


@pytest.fixture
def readme(pytestconfig):
    text = (pytestconfig.rootpath / "README.md").read_text()
    start = text.index("| Setting | Effect |")
    return text[start : text.index("\n\n", start)]


@pytest.fixture
def in_process():
    def run(text, **variables):
        known = {name: value for name, value in os.environ.items() if name[:6] != "UFUSE_"}
        return subprocess.run(
            [sys.executable, "-c", text],
            env={**known, **variables},
            capture_output=True,
            text=True,
            check=True,
        )

    return run


def test_it_names_what_the_readme_names(readme):
    known = {name for name in ufuse.config if name != "stance"}
    assert known == set(re.findall(r"`((?:UFUSE|OMP|KMP)_[A-Z_]+)", readme))


def test_values_and_origins(in_process):
    told = in_process(
        "import ufuse\n"
        "ufuse.set_num_threads(1)\n"
        "for each in ufuse.config.values(): print(each.name, each.value, each.origin, sep='|')",
        UFUSE_PATIENCE="2",
        UFUSE_CACHE_SIZE="much",
        UFUSE_DISABLE="1",
    )
    rows = dict(line.split("|", 1) for line in told.stdout.splitlines())
    assert rows["UFUSE_PATIENCE"] == "2|environment"
    assert rows["UFUSE_CACHE_SIZE"] == "256|default: what is set cannot be used"
    assert rows["OMP_NUM_THREADS"] == "1|ufuse.set_num_threads"
    assert rows["stance"] == "plain|environment"
    assert "UFUSE_CACHE_SIZE: 'much' is no number" in told.stderr


def test_names_that_do_not_exist_are_told_once(in_process):
    told = in_process("import ufuse, ufuse.numpy", UFUSE_CASHE_DIR="/tmp", UFUSE_TEST_ANY="1")
    assert told.stderr.splitlines() == [
        "UFUSE_CASHE_DIR: there is no such variable (is UFUSE_CACHE_DIR meant?); it is ignored"
    ]


def test_it_is_shown():
    assert len(repr(ufuse.config).splitlines()) == len(ufuse.config)
    assert ufuse.config._repr_html_().count("<tr>") == len(ufuse.config)
    assert dict(ufuse.config)["UFUSE_BACKEND"].meaning
    with pytest.raises(KeyError):
        ufuse.config["UFUSE_NOTHING"]
