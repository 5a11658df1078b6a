// Kinds and groups in the order of src/model/kind.h.
export const KIND_CODES = ['F', 'B', 'I', 'W', 'F&B', 'SF', 'RF', 'SB', 'RB', 'C', 'O', 'other'] as const;
export type KindCode = typeof KIND_CODES[number];
// A receive is posted and waits: what moves is its last moment, so it is drawn as waiting, in the colour of messages.
export const isReceive = (kind: number): boolean => kind === 6 || kind === 8;
export const FORWARD = 0, BACKWARD = 1, INPUT_GRAD = 2, FORWARD_BACKWARD = 4;

export const enum Group {
  Forward,
  Backward,
  Weight,
  Message,
  Collective,
  Optimizer,
  Other,
}
export const GROUP_COUNT = 7;
export const KIND_GROUP: readonly Group[] = [
  Group.Forward,
  Group.Backward,
  Group.Backward,
  Group.Weight,
  Group.Forward,
  Group.Message,
  Group.Message,
  Group.Message,
  Group.Message,
  Group.Collective,
  Group.Optimizer,
  Group.Other,
];

// Lane within a row: 0 compute and optimizer, 1 messages, 2 collectives, 3 other.
export const LANE_COUNT = 4;
export const MESSAGE_LANE = 1;
export const KIND_LANE: readonly number[] = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 0, 3];
export const isCompute = (kind: number): boolean => kind <= FORWARD_BACKWARD;
