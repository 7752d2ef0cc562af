// Compares the sandbox with the real bash of this machine, command by command.
//
//   node reference.mjs truth [COMMANDS.json]              > truth.json
//   node reference.mjs compare truth.json sandbox.json [COMMANDS.json]
//   node reference.mjs document [--check]    the table in docs/sandbox.md
//
// `truth` runs every command of commands.json (an array of {name, command,
// needs?, expect?}; `needs` names a tool without which the command is left out) in a fresh copy of tree.json with real /bin/bash. `compare` takes a
// second map of the same shape, {name: {stdout, exit_code}}, made by running the
// same commands in the sandbox, and judges them:
//   expect absent or "same"   stdout and exit code equal those of real bash
//   expect {differs, stdout?, exit_code?}   a known difference and its reason;
//       what is given must equal what the sandbox did, and the sandbox must not
//       have become equal to bash by itself (then the entry is out of date).
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const here = import.meta.dirname;
const load = file => JSON.parse(fs.readFileSync(file, 'utf8'));

function truth(commands) {
  const tree = load(path.join(here, 'tree.json'));
  const results = {};
  for (const { name, command } of commands) {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sandbox-truth-'));
    for (const [file, content] of Object.entries(tree)) {
      const target = path.join(directory, 'workspace', file);
      fs.mkdirSync(path.dirname(target), { recursive: true });
      fs.writeFileSync(target, content);
    }
    const cwd = path.join(directory, 'workspace');
    const git = ['AUTHOR', 'COMMITTER'].flatMap(who => [[`GIT_${who}_NAME`, 'user'], [`GIT_${who}_EMAIL`, 'user@localhost']]);
    const run = spawnSync('/bin/bash', ['-c', command], {
      argv0: 'bash', cwd, timeout: 5_000, maxBuffer: 64 << 20, input: '',
      env: { HOME: directory, PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8', TERM: 'dumb', TZ: 'UTC', ...Object.fromEntries(git) },
    });
    results[name] = { stdout: run.stdout.toString('utf8'), exit_code: run.status ?? 124 };
    execFileSync('rm', ['-rf', directory]);
  }
  return results;
}

function compare(commands, bash, sandbox) {
  let wrong = 0;
  for (const { name, command, expect = 'same' } of commands) {
    const [real, ours] = [bash[name], sandbox[name]];
    const same = real && ours && real.stdout === ours.stdout && real.exit_code === ours.exit_code;
    let verdict;
    if (!real || !ours) verdict = 'was not run';
    else if (expect === 'same') verdict = same ? null : 'differs from bash';
    else if (same) verdict = 'is equal to bash by now; remove the entry';
    else if (expect.exit_code !== undefined && expect.exit_code !== ours.exit_code) verdict = 'has another exit code than noted';
    else if (expect.stdout !== undefined && expect.stdout !== ours.stdout) verdict = 'has another output than noted';
    if (!verdict) continue;
    wrong += 1;
    console.log(`${name}: ${verdict}\n  $ ${command}\n  bash    ${JSON.stringify(real)}\n  sandbox ${JSON.stringify(ours)}`.slice(0, 1_500));
  }
  const known = commands.filter(c => c.expect?.differs).length;
  console.log(`${commands.length} commands, ${commands.length - known} expected equal, ${known} known differences, ${wrong} wrong`);
  return wrong;
}

// The known differences, one row per reason, between the markers of the page.
function document(commands, check) {
  const page = path.join(here, '../../docs/sandbox.md');
  const reasons = new Map();
  for (const { command, expect } of commands) {
    if (expect?.differs) reasons.set(expect.differs, [...(reasons.get(expect.differs) ?? []), command]);
  }
  const code = text => '`' + text.replaceAll('\n', '; ').replaceAll('|', '\\|').replaceAll('`', "'") + '`';
  const rows = [...reasons].map(([reason, cases]) => {
    const shown = cases[0].length > 70 ? cases[0].slice(0, 67) + '...' : cases[0];
    return `| ${reason} | ${code(shown)}${cases.length > 1 ? ` and ${cases.length - 1} more` : ''} |`;
  });
  const table = ['| difference | example |', '|---|---|', ...rows].join('\n');
  const old = fs.readFileSync(page, 'utf8');
  const equal = commands.length - commands.filter(c => c.expect?.differs).length;
  const text = old
    .replace(/(<!-- differences -->)[^]*(<!-- \/differences -->)/, (_, a, b) => `${a}\n${table}\n${b}`)
    .replace(/holds \d+ one-liners/, `holds ${commands.length} one-liners`)
    .replace(/write\. \d+ of them/, `write. ${equal} of them`);
  if (check && text !== old) {
    console.error('docs/sandbox.md is out of date: run node tests/sandbox/reference.mjs document');
    return 1;
  }
  if (!check) fs.writeFileSync(page, text);
  return 0;
}

const [mode, ...rest] = process.argv.slice(2);
if (mode === 'truth') {
  console.log(JSON.stringify(truth(load(rest[0] ?? path.join(here, 'commands.json'))), null, 1));
} else if (mode === 'compare' && rest.length >= 2) {
  process.exitCode = compare(load(rest[2] ?? path.join(here, 'commands.json')), load(rest[0]), load(rest[1])) ? 1 : 0;
} else if (mode === 'document') {
  process.exitCode = document(load(path.join(here, 'commands.json')), rest[0] === '--check');
} else {
  console.error('usage: node reference.mjs truth [COMMANDS.json] | compare TRUTH.json SANDBOX.json [COMMANDS.json] | document [--check]');
  process.exitCode = 2;
}
