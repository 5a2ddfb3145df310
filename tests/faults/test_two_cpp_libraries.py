"""Does the module keep clear of the part of C++'s library that does not bear a second one?

A process holds two such libraries where a module was linked with a copy of its own. The locale and
what asks it are that part: objects of one library meet tables of the other.
"""

import shutil
import subprocess

import pytest
from ufuse import _core

# As their mangled names begin: std::locale, its facets, streams, buffers and std::filesystem.
OF_THE_LOCALE = (
    "St6locale",
    "St7codecvt",
    "St5ctype",
    "St8numpunct",
    "St7num_get",
    "St7num_put",
    "St8ios_base",
    "St9basic_ios",
    "St10filesystem",
    "St12__basic_file",
    "basic_filebuf",
    "basic_ifstream",
    "basic_ofstream",
    "basic_istream",
    "basic_ostream",
    "basic_iostream",
    "basic_stringbuf",
    "basic_istringstream",
    "basic_ostringstream",
    "basic_stringstream",
    "basic_streambuf",
)


@pytest.mark.skipif(not shutil.which("nm"), reason="there is no nm")
def test_the_module_asks_for_nothing_of_the_cpp_locale():
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", _core.__file__], capture_output=True, text=True, check=True
    ).stdout
    wanted = [line.split()[-1] for line in listed.splitlines()]
    assert any("St12length_error" in name or "__cxa_throw" in name for name in wanted)
    found = [name for name in wanted if any(part in name for part in OF_THE_LOCALE)]
    # Every file that includes <iostream>, as a header of the interpreter's library does, counts
    # itself among the users of the standard streams.
    assert [name for name in found if "St8ios_base4Init" not in name] == []
