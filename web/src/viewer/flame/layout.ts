// Computes the boxes of a flame graph: a row for each depth, as wide as the time below it. Boxes narrower than half a
// pixel share one box with their neighbours, so that the empty part below a frame is the frame's self time.
import type {Tree} from './calls';

// `nodes` are the nodes of the box, outermost first. In a chain of frames that pass on all their time, only the last is
// of interest: they are one box. `small`: the number of frames in a box of many narrow ones; it has no nodes, and
// `last` is their caller.
export interface Box {
  nodes: number[];
  last: number;
  small: number;
  depth: number;
  x: number;
  width: number;
  parent: number;
  children: number[];
}

export const LEAST_WIDTH = 0.5;
const HANDS_ON = 0.995; // of its time: a frame that spends this share in one call is trivial

export function layout(tree: Tree, root: number, width: number, folds: boolean): Box[] {
  const boxes: Box[] = [], whole = tree.weight[root]!;
  if (whole <= 0) return boxes;
  const todo: {node: number; depth: number; x: number; parent: number}[] = [{node: root, depth: 0, x: 0, parent: -1}];
  for (let next = todo.pop(); next; next = todo.pop()) {
    const {node, depth, x, parent} = next, nodes = [node];
    let last = node;
    while (folds && last !== 0 && tree.children[last]!.length > 0 &&
      tree.weight[tree.children[last]![0]!]! >= tree.weight[last]! * HANDS_ON)
      nodes.push(last = tree.children[last]![0]!);
    const at =
      boxes.push({nodes, last, small: 0, depth, x, width: tree.weight[node]! / whole * width, parent, children: []}) -
      1;
    if (parent >= 0) boxes[parent]!.children.push(at);
    const below: typeof todo = [];
    let left = x, small = 0, smallFrom = 0, smallTo = 0;
    for (const child of tree.children[last]!) {
      const wide = tree.weight[child]! / whole * width;
      if (wide >= LEAST_WIDTH) below.push({node: child, depth: depth + 1, x: left, parent: at});
      else {
        if (small++ === 0) smallFrom = left;
        smallTo = left + wide;
      }
      left += wide;
    }
    const rest = below.find(one => one.x > smallFrom); // what was left out by the program stands behind all others
    if (small > 0 && rest) smallTo = rest.x;
    if (smallTo - smallFrom >= LEAST_WIDTH)
      boxes.push({nodes: [], last, small, depth: depth + 1, x: smallFrom, width: smallTo - smallFrom, parent: at,
        children: []});
    for (let i = below.length; i-- > 0;) todo.push(below[i]!);
  }
  return boxes;
}

export const depthOf = (boxes: readonly Box[]): number => boxes.reduce((most, box) => Math.max(most, box.depth + 1), 0);
export const boxOf = (boxes: readonly Box[], node: number): number => boxes.findIndex(box => box.nodes.includes(node));
