// The second script of a served page: what a visit to the first screen does not need.
export {makeAnswers} from './answers/page';
export {makeCompare} from './compare/served';
export {makeFlamePage} from './flame/page';
export {makePlan} from './plan/page';
export {pictureOf, rastered} from './shell/picture';
export {startPage} from './start/page';
