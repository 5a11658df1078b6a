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
