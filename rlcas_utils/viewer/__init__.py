"""One renderer of episodes as HTML, used by the demo and by the pages beside a run's report."""
