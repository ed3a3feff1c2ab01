"""What can keep a language model from loading, each with one sentence that says what to do."""


class LanguageModelError(RuntimeError):
    """A language model cannot be loaded or used as asked; the text says why and what to do next."""
