"""What holds for all folders of tests.

Tests that stand for many others tell at the end what became of those (``record_property``). They
take long, so they come first: at the end all processes have work.
"""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: "numpy_suite" not in item.path.parts)


def pytest_terminal_summary(terminalreporter):
    """One line for each test that has something to tell."""
    told = sorted(
        text
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, text in getattr(report, "user_properties", ())
        if name == "told" and report.when == "call"
    )
    if told:
        terminalreporter.section("NumPy's own tests with ufuse.numpy")
        for line in told:
            terminalreporter.line(line)
