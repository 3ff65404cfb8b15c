"""Rows of agent frameworks' sessions on the databases: beside the items of LangGraph's stores."""
