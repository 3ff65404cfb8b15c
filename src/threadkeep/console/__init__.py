"""Pages to chat with an assistant and to see what memory keeps. They know of the service only its HTTP API."""
