"""Shows results in notebooks and terminals. No number is made here: tables, sentences, charts and pages are the
engine's.

Everything that a trace names (kernels, files) is hostile input to a page: every text is escaped, charts are shown as images and
pages in a frame without rights.
"""
import base64
import contextlib
import html
import itertools
import sys
import time

from . import _engine

_counter = itertools.count()
MOST_PAGE_BYTES = 20_000_000  # browsers and notebook servers take no longer srcdoc well


def _style(scope):
    """The colours of the page around it, whatever the reader's system prefers: a notebook may be light where the system is dark. Nothing
    outside of this output is touched."""
    own = f'div.{scope}.{scope}'  # twice, because JupyterLab's own rules for tables name two classes
    return (f'<style>.{scope}{{font:13px/1.5 system-ui,sans-serif;color:inherit}}{own} table{{border-collapse:collapse;font-size:12px;color:inherit}}'
            f'{own} th,{own} td{{padding:2px 10px;text-align:right;border:0;background:none;white-space:nowrap;color:inherit}}'
            f'{own} th{{font-weight:600;border-bottom:1px solid #80868b}}{own} .t{{text-align:left;max-width:44em;overflow:hidden;'
            f'text-overflow:ellipsis}}{own} .u{{font-weight:400;opacity:.7}}{own} .m{{opacity:.75}}{own} b{{font-weight:600}}'
            f'{own} li{{margin:4px 0}}{own} img{{max-width:100%;background:#fff}}</style>')


def _scoped(body):
    scope = f'stageline-{next(_counter)}'
    return f'{_style(scope)}<div class="{scope}">{body}</div>'


def _table_body(table, rows):
    units, body, note = table._for_people(rows)
    texts = [c.type == 'text' for c in table.columns]
    head = ''.join(f'<th{" class=t" if t else ""} title="{html.escape(c.help, quote=True)}">{html.escape(c.title)}'
                   + (f' <span class=u>{html.escape(u)}</span>' if u else '') + '</th>' for c, t, u in zip(table.columns, texts, units))
    lines = ''.join('<tr>' + ''.join(f'<td{" class=t" if t else ""}>{html.escape(v)}</td>' for t, v in zip(texts, row)) + '</tr>' for row in body)
    more = f'<div class=m>{len(table) - rows:,} more rows</div>' if len(table) > rows else ''
    return f'<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>{more}' + (f'<div class=m>{note}</div>' if note else '')


def info_html(text):
    """Returns the output of `stageline info` as rows of a label and its lines."""
    rows = []
    for line in text.splitlines():
        label, value = line[:14].strip(), html.escape(line[14:].rstrip())
        if line[13:14].strip():  # a sentence of its own
            rows.append(['', html.escape(line)])
        elif label or not rows:
            rows.append([html.escape(label), value])
        else:
            rows[-1][1] += '<br>' + value
    return _scoped('<table>' + ''.join(f'<tr><th class=t>{label}</th><td class=t>{value}</td></tr>' for label, value in rows) + '</table>')


def table_html(table, sentence='', rows=40):
    """A table with its units in the head, the first rows, and how many more there are."""
    lead = f'<p>{html.escape(sentence)}</p>' if sentence else ''
    return _scoped(f'{lead}<b>{html.escape(table.title)}</b>{_table_body(table, rows)}')


def answer_html(answer):
    if answer.foreign:
        return _scoped(f'<pre>{html.escape(answer.foreign)}</pre>')
    return _scoped(''.join(f'<p><b>{html.escape(t.title)}</b></p>{_table_body(t, 40)}' for t in answer.values())
                   + ''.join(f'<div class=m>{html.escape(str(n))}</div>' for n in answer.notes))


def _findings_body(findings, most=None):
    parts = ''.join(f'<tr><td>{share:.1%}</td><td class=t>{html.escape(label)}</td><td class=t><div style="height:9px;width:'
                    f'{max(0.0, min(1.0, share)) * 260:.0f}px;background:#5b8ff9"></div></td></tr>' for label, share in findings.parts)
    items = ''.join(f'<li><b>{html.escape(f.title)}</b><br>{html.escape(f.detail)}'
                    + (f'<br><span class=m>{html.escape(f.command)}</span>' if f.command else '') + '</li>' for f in findings[:most])
    rest = len(findings) - most if most is not None else 0
    return (f'<p><b>{html.escape(findings.headline)}</b></p><p>{html.escape(findings.lead)}</p><table>{parts}</table><ol>{items}</ol>'
            + (f'<p class=m>{rest} more: trace.findings</p>' if rest > 0 else '') + f'<p class=m>{html.escape(findings.closing)}</p>')


def findings_html(findings):
    return _scoped(_findings_body(findings))


def trace_html(trace):
    """Headline, parts of the step, the first findings, and what was read. Without a script, so it shows wherever HTML does."""
    return _scoped(_findings_body(trace.findings, 3) + f'<details><summary>{html.escape(repr(trace))}</summary>'
                   f'<pre>{html.escape(repr(trace.info))}</pre></details>')


class Chart:
    """A picture of the pipeline; notebooks draw it, .data is its bytes, .save(path) writes them."""

    def __init__(self, data, form):
        self.data, self.format = data, form

    def save(self, path):
        _engine.write_file(path, bytes(self.data))

    def _repr_html_(self):
        kind = 'image/svg+xml' if self.format == 'svg' else f'image/{self.format}'
        # As an image nothing in it can run or reach outside.
        return _scoped(f'<img alt="the pipeline, rank by rank" src="data:{kind};base64,{base64.b64encode(self.data).decode()}">')

    def __repr__(self):
        return f'Chart({self.format}, {len(self.data):,} bytes)'


class View:
    """The viewer. In a notebook it is a frame that holds the page with the run, which asks no server; elsewhere open() shows it in
    the browser, and so does making it outside a notebook."""

    def __init__(self, trace, height, lang, dark=None):
        self._trace, self.height, self._lang, self._dark = trace, height, lang, dark
        self._page = None
        if not in_notebook():
            self.open()

    def page(self):
        """The page's bytes."""
        if self._page is None:
            self._page = self._trace._file('html', lang=self._lang, dark=self._dark)
        return self._page

    def open(self):
        """Shows it in the browser; returns the file's path."""
        import pathlib
        import tempfile
        import webbrowser
        folder = pathlib.Path(tempfile.mkdtemp(prefix='stageline-'))
        path = folder / 'view.html'
        path.write_bytes(self.page())
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self):
        page = self.page()
        if len(page) > MOST_PAGE_BYTES:
            return _scoped(f'<p>The page of this run has {len(page):,} bytes, more than notebooks take inside them. '
                           'trace.report(path) writes it to a file; stageline view shows the run from a server.</p>')
        text = html.escape(page.decode('utf-8', 'surrogateescape').encode('utf-8', 'replace').decode(), quote=True)
        return f'<iframe sandbox="allow-scripts" srcdoc="{text}" style="width:100%;height:{int(self.height)}px;border:0"></iframe>'

    def __repr__(self):
        return f'View({self._trace!r})'


def in_notebook():
    shell = sys.modules.get('IPython')
    return shell is not None and shell.get_ipython() is not None and hasattr(shell.get_ipython(), 'kernel')


class _Bar:
    """Draws a bar on the terminal or in the notebook, after half a second of reading."""

    def __init__(self, notebook):
        self._from, self._shown, self._notebook, self._handle = time.monotonic(), False, notebook, None

    def __call__(self, done, expected, events):
        if time.monotonic() - self._from < 0.5:
            return
        share = min(1.0, done / expected) if expected > 0 else None
        words = f'reading  {done / 1e6:,.0f} MB' + (f' of {expected / 1e6:,.0f} MB' if expected else '') + (f', {events:,} events' if events else '')
        if self._notebook:
            from IPython.display import HTML, display
            body = HTML(f'<progress max=1{"" if share is None else f" value={share:.3f}"}></progress> {words}')
            if self._handle is None:
                self._handle = display(body, display_id=True)
            else:
                self._handle.update(body)
        else:
            sys.stderr.write(f'\r{words}\x1b[K')
            sys.stderr.flush()
        self._shown = True

    def end(self):
        if not self._shown:
            return
        if self._notebook:
            from IPython.display import HTML
            self._handle.update(HTML(''))
        else:
            sys.stderr.write('\r\x1b[K')


@contextlib.contextmanager
def progress_for(wish):
    """Yields the callback for the engine while it reads: the user's function, a bar, or nothing."""
    if callable(wish):
        yield wish
        return
    notebook = in_notebook()
    if wish is False or (wish is None and not notebook and not (sys.stderr is not None and sys.stderr.isatty())):
        yield None
        return
    bar = _Bar(notebook)
    try:
        yield bar
    finally:
        bar.end()
