// The script of a page that a server answers.
import {latePage} from './late_page';
import {start} from './main';
import {makeOverview} from './overview/page';
import {makePipeline} from './pipeline/page';
import {serverSource} from './shell/source';
import {makeTimeline} from './timeline/timeline_page';

const late = (): Promise<typeof import('./late_pages')> => import('./late_pages');

void start({
  source: serverSource(),
  pages: {
    overview: makeOverview,
    pipeline: makePipeline,
    timeline: makeTimeline,
    compare: latePage(async () => (await late()).makeCompare),
    flame: latePage(async () => (await late()).makeFlamePage),
    answers: latePage(async () => (await late()).makeAnswers),
    plan: latePage(async () => (await late()).makePlan),
  },
  picture: late,
  chooseRun: async (status, theme, root) => {
    const {makePlan, startPage} = await late();
    startPage(status, theme, root, makePlan);
  },
});
