"""Stageline in JupyterLab: the file browser's "Open in Stageline", and the server's part of it."""
from .server import load

__version__ = '0.1.0'


def _jupyter_server_extension_points():
    return [{'module': 'stageline_jupyterlab'}]


def _load_jupyter_server_extension(server):
    load(server.web_app)
