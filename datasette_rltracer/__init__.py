"""The Datasette plugin."""
