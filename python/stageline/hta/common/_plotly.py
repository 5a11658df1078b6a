"""plotly, imported when a figure is first made: `px.timeline` of a module can be replaced before."""


class _Late:
    def __init__(self, name):
        self.__dict__['_module'] = name

    def __getattr__(self, name):
        import importlib
        return getattr(importlib.import_module(self._module), name)


px, go = _Late('plotly.express'), _Late('plotly.graph_objects')


def to_html(*args, **keywords):
    import plotly.io
    return plotly.io.to_html(*args, **keywords)


def write_figure(figure, path):
    """Writes a figure by the gate of outputs (docs/trust.md): a page if the name ends in .html, else a picture of the kind that it ends in."""
    import os

    from stageline import _engine
    path = os.fspath(path)
    page = path.endswith('.html')
    _engine.write_file(path, figure.to_html().encode() if page else figure.to_image(format=os.path.splitext(path)[1][1:] or 'png'))
