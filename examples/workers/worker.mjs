// Performs the tasks of a queue on a Redis stream: REDIS_URL=redis://localhost node worker.mjs shout
// It needs a Redis client (npm install ioredis) and nothing of Weft. Start as many as you like.
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

const prefix = process.env.PREFIX ?? ""; // t:acme: for the runs of the tenant acme
const [tasks, done] = [`${prefix}wf.tasks.${process.argv[2]}`, `${prefix}wf.done`];
const me = `${hostname()}-${process.pid}`;
const server = new Redis(process.env.REDIS_URL ?? "redis://localhost");
const waiting = server.duplicate(); // a call that waits holds up its connection
for (const client of [server, waiting]) client.on("error", (error) => console.error(error.message));

// key is the same in all attempts: pass it on to the services that you call
async function perform(step, key, input) {
  if (step === "shout") return input.text.toUpperCase();
  throw new Error(`There is no step ${step} here.`);
}

async function handle(entry, task) {
  const touch = () => server.xclaim(tasks, "weft", me, 0, entry, "JUSTID").catch(() => {});
  const keep = setInterval(touch, Number(task.lease_ms) / 3); // who does not touch a task for a lease loses it
  const work = async () => JSON.stringify((await perform(task.step, task.key, JSON.parse(task.input))) ?? null);
  const answer = await work().then(
    (result) => ["status", "completed", "result", result],
    (error) => ["status", "failed", "error", JSON.stringify({ type: error.name, message: error.message })],
  );
  clearInterval(keep);
  await server.xadd(done, "*", "token", task.token, ...answer); // first answer, then forget the task
  await server.xack(tasks, "weft", entry);
  await server.xdel(tasks, entry);
}

for (;;) {
  try {
    const read = await waiting.xreadgroup("GROUP", "weft", me, "COUNT", 1, "BLOCK", 1000, "STREAMS", tasks, ">");
    for (const [, [[entry, words]]] of read ?? [])
      await handle(entry, Object.fromEntries(words.flatMap((word, i) => (i % 2 ? [] : [[word, words[i + 1]]]))));
  } catch (error) { console.error(error.message); await sleep(1000); } // no stream yet, or Redis is away
}
