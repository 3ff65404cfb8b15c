"""A search over a few pages, in place of a search engine."""

from google.adk.tools import ToolContext

from app.tools.memory_tools import put_tool_cache

PAGES = {
    "night market": "The night market is on Bến Thành square, from 18:00 to 23:00.",
    "museum": "The museum is closed on Mondays.",
    "peanuts": "The soup kitchen cooks without peanuts.",
}


def search(query: str, tool_context: ToolContext) -> dict[str, list[str]]:
    """Search the city's pages for a few words."""
    found = [text for title, text in PAGES.items() if title in query.lower()]
    put_tool_cache(tool_context.state, "searchResults", found)  # scratch: fifteen minutes, in no file
    return {"results": found}
