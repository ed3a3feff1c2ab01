"""The runner behind `make course`: the notebooks of a profile, headless, one after the other."""
