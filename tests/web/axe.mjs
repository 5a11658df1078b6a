// Returns axe's findings on a page, by the rules of WCAG 2.2 AA and its own good practice, however small.
import {createRequire} from 'node:module';
import {readFileSync} from 'node:fs';

// When it is asked for: packages are installed once the browser is.
const axeScript = () => readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export async function violations(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Runtime.evaluate', {expression: axeScript()}); // the page's policy allows no script of others'
  const found = await page.evaluate(async () =>
    (await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}))
      .violations.map(one => `${one.id}: ${one.nodes.map(node => node.html.slice(0, 160)).slice(0, 3).join(' | ')}`)
  );
  await session.detach();
  return found;
}
