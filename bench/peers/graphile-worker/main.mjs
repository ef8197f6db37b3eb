// graphile-worker beside relaybus: drains jobs that are there already, or inserts and works them at once.
//
// Started as `node main.mjs <url> drain|work tuned|default <jobs>`. It prints `ready` when the jobs are there, waits for a
// line, and answers with one line of JSON. A job counts when the worker has told that it completed.
import { EventEmitter, once } from "node:events";
import { createInterface } from "node:readline";
import { Logger, makeWorkerUtils, run } from "graphile-worker";

const INSERT_BATCH = 5_000;
// Jobs that wait at most while jobs are inserted and worked at once.
const BACKLOG = 20_000;
const NOTE =
  "a hundred and sixty bytes of payload, as the other sides of the comparison have it, give or take a few that name the fields of this text";

const [url, mode, settings, count] = process.argv.slice(2);
const jobs = Number(count);

// The tuned settings are those of graphile-worker's own performance test.
const TUNED = {
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};

async function insert(utils, room) {
  for (let number = 0; number < jobs; number += INSERT_BATCH) {
    while (!room(number)) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const size = Math.min(INSERT_BATCH, jobs - number);
    const specs = Array.from({ length: size }, (_, i) => ({
      identifier: "noop",
      payload: { number: number + i, note: NOTE },
    }));
    await utils.addJobs(specs);
  }
}

function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

const logger = new Logger(() => () => {});
const preset = {
  worker: { connectionString: url, logger, ...(settings === "tuned" ? TUNED : {}) },
};
const utils = await makeWorkerUtils({ preset });
await utils.migrate();
if (mode === "drain") {
  await insert(utils, () => true);
}
const events = new EventEmitter();
let done = 0;
const finished = new Promise((resolve) => {
  events.on("job:complete", () => {
    done += 1;
    if (done === jobs) {
      resolve();
    }
  });
});
console.log("ready");
const input = createInterface({ input: process.stdin });
await once(input, "line");
const began = process.hrtime.bigint();
const cpu = cpuSeconds();
const runner = await run({ preset, events, noHandleSignals: true, taskList: { noop: async () => {} } });
if (mode === "work") {
  await insert(utils, (inserted) => inserted - done < BACKLOG);
}
await finished;
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
console.log(JSON.stringify({ jobs, seconds, cpu_seconds: cpuSeconds() - cpu }));
input.close();
await runner.stop();
await utils.release();
