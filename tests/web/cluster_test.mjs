// The sections of a cluster: rank map, cluster time, links. cluster.html: 16 simulated NPUs, pp 4, dp 2, tp 2. Run by run.mjs.
import assert from 'node:assert/strict';

const settled = page => page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))');

export const cases = [
  ['cluster: the rank map has every rank at its stage, and colours by what is asked', async open => {
    const page = await open('cluster.html');
    const rows = await page.$$eval('#topic-rankmap .rank-map tbody tr', list => list.map(row => [...row.querySelectorAll('b')].map(b => b.textContent)));
    assert.deepEqual(rows, [0, 4, 8, 12].map(first => [0, 1, 2, 3].map(i => String(first + i))));
    assert.deepEqual(await page.$$eval('#topic-rankmap thead th', heads => heads.map(head => head.textContent)),
                     ['stage', 'dp 0 · tp 0', 'dp 0 · tp 1', 'dp 1 · tp 0', 'dp 1 · tp 1']);
    const depth = () => page.$$eval('#topic-rankmap .place i', list => list.map(i => Number(i.style.opacity)));
    const bubble = await depth();
    assert.ok(Math.max(...bubble.slice(8, 12)) < Math.min(...bubble.slice(0, 8)), `the slow stage waits least: ${bubble}`);
    await page.selectOption('#rankmap-colour', 'compute_ns');
    const compute = await depth();
    assert.ok(Math.min(...compute.slice(8, 12)) > Math.max(...compute.slice(0, 8)), `and computes longest: ${compute}`);
  }],
  ['cluster: the shares of cluster time close', async open => {
    const page = await open('cluster.html');
    const shares = await page.$$eval('#topic-cluster .plot tbody tr', rows => rows.map(row =>
      [...row.querySelectorAll('td')].map(cell => cell.textContent).filter(text => /%$/.test(text)).map(parseFloat)));
    assert.equal(shares.length, 16);
    for (const list of shares) assert.ok(Math.abs(list.reduce((a, b) => a + b, 0) - 100) < 0.35, `${list}`);
  }],
  ['cluster: links have heads over their columns, and like links move alike', async open => {
    const page = await open('cluster.html');
    const heads = await page.$$eval('#topic-links table.heat thead th', list => list.map(head => head.textContent));
    assert.deepEqual(heads.slice(1), [...Array(16).keys()].map(String));
    const ends = await page.$eval('#topic-links table.heat', table => {
      const right = cell => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getBoundingClientRect().right;
      };
      return [right(table.tHead.rows[0].cells[2]), right(table.tBodies[0].rows[0].cells[2])];
    });
    assert.ok(Math.abs(ends[0] - ends[1]) < 1.5, `${ends}`);
    // Waiting for a late rank is no transit: replicas' links of every stage are as fast as each other.
    const rates = await page.$$eval('#topic-links table.heat td', cells => cells.map(cell => cell.title.match(/^(\d+) → (\d+): .* ([\d.]+) GB/))
      .filter(found => found && Math.abs(found[1] - found[2]) === 2).map(found => Number(found[3])));
    assert.equal(rates.length, 16);
    assert.ok(Math.max(...rates) < 1.1 * Math.min(...rates), `${rates}`);
  }],
  ['cluster: on a phone nothing overflows, and rows keep their ranks while a grid scrolls', async open => {
    for (const [query, dark] of [['?lang=en', false], ['?lang=zh', true]]) {
      const page = await open('cluster.html', query, {dark});
      await page.setViewportSize({width: 390, height: 844});
      await settled(page);
      assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), query);
      for (const grid of ['#topic-links .plot-box', '#topic-rankmap .plot-box']) {
        const left = await page.$eval(grid, box => {
          box.scrollLeft = 100;
          return box.querySelector('tbody th').getBoundingClientRect().left - box.getBoundingClientRect().left;
        });
        assert.ok(Math.abs(left) < 4, `${grid}: ${left}`);
      }
      assert.deepEqual(await page.evaluate('stageline.missingKeys()'), []);
    }
  }],
];
