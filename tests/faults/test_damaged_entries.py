"""Is an entry of the disk cache that is not what was written ever used?

A sound cache folder is made once. Each case damages every entry of a copy, each in another way, and
runs two processes on it: the first must give NumPy's bits and leave no damage as it was, and the
second must find entries that are sound again.
"""

import itertools
import os
import random
import shutil

import pytest
from place import Place, libraries_in, needs_compiler, rounds


def emptied(file):
    file.write_bytes(b"")


def cut_in_its_first_header(file):
    file.write_bytes(file.read_bytes()[:40])


def cut_in_half(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_by_one(file):
    file.write_bytes(file.read_bytes()[:-1])


def cut_at_its_front(file):
    file.write_bytes(file.read_bytes()[1:])


def garbage(file):
    file.write_bytes(b"\x7fELF" + os.urandom(5000))


def flip(file, at):
    content = bytearray(file.read_bytes())
    content[at] ^= 0x10
    file.write_bytes(bytes(content))


def flipped_first(file):
    flip(file, 0)


def flipped_in_the_payload(file):
    flip(file, file.stat().st_size // 3)


def flipped_in_the_key(file):
    flip(file, -100)


def flipped_in_the_version(file):
    flip(file, -40)


def flipped_last(file):
    flip(file, -1)


def appended(file):
    file.write_bytes(file.read_bytes() + b"more")


def twice(file):
    file.write_bytes(file.read_bytes() * 2)


def zeroed(file):
    file.write_bytes(bytes(file.stat().st_size))


def end_zeroed(file):
    """As after a crash of the system, when not all blocks had been written."""
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 4096 * 4096].ljust(len(content), b"\0"))


def made_text(file):
    file.write_text("hello\n")


def made_a_link(file):
    file.unlink()
    file.symlink_to("/nonexistent")


def linked_to_a_copy(file):
    copy = file.with_name("copy-" + file.name)
    file.rename(copy)
    flip(copy, copy.stat().st_size // 2)
    file.symlink_to(copy)


def made_a_folder(file):
    file.unlink()
    file.mkdir()


DAMAGES = [
    [emptied, cut_in_half, garbage, flipped_first, zeroed, flipped_in_the_key],
    [cut_by_one, appended, flipped_in_the_payload, made_a_link, end_zeroed, flipped_last],
    [cut_in_its_first_header, flipped_in_the_version, twice, made_text, cut_at_its_front],
    [linked_to_a_copy],
    [made_a_folder],
]

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache folder with entries, to be copied."""
    place = Place(tmp_path_factory.mktemp("warm"))
    place.run("chain", "kmeans", "z_score")
    return place.cache


def found(path):
    """What is under a name: whatever is no file is told by its kind."""
    if path.is_symlink() or not path.is_file():
        return "link" if path.is_symlink() else "folder" if path.is_dir() else "nothing"
    return path.read_bytes()


def run_on(place, warm):
    """Run on a copy of a warm folder in which every entry is damaged."""
    damaged = {entry: found(entry) for entry in place.entries() if entry.name.startswith("ufuse-")}
    for name in libraries_in(warm):
        damaged.pop(place.cache / name, None)
    assert "compiled" in place.run("chain", "kmeans", "z_score")
    for entry, before in damaged.items():
        # Harmless damage is damage: the next one may not be.
        assert before == "folder" or found(entry) != before, f"{entry.name} was taken for sound"


@pytest.mark.parametrize("damages", DAMAGES, ids=lambda d: d[0].__name__)
def test_damaged_entries(place, warm, damages):
    shutil.copytree(warm, place.cache)
    for entry, damage in zip(place.entries(), itertools.cycle(damages), strict=False):
        damage(entry)
    run_on(place, warm)
    if made_a_folder not in damages:
        assert "compiled" not in place.run("chain", "kmeans", "z_score"), "not written anew"


def test_entries_of_each_other(place, warm):
    shutil.copytree(warm, place.cache)
    entries = place.entries()
    contents = [entry.read_bytes() for entry in entries]
    for entry, content in zip(entries, contents[1:] + contents[:1], strict=True):
        entry.write_bytes(content)
    run_on(place, warm)
    assert "compiled" not in place.run("chain", "kmeans", "z_score")


def test_random_damage(place, warm):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(rounds(1)):
        shutil.rmtree(place.cache, ignore_errors=True)
        shutil.copytree(warm, place.cache)
        for entry in place.entries():
            if rng.random() < 0.3:
                entry.write_bytes(entry.read_bytes()[: rng.randrange(entry.stat().st_size)])
            else:
                flip(entry, rng.randrange(entry.stat().st_size))
        run_on(place, warm)
        assert "compiled" not in place.run("chain", "kmeans", "z_score")
