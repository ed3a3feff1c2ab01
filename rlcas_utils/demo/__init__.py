"""The demo in a browser: `make demo`. Only `app`, `desk_tab` and `telecom_tab` need Gradio."""
