"""A small server for tests: the reading part of S3, and plain HTTP. It checks every signature with code of its own (AWS
Signature Version 4, from its description), and can be told to fail."""
import email.utils
import hashlib
import hmac
import http.server
import threading
import urllib.parse
from xml.sax.saxutils import escape

KEY, SECRET = 'AKIDSTAGELINE', 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
MODIFIED = 1_700_000_000


class Server:
    """Serves `objects`, {'bucket/key': bytes}, and keeps every request in `requests` as (method, path, query, headers).

    fail_next: statuses of the next answers; no_ranges: ranges are ignored; answers: {(method, path): bytes}, given as
    they are; token: the session token that requests must carry."""

    def __init__(self, objects, *, signed=True, region='us-east-1', page=3):
        self.objects, self.signed, self.region, self.page = dict(objects), signed, region, page
        self.requests, self.fail_next, self.no_ranges, self.answers = [], [], False, {}
        self.token = None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def log_message(self, *words):
                pass

            def do_GET(self):
                outer.answer(self)

            do_PUT = do_POST = do_GET

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                pass  # some tests close their connection in the middle

        self.http = Quiet(('127.0.0.1', 0), Handler)
        self.http.daemon_threads = True
        self.address = f'http://127.0.0.1:{self.http.server_address[1]}'
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def variables(self, **more):
        """Returns the environment of a program that finds this server and these credentials, and none of the machine's."""
        return {'AWS_ENDPOINT_URL_S3': self.address, 'AWS_ACCESS_KEY_ID': KEY, 'AWS_SECRET_ACCESS_KEY': SECRET,
                'AWS_EC2_METADATA_DISABLED': 'true',
                'AWS_CONFIG_FILE': '/dev/null', 'AWS_SHARED_CREDENTIALS_FILE': '/dev/null', 'no_proxy': '127.0.0.1', **more}

    # ---------------------------------------------------------------------------------------------

    def send(self, handler, status, body=b'', **headers):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace('_', '-'), value)
        handler.send_header('Content-Length', str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def refuse(self, handler, status, code, message, **headers):
        self.send(handler, status, f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>'.encode(), **headers)

    def wrong_signature(self, handler, path, query):
        """Returns the code and the message that refuse a request; None when it is signed correctly."""
        given = handler.headers.get('Authorization', '')
        if not given:
            return ('AccessDenied', 'the request is not signed')
        parts = dict(p.strip().split('=', 1) for p in given.removeprefix('AWS4-HMAC-SHA256 ').split(','))
        key, day, region, service, end = parts['Credential'].split('/')
        if region != self.region:
            return ('AuthorizationHeaderMalformed', f'the region {region} is wrong; expecting {self.region}')
        names = parts['SignedHeaders'].split(';')
        if not {'host', 'x-amz-date', 'x-amz-content-sha256'} <= set(names):
            return ('AccessDenied', 'a header that must be signed is not')
        if self.token and handler.headers.get('x-amz-security-token') != self.token:
            return ('InvalidToken', 'the session token is wrong')
        pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
        canonical_query = '&'.join(urllib.parse.quote(n, safe='') + '=' + urllib.parse.quote(v, safe='') for n, v in pairs)
        body_hash = handler.headers['x-amz-content-sha256']
        canonical = '\n'.join([handler.command, path, canonical_query, *(f'{n}:{handler.headers[n].strip()}' for n in names),
                               '', ';'.join(names), body_hash])
        text = '\n'.join(['AWS4-HMAC-SHA256', handler.headers['x-amz-date'], f'{day}/{region}/s3/aws4_request',
                          hashlib.sha256(canonical.encode()).hexdigest()])
        step = ('AWS4' + SECRET).encode()
        for word in (day, region, service, end):
            step = hmac.new(step, word.encode(), hashlib.sha256).digest()
        right = hmac.new(step, text.encode(), hashlib.sha256).hexdigest()
        return None if (key, right) == (KEY, parts['Signature']) else ('SignatureDoesNotMatch', 'the signature is wrong')

    def answer(self, handler):
        path, _, query = handler.path.partition('?')
        if handler.command != 'GET':
            handler.rfile.read(int(handler.headers.get('Content-Length') or 0))
        self.requests.append((handler.command, urllib.parse.unquote(path), query, dict(handler.headers)))
        if (handler.command, path) in self.answers:
            return self.send(handler, 200, self.answers[handler.command, path])
        if self.fail_next:
            return self.refuse(handler, self.fail_next.pop(0), 'SlowDown', 'please reduce your request rate')
        if self.signed:
            wrong = self.wrong_signature(handler, path, query)
            if wrong:
                more = {'x_amz_bucket_region': self.region} if wrong[0] == 'AuthorizationHeaderMalformed' else {}
                return self.refuse(handler, 400 if more else 403, *wrong, **more)
        asked = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        name = urllib.parse.unquote(path).lstrip('/')
        if 'list-type' in asked:
            return self.list(handler, name, asked)
        if name not in self.objects:
            return self.refuse(handler, 404, 'NoSuchKey', 'the key does not exist')
        self.send_object(handler, self.objects[name])

    def send_object(self, handler, body):
        """Answers with the object or the range of it that is asked for, if it is still the one that the client knows."""
        tag = '"' + hashlib.md5(body).hexdigest() + '"'
        known = {'ETag': tag, 'Last_Modified': email.utils.formatdate(MODIFIED, usegmt=True)}
        if handler.headers.get('If-Match', tag) != tag:
            return self.refuse(handler, 412, 'PreconditionFailed', 'the object changed')
        wanted = handler.headers.get('Range')
        if not wanted or self.no_ranges:
            return self.send(handler, 200, body, **known)
        first, last = (int(n) for n in wanted.removeprefix('bytes=').split('-'))
        if first >= len(body):
            return self.send(handler, 416, Content_Range=f'bytes */{len(body)}', **known)
        part = body[first:last + 1]
        self.send(handler, 206, part, Content_Range=f'bytes {first}-{first + len(part) - 1}/{len(body)}', **known)

    def list(self, handler, bucket, asked):
        """Answers ListObjectsV2, `page` keys at a time."""
        quote = urllib.parse.quote if asked.get('encoding-type') == 'url' else str
        keys = sorted(n.split('/', 1)[1] for n in self.objects if n.startswith(bucket + '/'))
        keys = [k for k in keys if k.startswith(asked.get('prefix', ''))]
        begin = int(asked.get('continuation-token', 0))
        rows = ''.join(f'<Contents><Key>{escape(quote(k))}</Key><LastModified>2023-11-14T22:13:20.000Z</LastModified>'
                       f'<ETag>&quot;{hashlib.md5(body).hexdigest()}&quot;</ETag><Size>{len(body)}</Size></Contents>'
                       for k in keys[begin:begin + self.page] for body in [self.objects[f'{bucket}/{k}']])
        more = begin + self.page < len(keys)
        rows += f'<NextContinuationToken>{begin + self.page}</NextContinuationToken>' if more else ''
        self.send(handler, 200, f'<?xml version="1.0"?><ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{rows}</ListBucketResult>'.encode())
