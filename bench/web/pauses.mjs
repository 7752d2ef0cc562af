// How long commands hold up a Node process, and what passes of their own time
// meanwhile: `node bench/web/pauses.mjs` behind `cargo xtask web`. Measures and
// prints; never judges.

import { MemoryEnvironment } from "../../js/node.js";

/** Some never end by themselves; the others are work that people do. */
const COMMANDS = [
  `jq -n 'last(repeat(1))'`,
  `jq -n 'last(repeat(1)|{a:1}|to_entries|from_entries)'`,
  `jq -n 'reduce range(1e9) as $x ({}; .["k\\($x)"]=$x)|length'`,
  `jq -n '("x"*500000) as $s|last(repeat(1)|$s|length)'`,
  `jq -n '("x"*500000) as $s|last(repeat(1)|$s|test("(x|y)+z"))'`,
  `awk 'BEGIN{while(1);}'`,
  `awk 'BEGIN{for(;;)a[i++]=i}'`,
  `awk 'BEGIN{s="xxxxxxxxxx";for(i=0;i<15;i++)s=s s;while(1)if(match(s,/(x|y)+z/))n++}'`,
  `dd if=/dev/zero bs=1M count=60 | wc -c`,
  `seq 1000000 | sort | tail -1`,
  `seq 1000000 > f; sort -k1,1 f | tail -1`,
  `seq 300000 | awk '{a[$1]=$1} END{print length(a)}'`,
  `seq 300000 | jq -s add`,
  `seq 300000 | sed 's/1/2/g' | tail -1`,
  `head -c 3000000 /dev/urandom | gzip | wc -c`,
  `yes | head -c 5000000 | tr y n | grep -c n`,
  `for i in $(seq 2000); do echo $i | cat; done > /dev/null`,
];
/** Of each command. */
const RUNS = 3;

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

async function measure(command) {
  const env = await MemoryEnvironment.create();
  let last = performance.now();
  let pause = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    pause = Math.max(pause, now - last);
    last = now;
  }, 1);
  const begun = performance.now();
  const { durationMs, exitCode } = await env.exec(command, { timeoutMs: 10_000 });
  const realMs = performance.now() - begun;
  pause = Math.max(pause, performance.now() - last);
  clearInterval(timer);
  await env.dispose();
  return { pause, durationMs, realMs, exitCode };
}

console.log("pause ms | own time ms | real ms | exit code | command");
for (const command of COMMANDS) {
  const runs = [];
  for (let run = 0; run < RUNS; run++) runs.push(await measure(command));
  const of = (what) => String(Math.round(median(runs.map((run) => run[what])))).padStart(6);
  console.log(`${of("pause")} | ${of("durationMs")} | ${of("realMs")} | ${of("exitCode")} | ${command}`);
}
process.exit(0);
