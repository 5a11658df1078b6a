// Boxes of a flame graph: a row for each depth, as wide as the time below it. What would be narrower than half a pixel
// stands in one box with its neighbours, so that what stays empty below a frame is the frame's own time.
import type {Tree} from './calls';

// `nodes`: what the box stands for, outermost first. Of a chain of frames that hand all their time on, only the last
// has something to say: they are one box. `small`: of a box of many narrow frames how many; it has no nodes, and `last`
// is who calls them.
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
