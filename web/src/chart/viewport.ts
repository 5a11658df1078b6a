// The window on time, as pure arithmetic. Times are nanoseconds.
export interface Viewport {
  t0: number;
  t1: number;
}

export const MIN_SPAN_NS = 100;

// A little air on both sides, so that the first and last cell do not touch the frame.
export function fit(t0: number, t1: number): Viewport {
  const air = (t1 - t0) * 0.008;
  return {t0: t0 - air, t1: t1 + air};
}

// Keeps the window within `home`, or around it when it is wider.
export function clamp(view: Viewport, home: Viewport): Viewport {
  const span = Math.min(Math.max(view.t1 - view.t0, MIN_SPAN_NS), home.t1 - home.t0);
  let t0 = view.t0;
  if (t0 + span > home.t1) t0 = home.t1 - span;
  if (t0 < home.t0) t0 = home.t0;
  return {t0, t1: t0 + span};
}

// factor < 1 zooms in; `at` keeps its place.
export function zoom(view: Viewport, factor: number, at: number): Viewport {
  const span = Math.max((view.t1 - view.t0) * factor, MIN_SPAN_NS);
  const share = (at - view.t0) / (view.t1 - view.t0);
  const t0 = at - share * span;
  return {t0, t1: t0 + span};
}

// share of the window's width, positive to the right.
export function pan(view: Viewport, share: number): Viewport {
  const by = (view.t1 - view.t0) * share;
  return {t0: view.t0 + by, t1: view.t1 + by};
}

// Moves the window, without zooming, so that [t0, t1] is inside; zooms out when it does not fit.
export function reveal(view: Viewport, t0: number, t1: number): Viewport {
  const span = view.t1 - view.t0;
  if (t0 >= view.t0 && t1 <= view.t1) return view;
  if (t1 - t0 > span * 0.9) return fit(t0 - (t1 - t0) * 0.1, t1 + (t1 - t0) * 0.1);
  const middle = (t0 + t1) / 2;
  return {t0: middle - span / 2, t1: middle + span / 2};
}
