// Draws the visible part of a page as SVG: its texts as texts, boxes, lines, canvases as images. Everything is read
// from where the browser has put it, so that the picture is what was seen, without what is there to be clicked.
const SKIP = '.live, .tip, dialog, nav, form, input, textarea, .tools, .tabs, .controls, .controls-row, .ways, ' +
  '.panel-handle, .evidence-move, .evidence-places, .toolbar > :not(.key), .places, .keys, .search, .minimap';
const MAX_IMAGE_PX = 40_000_000;

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'})[c]!)
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '');
const short = (value: number): string => String(Math.round(value * 100) / 100);
const isInk = (colour: string): boolean => colour !== 'transparent' && !/^rgba\(.*,\s*0\)$/.test(colour);

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}
const within = (a: Box, b: Box): Box => ({left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
  right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom)});
const contains = (a: Box, b: Box): boolean =>
  a.left <= b.left && a.top <= b.top && a.right >= b.right && a.bottom >= b.bottom;

// Returns a text's lines with their places. A text of one line is one; else words are gathered by line.
function linesOf(node: Text): {text: string; box: DOMRect}[] {
  const range = document.createRange(), text = node.data;
  range.selectNodeContents(node);
  const boxes = range.getClientRects();
  if (boxes.length === 0 || text.trim() === '') return [];
  if (boxes.length === 1) return [{text: text.replace(/\s+/g, ' '), box: boxes[0]!}];
  const lines: {text: string; box: DOMRect}[] = [];
  // Words of Latin, single letters of Chinese: both are where a line may end.
  for (const {0: word, index} of text.matchAll(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+\s*|\s+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getClientRects()[0], last = lines.at(-1);
    if (!box || box.width === 0) continue;
    if (last && Math.abs(last.box.top - box.top) < 2) {
      last.text += word;
      last.box = new DOMRect(last.box.left, last.box.top, box.right - last.box.left, last.box.height);
    } else {
      lines.push({text: word, box});
    }
  }
  return lines;
}

class Picture {
  readonly out: string[] = [];
  bottom = 0; // of texts and images, in the window
  private readonly clips = new Map<string, string>();
  private readonly hatches = new Map<string, string>(); // by their two colours
  private readonly ruler = document.createElement('canvas').getContext('2d')!;
  constructor(private readonly x: number, private readonly y: number) {}

  defs(): string {
    return [...this.clips].map(([box, id]) => `<clipPath id="${id}"><rect ${box}/></clipPath>`).join('') +
      [...this.hatches].map(([colours, id]) => {
        const [line, base] = colours.split('|');
        return `<pattern id="${id}" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
          `<rect width="5" height="5" fill="${base}"/><rect width="1.7" height="5" fill="${line}"/></pattern>`;
      }).join('');
  }
  private place(box: Box): string {
    return `x="${short(box.left - this.x)}" y="${short(box.top - this.y)}" width="${
      short(Math.max(box.right - box.left, 0))
    }" height="${short(Math.max(box.bottom - box.top, 0))}"`;
  }
  private clip(box: Box, by: Box): string {
    if (contains(by, box)) return '';
    const place = this.place(by), id = this.clips.get(place) ?? `k${this.clips.size}`;
    this.clips.set(place, id);
    return ` clip-path="url(#${id})"`;
  }
  private text(node: Text, style: CSSStyleDeclaration, zoom: number, by: Box): void {
    const size = parseFloat(style.fontSize) * zoom;
    this.ruler.font = `${style.fontWeight} ${size}px ${style.fontFamily}`;
    for (const {text, box} of linesOf(node)) {
      const seen = within(box, by);
      if (seen.right <= seen.left || seen.bottom <= seen.top) continue;
      this.bottom = Math.max(this.bottom, seen.bottom);
      const {fontBoundingBoxAscent: up, fontBoundingBoxDescent: down} = this.ruler.measureText(text);
      const base = box.top + box.height * up / Math.max(up + down, 1);
      this.out.push(
        `<text x="${short(box.left - this.x)}" y="${short(base - this.y)}" font-family="${
          escaped(style.fontFamily)
        }" font-size="${short(size)}" font-weight="${style.fontWeight}" fill="${style.color}"${
          style.textDecorationLine.includes('underline') ? ' text-decoration="underline"' : ''
        }${this.clip(box, by)} xml:space="preserve">${escaped(text)}</text>`,
      );
    }
  }
  private ground(box: Box, style: CSSStyleDeclaration, by: Box): void {
    const [line, base] = style.backgroundImage.startsWith('repeating-linear-gradient')
      ? [...new Set(style.backgroundImage.match(/(rgba?|color)\([^)]*\)/g))] : [];
    let fill = isInk(style.backgroundColor) ? style.backgroundColor : '';
    if (line) {
      const colours = `${line}|${base && isInk(base) ? base : fill || 'none'}`, id = `h${this.hatches.size}`;
      if (!this.hatches.has(colours)) this.hatches.set(colours, id);
      fill = `url(#${this.hatches.get(colours)})`;
    }
    const round = parseFloat(style.borderTopLeftRadius) || 0;
    if (fill && box.right > box.left)
      this.out.push(`<rect ${this.place(box)} fill="${fill}"${round ? ` rx="${round}"` : ''}${this.clip(box, by)}/>`);
    const sides = [
      ['Top', box.left, box.top, box.right, box.top],
      ['Bottom', box.left, box.bottom, box.right, box.bottom],
      ['Left', box.left, box.top, box.left, box.bottom],
      ['Right', box.right, box.top, box.right, box.bottom],
    ] as const;
    for (const [side, x0, y0, x1, y1] of sides) {
      const width = parseFloat(style[`border${side}Width`]), colour = style[`border${side}Color`];
      if (width > 0 && style[`border${side}Style`] !== 'none' && isInk(colour))
        this.out.push(
          `<path d="M${short(x0 - this.x)} ${short(y0 - this.y)}L${short(x1 - this.x)} ${
            short(y1 - this.y)
          }" stroke="${colour}" stroke-width="${width}"${this.clip(box, by)}/>`,
        );
    }
  }
  private drawing(element: SVGElement, box: Box, by: Box): void {
    const copy = element.cloneNode(true) as SVGElement,
      own = [element, ...element.querySelectorAll<SVGElement>('*')];
    [copy, ...copy.querySelectorAll<SVGElement>('*')].forEach((one, i) => {
      const style = getComputedStyle(own[i]!);
      for (const name of [
        'fill',
        'stroke',
        'stroke-width',
        'stroke-dasharray',
        'opacity',
        'font-size',
        'font-family',
        'font-weight',
        'text-anchor',
      ]) one.setAttribute(name, style.getPropertyValue(name));
      one.removeAttribute('class');
    });
    copy.setAttribute('width', short(box.right - box.left));
    copy.setAttribute('height', short(box.bottom - box.top));
    this.out.push(
      `<g transform="translate(${short(box.left - this.x)} ${short(box.top - this.y)})"${
        contains(by, box) ? '' : ' opacity="1"'
      }>${new XMLSerializer().serializeToString(copy)}</g>`,
    );
  }
  walk(element: Element, by: Box): void {
    if (element.matches(SKIP)) return;
    const style = getComputedStyle(element);
    if (style.display === 'none' || style.visibility === 'hidden' || style.opacity === '0') return;
    const box = element.getBoundingClientRect(), zoom = (element as {currentCSSZoom?: number}).currentCSSZoom ?? 1;
    const isOutside = box.right < by.left || box.left > by.right || box.bottom < by.top || box.top > by.bottom;
    const hides = style.overflowX !== 'visible' && style.display !== 'contents';
    if (isOutside && (hides || element.childElementCount === 0)) return;
    if (element instanceof SVGElement || element instanceof HTMLCanvasElement)
      this.bottom = Math.max(this.bottom, Math.min(box.bottom, by.bottom));
    if (element instanceof SVGElement) return this.drawing(element, box, by);
    if (element instanceof HTMLCanvasElement) {
      if (element.width * element.height > 0 && element.width * element.height < MAX_IMAGE_PX)
        this.out.push(`<image ${this.place(box)} href="${element.toDataURL()}"${this.clip(box, by)}/>`);
      return;
    }
    if (element instanceof HTMLSelectElement) {
      const chosen = element.selectedOptions[0]?.text ?? '';
      this.out.push(`<text x="${short(box.left - this.x + 4)}" y="${short((box.top + box.bottom) / 2 - this.y)}" ` +
        `font-family="${escaped(style.fontFamily)}" font-size="${style.fontSize}" fill="${style.color}" ` +
        `dominant-baseline="central">${escaped(chosen)}</text>`);
      return;
    }
    if (style.display !== 'contents') this.ground(box, style, by);
    const inner = hides ? within(by, box) : by, shut = element instanceof HTMLDetailsElement && !element.open;
    // What is drawn above comes later, as in the page.
    const depth = (one: Node): number => (one instanceof Element ? Number(getComputedStyle(one).zIndex) || 0 : 0);
    for (const child of [...element.childNodes].sort((a, b) => depth(a) - depth(b)))
      if (child instanceof Text) this.text(child, style, zoom, inner);
      else if (child instanceof Element && (!shut || child.tagName === 'SUMMARY')) this.walk(child, inner);
  }
}

const PAD = 16, LINE = 20, MAX_HEIGHT = 8000;

// `title` stands above, `note` (run, numbers, program) below.
export function pictureOf(page: HTMLElement, title: string,
  note: string): {svg: string; width: number; height: number}
{
  const box = page.getBoundingClientRect(), style = getComputedStyle(document.body);
  // A page that scrolls is drawn whole, unless it is very long.
  const high = Math.min(Math.max(page.scrollHeight, box.height), MAX_HEIGHT), wide = box.width,
    top = box.top - page.scrollTop, width = Math.ceil(wide + 2 * PAD);
  const picture = new Picture(box.left - PAD, top - PAD - LINE);
  for (const child of page.children)
    picture.walk(child, {left: box.left, top, right: box.left + wide, bottom: top + high});
  const height = Math.ceil(Math.max(Math.min(picture.bottom - top, high), 0) + 2 * PAD + 2 * LINE);
  const line = (y: number, text: string, weight: number, colour: string): string =>
    `<text x="${PAD}" y="${y}" font-family="${escaped(style.fontFamily)}" font-size="13" font-weight="${weight}" ` +
    `fill="${colour}">${escaped(text)}</text>`;
  const muted = getComputedStyle(document.documentElement).getPropertyValue('--mut');
  return {width, height,
    svg:
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `role="img"><title>${escaped(title)}</title><defs>${picture.defs()}</defs><rect width="${width}" ` +
      `height="${height}" fill="${style.backgroundColor}"/>${line(PAD + 10, title, 640, style.color)}` +
      `${picture.out.join('')}${line(height - PAD + 2, note, 400, muted)}</svg>\n`};
}

// Draws an SVG at this many pixels per unit.
export async function rastered({svg, width, height}: ReturnType<typeof pictureOf>, ratio: number): Promise<Blob> {
  const image = new Image(), address = URL.createObjectURL(new Blob([svg], {type: 'image/svg+xml'}));
  try {
    image.src = address;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) =>
      canvas.toBlob(blob => (blob ? done(blob) : fail(new Error('no picture'))), 'image/png')
    );
  } finally {
    URL.revokeObjectURL(address);
  }
}
