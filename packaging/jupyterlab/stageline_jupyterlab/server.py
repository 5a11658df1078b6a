"""GET stageline/page?path=…&lang=…: the page of a run below the folder that the Jupyter server shows."""
import asyncio
import json
import os
import sys
import tempfile

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import ensure_async, to_os_path, url_path_join
from tornado import web

PAGES_AT_ONCE = 2  # each takes a processor and the memory of its trace


class PageHandler(APIHandler):
    process = None
    slots = None

    @web.authenticated
    async def get(self):
        path = await self.allowed(self.get_query_argument('path', ''))
        lang = 'zh' if self.get_query_argument('lang', 'en') == 'zh' else 'en'
        PageHandler.slots = PageHandler.slots or asyncio.Semaphore(PAGES_AT_ONCE)
        async with PageHandler.slots:
            with tempfile.TemporaryDirectory(prefix='stageline-') as folder:
                page = os.path.join(folder, 'page.html')
                failure = await self.write_page(path, page, lang)
                if failure:
                    self.set_status(422)
                    self.finish(json.dumps({'message': failure}))
                else:
                    with open(page, 'rb') as made:
                        self.finish_page(made.read())

    async def allowed(self, api_path):
        """The path on disk; as the server's own file browser: nothing outside its folder, nothing hidden."""
        root = getattr(self.contents_manager, 'root_dir', None)
        if not root:
            raise web.HTTPError(501, reason='The contents of this server are not files')
        root, path = os.path.abspath(root), to_os_path(api_path, os.path.abspath(root))
        inside = path == root or path.startswith(root.rstrip(os.sep) + os.sep)
        hidden = inside and path != root and not self.contents_manager.allow_hidden and await ensure_async(
            self.contents_manager.is_hidden(api_path))
        if not inside or '\0' in api_path or hidden or not os.path.exists(path):
            raise web.HTTPError(404, reason='There is no such file')
        return path

    async def write_page(self, path, page, lang):
        """Returns why there is no page; '' where there is one."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, '-m', 'stageline_jupyterlab.page', path, page, lang,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
        try:
            said = (await self.process.communicate())[1].decode('utf-8', 'replace').strip()
            return '' if self.process.returncode == 0 else said[-2000:] or 'Stageline ended without a page'
        finally:
            if self.process.returncode is None:
                self.process.kill()

    def on_connection_close(self):
        """Ends the process when the tab is closed."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()

    def finish_page(self, page):
        self.set_header('Content-Type', 'text/html; charset=UTF-8')
        # Opened by itself the page has no rights of this server either.
        self.set_header('Content-Security-Policy', "sandbox allow-scripts; frame-ancestors 'self'")
        self.set_header('Cache-Control', 'no-store')
        self.finish(page)


def load(web_app):
    web_app.add_handlers('.*$', [(url_path_join(web_app.settings['base_url'], 'stageline', 'page'), PageHandler)])
