// Reads the processor time of the browser's processes and of the server, which is meaningful even on a shared machine.
// It needs Linux.
import {readFileSync} from 'node:fs';

// Milliseconds that a process has run; 0 where it is gone or nothing says. Ticks are of 10 ms (USER_HZ).
function ranMs(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return 0;
  }
}

// Returns the cost of `act` as {page, browser, server}: the renderers, the browser's other processes (its compositor
// draws), and Stageline's server.
export async function cpuDuring(browser, server, act) {
  const session = await browser.newBrowserCDPSession();
  const now = async () => {
    const {processInfo} = await session.send('SystemInfo.getProcessInfo'), sum = {page: 0, browser: 0, server: ranMs(server)};
    for (const {type, id} of processInfo) sum[type === 'renderer' ? 'page' : 'browser'] += ranMs(id);
    return sum;
  };
  const before = await now(), result = await act(), after = await now();
  await session.detach();
  return {result, cpu: Object.fromEntries(Object.keys(after).map(key => [key, after[key] - before[key]]))};
}
