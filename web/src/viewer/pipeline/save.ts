// The chart as one sees it, as a file.
import type {Pipe} from './pipe';
import {drawSvg} from './svg_pen';

function download(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function saveChart({app, chart, shell}: Pipe, kind: 'svg' | 'png'): void {
  const safe = shell.run.title.replace(/[^\p{L}\p{N}._-]+/gu, '_').slice(0, 80) || 'pipeline';
  const name = `${safe}-${app.state.step === null ? 'steps' : `step${app.state.step}`}.${kind}`;
  const scene = {...chart.scene(), hovered: -1};
  if (kind === 'svg') {
    download(new Blob([drawSvg(scene, shell.run.title)], {type: 'image/svg+xml'}), name);
    return;
  }
  const canvas = chart.picture(2);
  canvas.toBlob(blob => { if (blob) download(blob, name); }, 'image/png');
}
