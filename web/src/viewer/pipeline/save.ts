// The chart as one sees it, as a file.
import type {Chart} from '../../chart/chart';
import {FONT} from '../../chart/scene';
import {h} from '../../dom';
import {t} from '../../i18n/i18n';
import {download, fileName} from '../shell/share';
import type {Pipe} from './pipe';
import {drawSvg, NAME_HEIGHT, type Drawing} from './svg_pen';

// Draws both runs' charts one below the other, as in the page.
function drawingsOf({app, chart, other, both, shell}: Pipe): {chart: Chart; drawing: Drawing}[] {
  const nameOf = (letter: string, title: string, step: number | null): string =>
    `${letter}  ${title}${step === null ? '' : ` · ${t('chart.step', step)}`}`;
  const of = (one: Chart, name: string): {chart: Chart; drawing: Drawing} => ({chart: one,
    drawing: {scene: {...one.scene(), hovered: -1}, name}});
  if (!other || !both) return [of(chart, '')];
  return [
    of(chart, nameOf('A', shell.run.title, app.state.step)),
    of(other.chart, nameOf('B', other.title, other.app.state.step)),
  ];
}

function picture(drawings: {chart: Chart; drawing: Drawing}[], ratio: number): HTMLCanvasElement {
  const pictures = drawings.map(({chart}) => chart.picture(ratio)), out = h('canvas'), pen = out.getContext('2d')!;
  const {palette} = drawings[0]!.drawing.scene.colours, head = drawings.length > 1 ? NAME_HEIGHT * ratio : 0;
  out.width = Math.max(...pictures.map(one => one.width));
  out.height = pictures.reduce((sum, one) => sum + one.height + head, 0);
  pen.fillStyle = palette.bg;
  pen.fillRect(0, 0, out.width, out.height);
  pen.fillStyle = palette.ink;
  pen.font = `600 ${13.5 * ratio}px ${FONT}`;
  let y = 0;
  pictures.forEach((one, i) => {
    if (head > 0) pen.fillText(drawings[i]!.drawing.name, 0, y + 18 * ratio);
    pen.drawImage(one, 0, y + head);
    y += one.height + head;
  });
  return out;
}

export function saveChart(pipe: Pipe, kind: 'svg' | 'png'): void {
  const {app, shell} = pipe, drawings = drawingsOf(pipe);
  const name = `${fileName(shell.run.title)}-${app.state.step === null ? 'steps' : `step${app.state.step}`}.${kind}`;
  if (kind === 'svg') {
    download(new Blob([drawSvg(drawings.map(one => one.drawing), shell.run.title)], {type: 'image/svg+xml'}), name);
    return;
  }
  picture(drawings, 2).toBlob(blob => {
    if (blob) download(blob, name);
  }, 'image/png');
}
