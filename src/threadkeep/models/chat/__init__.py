"""Chat models: through LangChain, or offline by quoting what was found."""
