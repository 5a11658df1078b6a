// The page Compare where a server answers: it compares snapshots of an allocator too.
import type {Page, Shell} from '../shell/page';
import {compareMemory} from './memory';
import {makeCompare as make} from './page';

export const makeCompare = (shell: Shell): Page => make(shell, compareMemory);
