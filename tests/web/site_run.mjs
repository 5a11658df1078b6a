// node site_run.mjs SITE FOLDER [PAGE…] opens every page of the documentation's site (./dev docs makes it) in a
// headless Chromium, in both themes and three sizes. A page fails for a dead link or anchor, a picture that does not
// load, a request to another host, an error in the console, a text wider than the window, or the wrong theme or
// language. Screenshots of the pages that are named are left in FOLDER. Exits with 77 without a browser.
import {existsSync, mkdirSync, readFileSync, readdirSync, statSync} from 'node:fs';
import {createServer} from 'node:http';
import {extname, join, resolve} from 'node:path';
import {launch} from './browser.mjs';

const [site, folder] = process.argv.slice(2, 4).map(path => resolve(path)), pictured = process.argv.slice(4);
mkdirSync(folder, {recursive: true});
const types = {'.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.png': 'image/png',
  '.svg': 'image/svg+xml', '.json': 'application/json'};
const sizes = {phone: [390, 844], tablet: [900, 1100], desk: [1440, 900]};

const fileOf = address => {
  const path = join(site, decodeURIComponent(new URL(address).pathname));
  return existsSync(path) && statSync(path).isDirectory() ? join(path, 'index.html') : path;
};
const server = createServer((request, reply) => {
  const path = fileOf(`http://site${request.url}`);
  if (!existsSync(path)) return reply.writeHead(404).end();
  reply.writeHead(200, {'content-type': types[extname(path)] ?? 'text/plain'}).end(readFileSync(path));
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const base = `http://127.0.0.1:${server.address().port}`;

const pages = readdirSync(site, {recursive: true}).filter(name => name.endsWith('.html') && name !== '404.html').sort();
const anchors = new Map(), places = path => {
  if (!anchors.has(path))
    anchors.set(path, new Set([...readFileSync(path, 'utf8').matchAll(/\s(?:id|name)="?([^"\s>]+)/g)].map(m => m[1])));
  return anchors.get(path);
};

const browser = await launch({what: 'the site'});
let problems = [], opened = 0, failed = 0;
async function tab(colorScheme) {
  const page = await (await browser.newContext({colorScheme})).newPage();
  page.on('console', message => message.type() === 'error' && problems.push(`console: ${message.text()}`));
  page.on('pageerror', error => problems.push(`page: ${error.message}`));
  page.on('requestfailed', request => problems.push(`request: ${request.url()}`));
  page.on('request', request => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(base))
      problems.push(`another host: ${request.url()}`);
  });
  return page;
}
const tabs = {light: await tab('light'), dark: await tab('dark')};

async function checkText(name, page) {
  const {lang, links, blank} = await page.evaluate(async () => {
    const pictures = [...document.querySelectorAll('.md-typeset img')];
    for (const one of pictures) one.loading = 'eager';
    await Promise.all(pictures.map(one => one.decode().catch(() => undefined)));
    return {lang: document.documentElement.lang, links: [...document.links].map(link => link.href),
      blank: pictures.filter(one => !one.naturalWidth).map(one => one.src)};
  });
  if (lang !== (/\.zh\.html$/.test(name) ? 'zh-CN' : 'en')) problems.push(`language ${lang}`);
  problems.push(...blank.map(address => `picture: ${address}`));
  for (const link of new Set(links)) {
    if (!link.startsWith(base)) continue;
    const path = fileOf(link), anchor = decodeURIComponent(new URL(link).hash.slice(1));
    if (!existsSync(path)) problems.push(`dead link: ${link.slice(base.length)}`);
    else if (anchor && extname(path) === '.html' && !places(path).has(anchor))
      problems.push(`dead anchor: ${link.slice(base.length)}`);
  }
}

async function look(name) {
  for (const [theme, page] of Object.entries(tabs)) {
    await page.goto(`${base}/${name}`);
    if (theme === 'light') await checkText(name, page);
    const shown = await page.evaluate(() => document.body.dataset.mdColorScheme);
    if (shown !== (theme === 'dark' ? 'slate' : 'default')) problems.push(`theme ${theme}: shown as ${shown}`);
    for (const [size, [width, height]] of Object.entries(sizes)) {
      await page.setViewportSize({width, height});
      const wider = await page.evaluate(() =>
        document.documentElement.scrollWidth - document.documentElement.clientWidth
      );
      if (wider > 0) problems.push(`${theme} ${size}: ${wider} px wider than the window`);
      opened += 1;
      if (pictured.includes(name))
        await page.screenshot({path: join(folder, `${name.replace(/\W/g, '_')}_${theme}_${size}.png`)});
    }
  }
}

for (const name of pages) {
  problems = [];
  await look(name).catch(error => problems.push(error.message));
  if (problems.length) {
    failed += 1;
    console.log(`FAIL ${name}\n  ${[...new Set(problems)].join('\n  ')}`);
  }
}
await browser.close();
server.close();
console.log(`${pages.length - failed} of ${pages.length} passed, ${opened} views`);
process.exit(failed ? 1 : 0);
