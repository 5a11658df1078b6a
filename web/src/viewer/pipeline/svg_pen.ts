// Writes SVG where the chart's painter draws on a canvas: the calls that it makes, and no others. So the file is the
// chart as it is seen, and both are drawn by the same code.
import {makeColours} from '../../chart/colours';
import {makePainter, paint, type Painter} from '../../chart/paint';
import {FONT, type Scene} from '../../chart/scene';

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'})[c]!);
const short = (value: number): string => String(Math.round(value * 100) / 100);

interface Pattern {
  id: string;
}

class SvgPen {
  fillStyle: string | Pattern = '#000';
  strokeStyle: string | Pattern = '#000';
  lineWidth = 1;
  globalAlpha = 1;
  font = '10px sans-serif';
  textAlign = 'left';
  textBaseline = 'alphabetic';
  readonly out: string[] = [];
  readonly defs: string[] = [];
  private path = '';
  private dash: number[] = [];
  private readonly groups: number[] = [0]; // open ones, by save()
  private readonly ruler = document.createElement('canvas').getContext('2d')!;

  private ink(style: string | Pattern): string {
    return typeof style === 'string' ? escaped(style) : `url(#${style.id})`;
  }
  private alpha(): string {
    return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : '';
  }

  createPattern(tile: HTMLCanvasElement): Pattern {
    const id = `p${this.defs.length}`;
    this.defs.push(`<pattern id="${id}" width="${tile.width}" height="${tile.height}" patternUnits="userSpaceOnUse">` +
      `<image href="${tile.toDataURL()}" width="${tile.width}" height="${tile.height}"/></pattern>`);
    return {id};
  }
  setTransform(): void {}
  clearRect(): void {}
  beginPath(): void {
    this.path = '';
  }
  moveTo(x: number, y: number): void {
    this.path += `M${short(x)} ${short(y)}`;
  }
  lineTo(x: number, y: number): void {
    this.path += `L${short(x)} ${short(y)}`;
  }
  closePath(): void {
    this.path += 'Z';
  }
  bezierCurveTo(a: number, b: number, c: number, d: number, x: number, y: number): void {
    this.path += `C${[a, b, c, d, x, y].map(short).join(' ')}`;
  }
  rect(x: number, y: number, w: number, h: number): void {
    this.path += `M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}Z`;
  }
  roundRect(x: number, y: number, w: number, h: number, r: number): void {
    const [a, b] = [short(w - 2 * r), short(h - 2 * r)],
      arc = (dx: number, dy: number): string => `a${r} ${r} 0 0 1 ${dx} ${dy}`;
    this.path += `M${short(x + r)} ${short(y)}h${a}${arc(r, r)}v${b}${arc(-r, r)}h-${a}${arc(-r, -r)}v-${b}${
      arc(r, -r)
    }Z`;
  }
  fill(): void {
    this.out.push(`<path d="${this.path}" fill="${this.ink(this.fillStyle)}"${this.alpha()}/>`);
  }
  stroke(): void {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.map(short).join(' ')}"` : '';
    this.out.push(
      `<path d="${this.path}" fill="none" stroke="${this.ink(this.strokeStyle)}" stroke-width="${
        short(this.lineWidth)
      }"${dash}${this.alpha()}/>`,
    );
  }
  fillRect(x: number, y: number, w: number, h: number): void {
    this.out.push(
      `<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="${
        this.ink(this.fillStyle)
      }"${this.alpha()}/>`,
    );
  }
  strokeRect(x: number, y: number, w: number, h: number): void {
    this.out.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="none" ` +
      `stroke="${this.ink(this.strokeStyle)}" stroke-width="${short(this.lineWidth)}"${this.alpha()}/>`);
  }
  setLineDash(dash: number[]): void {
    this.dash = dash;
  }
  measureText(text: string): TextMetrics {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }
  fillText(text: string, x: number, y: number, limit = Infinity): void {
    if (text === '') return;
    const [, weight, size, family] = /^(\d+ )?([\d.]+px) (.*)$/.exec(this.font) ?? [];
    const anchor = this.textAlign === 'center' ? ' text-anchor="middle"' : '';
    const middle = this.textBaseline === 'middle' ? ' dominant-baseline="central"' : '';
    const fit = this.measureText(text).width > limit ? ` textLength="${short(limit)}" lengthAdjust="spacingAndGlyphs"`
      : '';
    this.out.push(`<text x="${short(x)}" y="${short(y)}" font-family="${escaped(family ?? '')}" font-size="${size}"` +
      `${weight ? ` font-weight="${weight.trim()}"` : ''}${anchor}${middle}${fit} fill="${this.ink(this.fillStyle)}" ` +
      `xml:space="preserve">${escaped(text)}</text>`);
  }
  drawImage(from: HTMLCanvasElement, sx: number, sy: number, sw: number, sh: number, x: number, y: number, w: number,
    h: number): void
  {
    const cut = document.createElement('canvas');
    cut.width = sw;
    cut.height = sh;
    cut.getContext('2d')!.drawImage(from, sx, sy, sw, sh, 0, 0, sw, sh);
    this.out.push(
      `<image href="${cut.toDataURL()}" x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" ` +
        `preserveAspectRatio="none" style="image-rendering:pixelated"${this.alpha()}/>`,
    );
  }
  save(): void {
    this.groups.push(0);
  }
  clip(): void {
    const id = `c${this.defs.length}`;
    this.defs.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
    this.out.push(`<g clip-path="url(#${id})">`);
    ++this.groups[this.groups.length - 1]!;
  }
  restore(): void {
    this.out.push('</g>'.repeat(this.groups.pop() ?? 0));
  }
}

// One chart, with its title above it if there are several.
export interface Drawing {
  scene: Scene;
  name: string;
}
export const NAME_HEIGHT = 26; // CSS pixels

export function drawSvg(drawings: readonly Drawing[], title: string): string {
  const pen = new SvgPen(), context = pen as unknown as CanvasRenderingContext2D,
    {palette} = drawings[0]!.scene.colours;
  const painter: Painter = {...makePainter(document.createElement('canvas')), context};
  let y = 0;
  for (const {scene, name} of drawings) {
    if (name)
      pen.out.push(
        `<text x="0" y="${y + 18}" font-family="${
          escaped(FONT)
        }" font-size="13.5px" font-weight="600" fill="${palette.ink}">${escaped(name)}</text>`,
      );
    if (name) y += NAME_HEIGHT;
    pen.out.push(`<g transform="translate(0 ${y})">`);
    paint(painter, {...scene, ratio: 1, colours: makeColours(context, palette, 1)});
    pen.out.push('</g>');
    y += Math.round(scene.height);
  }
  const width = Math.round(Math.max(...drawings.map(({scene}) => scene.width)));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" role="img">` +
    `<title>${escaped(title)}</title><defs>${
      pen.defs.join('')
    }</defs><rect width="${width}" height="${y}" fill="${palette.bg}"/>` +
    `${pen.out.join('')}</svg>\n`;
}
