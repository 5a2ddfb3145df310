"""Does `python -m ufuse cache` tell what is kept, and empty it of nothing but our own files?"""

import os
import re
import subprocess
import sys

import pytest
import ufuse


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept here"


@pytest.fixture
def ask(folder):
    """What `python -m ufuse` prints, and its exit status."""

    def ask(*arguments, **variables):
        done = subprocess.run(
            [sys.executable, "-m", "ufuse", *arguments],
            env={**os.environ, "UFUSE_CACHE_DIR": str(folder), "UFUSE_CACHE_SIZE": "", **variables},
            capture_output=True,
            text=True,
            timeout=100,
        )
        return done.stdout + done.stderr, done.returncode

    return ask


def named(number):
    return f"ufuse-{number:032x}.so"


def test_it_shows_what_is_kept_and_clears_it(ask, folder):
    out, status = ask("cache")
    assert (out, status) == (f"folder  {folder}\nkept    0 files, 0.0 of at most 256 MiB\n", 0)
    ours = [folder / named(1), folder / named(2), folder / "ufuse-failed-abcdef.cpp"]
    for file in ours:
        file.write_bytes(bytes(1 << 19))
    theirs = [folder / "ufuse-notes.so", folder / "mine.txt", folder / "inner"]
    theirs[0].write_text("text")
    theirs[1].write_text("text")
    theirs[2].mkdir()
    out, status = ask("cache", UFUSE_CACHE_SIZE="5")
    assert (out, status) == (f"folder  {folder}\nkept    3 files, 1.5 of at most 5 MiB\n", 0)
    out, status = ask("cache", "--clear")
    assert (out, status) == (f"folder  {folder}\nremoved 3 files, 1.5 of at most 256 MiB\n", 0)
    assert sorted(folder.iterdir()) == sorted(theirs)
    assert "kept    0 files" in ask("cache")[0]


def test_it_names_files_that_are_never_used(ask, folder):
    folder.mkdir(mode=0o700)
    (folder / named(1)).write_bytes(b"text")
    (folder / named(2)).write_bytes(b"text")
    (folder / named(1)).chmod(0o622)
    assert "1 of them other users own or can write: these are never used" in ask("cache")[0]
    ask("cache", "--clear")
    assert not list(folder.iterdir())


def test_it_says_why_the_folder_is_not_used(ask, folder):
    folder.mkdir()
    folder.chmod(0o777)
    (folder / named(1)).write_bytes(b"text")
    for arguments in (["cache"], ["cache", "--clear"]):
        out, status = ask(*arguments)
        assert f"unused  {folder}: is open to other users" in out
        assert status == 1
    assert list(folder.iterdir()), "a folder that is not ours alone was touched"
    assert ask("cache", UFUSE_CACHE_SIZE="0") == (
        f"folder  {folder}\nunused  UFUSE_CACHE_SIZE is 0: nothing is kept\n",
        0,
    )


def test_the_doctor_agrees(ask, folder):
    out, _ = ask("doctor")
    kept = re.search(r"\d+ files, [\d.]+ of at most 256 MiB", ask("cache")[0])
    assert kept
    assert f"ok  cache     {folder}, {kept[0]}" in out
    assert "ok  cache     UFUSE_CACHE_SIZE is 0" in ask("doctor", UFUSE_CACHE_SIZE="0")[0]


def test_version(ask):
    assert ask("--version") == (f"ufuse {ufuse.__version__}\n", 0)


def test_words_that_it_does_not_know(ask):
    out, status = ask("cache", "--everything")
    assert status == 2
    assert "usage: python -m ufuse" in out
    assert "--clear" in ask("cache", "--help")[0]
