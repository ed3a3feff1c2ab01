"""Test selection: what takes a quarter of an hour runs only when it is asked for by name."""


def pytest_collection_modifyitems(config, items):
    """Leave out tests marked `kill` unless the marker expression names them: pytest -m kill."""
    if "kill" in config.getoption("markexpr"):
        return
    left_out = [item for item in items if item.get_closest_marker("kill")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
