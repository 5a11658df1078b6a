// Pictures of the viewer that are compared with recorded ones. The conditions of drawing are fixed: DejaVu fonts and,
// for Chinese, WenQuanYi Micro Hei and no others, one device pixel a pixel, no colour fringes on letters. If the
// browser's major version or a font file differs from the recording, they are skipped and counted.
//
// Two pictures are the same when no block of 8 × 8 pixels has 6 or more that differ by more than 64 of 255 in a
// channel. The edge of a letter or a line may be smoothed differently. A cell that moved by a pixel, or a missing
// letter, changes whole lines of pixels. A separate test checks both (viewer_golden_test.mjs).
import {execFileSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

export const folder = join(dirname(fileURLToPath(import.meta.url)), 'goldens');
const RECORD = join(folder, 'recorded.json'), BLOCK = 8, CHANNEL = 64, MOST = 5;

export const fixedArguments = [
  '--force-device-scale-factor=1',
  '--disable-lcd-text',
  '--font-render-hinting=none',
  '--hide-scrollbars',
  '--force-color-profile=srgb',
];

function fontFile() {
  try {
    const path = execFileSync('fc-match', ['-f', '%{file}', 'DejaVu Sans:style=Book'], {encoding: 'utf8'});
    return /DejaVuSans\.ttf$/.test(path) ? path : null;
  } catch {
    return null;
  }
}

// Chinese letters, which DejaVu has not.
function chineseFile() {
  try {
    return execFileSync('fc-list', [':lang=zh', 'file'], {encoding: 'utf8'}).split('\n').map(line =>
      line.replace(/:\s*$/, '').trim()
    )
      .find(path => /wqy-microhei\.ttc$/.test(path)) ?? null;
  } catch {
    return null;
  }
}
const hashOf = path => (path ? createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 16) : 'none');

// A configuration of fontconfig that knows three faces of DejaVu, the Chinese one where it is there, and nothing else;
// null without DejaVu.
export function fontsOnly(where) {
  const font = fontFile();
  if (!font) return null;
  const fonts = join(where, 'fonts'), path = join(where, 'fonts.conf');
  mkdirSync(fonts, {recursive: true});
  for (const face of ['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSansMono'])
    copyFileSync(join(dirname(font), `${face}.ttf`), join(fonts, `${face}.ttf`));
  if (chineseFile()) copyFileSync(chineseFile(), join(fonts, 'wqy-microhei.ttc'));
  const instead = (asked, family) =>
    `<match target="pattern"><test name="family"><string>${asked}</string></test>
<edit name="family" mode="assign" binding="strong"><string>${family}</string></edit></match>`;
  writeFileSync(path, `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${fonts}</dir>
<cachedir>${join(where, 'font-cache')}</cachedir>${
    ['system-ui', 'sans-serif'].map(one => instead(one, 'DejaVu Sans')).join('')
  }
${['ui-monospace', 'monospace'].map(one => instead(one, 'DejaVu Sans Mono')).join('')}</fontconfig>\n`);
  return path;
}

export const surroundings = browser => ({
  chromium: browser.version().split('.')[0],
  font: hashOf(fontFile()),
  chinese: hashOf(chineseFile()),
});

// Returns the reason why pictures cannot be compared here; '' when they can. `chinese` means a page in Chinese.
export function whyNot(browser, chinese = false) {
  if (!existsSync(RECORD)) return '';
  const was = JSON.parse(readFileSync(RECORD, 'utf8')), now = surroundings(browser);
  if (was.chromium !== now.chromium) return `recorded with Chromium ${was.chromium}, this is ${now.chromium}`;
  if (chinese && was.chinese !== now.chinese)
    return now.chinese === 'none' ? 'WenQuanYi Micro Hei is not installed' : 'recorded with other Chinese letters';
  return was.font === now.font ? ''
    : now.font === 'none' ? 'the DejaVu fonts are not installed' : 'recorded with other DejaVu fonts';
}
export function record(browser) {
  mkdirSync(folder, {recursive: true});
  writeFileSync(RECORD, JSON.stringify(surroundings(browser), null, 2) + '\n');
}

// Blocks in which two pictures differ, as [x, y] of their corners; null when they differ in size. In the browser, which
// has a decoder of pictures.
export const differing = (page, a, b) =>
  page.evaluate(async ([first, second, block, channel, most]) => {
    const read = async text => {
      const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${text}`)).blob());
      const pen = new OffscreenCanvas(image.width, image.height).getContext('2d');
      pen.drawImage(image, 0, 0);
      return pen.getImageData(0, 0, image.width, image.height);
    };
    const [one, other] = await Promise.all([read(first), read(second)]);
    if (one.width !== other.width || one.height !== other.height) return null;
    const across = Math.ceil(one.width / block), counts = new Map();
    for (let i = 0; i < one.data.length; i += 4) {
      const far = Math.max(...[0, 1, 2].map(k => Math.abs(one.data[i + k] - other.data[i + k])));
      if (far <= channel) continue;
      const at = i / 4, key = Math.floor(at / one.width / block) * across + Math.floor(at % one.width / block);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts].filter(([, n]) => n > most).map((
      [key],
    ) => [key % across * block, Math.floor(key / across) * block]);
  }, [a.toString('base64'), b.toString('base64'), BLOCK, CHANNEL, MOST]);

// Compares a picture with the recorded one, or records it. Throws what is different and what to do.
export async function expectPicture(blank, name, picture, {update, left, command}) {
  const path = join(folder, `${name}.png`);
  if (update) {
    mkdirSync(folder, {recursive: true});
    if (!existsSync(path) || (await differing(blank, picture, readFileSync(path)))?.length !== 0)
      writeFileSync(path, picture);
    return;
  }
  if (!existsSync(path))
    throw new Error(`no golden of "${name}": ${command} makes it; look at it before you commit it`);
  const found = await differing(blank, picture, readFileSync(path));
  if (found?.length === 0) return;
  const now = join(left, `${name}.now.png`);
  writeFileSync(now, picture);
  throw new Error(
    `${name}: ${
      found === null ? 'the picture has another size'
        : `${found.length} blocks differ, the first at ${found.slice(0, 5).map(at => at.join(',')).join(' ')}`
    }\n  ${path}\n  ${now}\n  if it is meant: ${command}`,
  );
}
