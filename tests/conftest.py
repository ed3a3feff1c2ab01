"""Test selection: what takes long runs only when it is asked for by name: pytest -m slow, pytest -m kill."""

RARE = ("kill", "slow")


def pytest_collection_modifyitems(config, items):
    """Leave out tests with a marker of `RARE` unless the marker expression names it."""
    unasked = [name for name in RARE if name not in config.getoption("markexpr")]
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in unasked)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
