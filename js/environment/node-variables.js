// Which environment variables a command of Node's inherits: the rules of the
// native host (host/src/local/secret.rs, host/src/local/system/policy.rs).

import { statSync } from "node:fs";
import { isAbsolute } from "node:path";

/** The variables that every command should see. */
const CORE = [
  ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ"],
  ...["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"],
  ...["CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOROOT", "GOBIN", "GOCACHE"],
  ...["NVM_DIR", "NODE_PATH", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR"],
  ...["PYENV_ROOT", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX"],
  ...["JAVA_HOME", "MAVEN_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "SDKMAN_DIR"],
  ...["RBENV_ROOT", "GEM_HOME", "GEM_PATH", "DOTNET_ROOT", "ANDROID_HOME", "COMPOSER_HOME"],
  ...["LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"],
];

/** Last words of names, after `_`, `-` or `.`, or whole names. */
const WORDS = [
  ...["KEY", "SECRET", "SECRETS", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD"],
  ...["CREDENTIAL", "CREDENTIALS", "CREDS", "PAT", "DSN", "AUTH", "JWT", "COOKIE"],
];

/** Ends of names, in whatever they are glued to (`PGPASSWORD`, `githubToken`). */
const ENDS = [
  ...["APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD"],
  ...["PASSPHRASE", "SSHPASS", "ACCESS_KEY_ID", "CONNECTION_STRING", "WEBHOOK_URL"],
];

/** Names with such an end that every shell sets, and proxies, whose password commands need. */
const HARMLESS = ["PWD", "OLDPWD", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"];

/** Parts of values that come with a secret. */
const MARKS = ["PASSWORD=", "PWD=", "PRIVATE KEY-----"];

/** Shortest secret that is also looked for inside longer values; a shorter one would hit by chance. */
const SEARCHED_SECRET = 8;

/**
 * The variables that remain of `inherited`.
 * @param {Record<string, string | undefined>} inherited
 * @param {"filtered" | "all" | "core" | "none"} policy
 * @param {string[]} secrets values that no command inherits under any name
 * @returns {Record<string, string>}
 */
export function select(inherited, policy, secrets) {
  const passes = {
    all: () => true,
    none: () => false,
    core: isCore,
    filtered: (name, value) => isCore(name) || !looksSecret(name, value),
  }[policy];
  return Object.fromEntries(Object.entries(inherited).filter(([name, value]) => passes(name, value) && !holdsSecret(value, secrets)));
}

const isCore = (name) => CORE.includes(name) || name.startsWith("LC_");

function holdsSecret(value, secrets) {
  return secrets.some((secret) => value === secret || (secret.length >= SEARCHED_SECRET && value.includes(secret)));
}

/**
 * Whether a variable is taken for a secret, by its name in any case or by its value.
 * @param {string} given @param {string} value
 */
export function looksSecret(given, value) {
  const name = given.toUpperCase();
  if (HARMLESS.includes(name)) return false;
  const isNamed = WORDS.includes(name.split(/[_.-]/).at(-1)) || ENDS.some((end) => name.endsWith(end));
  // `SSH_KEY=/home/me/.ssh/id`: the secret is elsewhere.
  if (isNamed) return !(isAbsolute(value) && statSync(value, { throwIfNoEntry: false })?.isFile());
  return MARKS.some((mark) => value.toUpperCase().includes(mark)) || holdsPassword(value);
}

/** Whether a URL in `value` has a password: `scheme://user:password@host`. */
function holdsPassword(value) {
  return value.split("://").slice(1).some((rest) => {
    const [authority] = rest.split(/[/?#\s]/);
    const at = authority.lastIndexOf("@");
    const user = authority.slice(0, Math.max(at, 0));
    return user.includes(":") && !user.endsWith(":") && user.indexOf(":") < user.length - 1;
  });
}
