// Colours as people see them: contrast as WCAG defines it, and the difference of two colours (CIE 1976 ΔE) with any
// kind of colour vision. Sources: Machado, Oliveira and Fernandes 2009, severity 1, as in tests/unit/palette_test.cc.
const VISIONS = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
};
export const visions = Object.keys(VISIONS);

// Parses "#rrggbb" or "rgb(r g b)" or "rgb(r, g, b)".
export const parse = text => (text[0] === '#' ? [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16))
  : text.match(/[\d.]+/g).map(Number).slice(0, 3));
const linear = rgb => rgb.map(v => v / 255).map(v => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
const times = (matrix, v) => matrix.map(row => Math.min(Math.max(row.reduce((sum, m, i) => sum + m * v[i], 0), 0), 1));

function lab(c) {
  const f = t => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const x = f((0.4124564 * c[0] + 0.3575761 * c[1] + 0.1804375 * c[2]) / 0.95047);
  const y = f(0.2126729 * c[0] + 0.7151522 * c[1] + 0.0721750 * c[2]);
  const z = f((0.0193339 * c[0] + 0.1191920 * c[1] + 0.9503041 * c[2]) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

export function apart(a, b, vision) {
  const [u, v] = [a, b].map(text => lab(times(VISIONS[vision], linear(parse(text)))));
  return Math.hypot(...u.map((value, i) => value - v[i]));
}

export function contrast(a, b) {
  const [x, y] = [a, b].map(text =>
    linear(parse(text)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
  );
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}
