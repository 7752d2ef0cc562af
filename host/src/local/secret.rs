//! Which environment variables look like secrets.
//!
//! The spec (4.2) names five ends of names. People keep secrets under more names
//! than that, and in the values of variables with harmless names; a secret that a
//! model reads is on its way to a provider's log.

use std::ffi::OsStr;
use std::path::Path;

/// Last words of names, after `_`, `-` or `.`, or whole names.
const WORDS: &[&str] = &[
    "KEY",
    "SECRET",
    "SECRETS",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "PAT",
    "DSN",
    "AUTH",
    "JWT",
    "COOKIE",
];

/// Ends of names, in whatever they are glued to (`PGPASSWORD`, `githubToken`).
const ENDS: &[&str] = &[
    "APIKEY",
    "ACCESSKEY",
    "SECRETKEY",
    "PRIVATEKEY",
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SSHPASS",
    "ACCESS_KEY_ID",
    "CONNECTION_STRING",
    "WEBHOOK_URL",
];

/// Names with such an end that every shell sets.
const HARMLESS: &[&str] = &["PWD", "OLDPWD"];

/// Without them no command reaches the network where there is a proxy, so that a
/// password in them is one that commands need.
const PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"];

/// Parts of values that come with a secret.
const MARKS: &[&str] = &["PASSWORD=", "PWD=", "PRIVATE KEY-----"];

/// Whether a variable is taken for a secret, which commands do not inherit by
/// default: by its name, in any case (`*_API_KEY`, `*_SECRET`, `*_TOKEN`,
/// `*_PASSWORD`, `*_CREDENTIAL` as the spec has it, 4.2; also `*_KEY`,
/// `*_ACCESS_KEY_ID`, `*_PASS`, `*_PAT`, `*_DSN`, `*_AUTH`, `PGPASSWORD`,
/// `apikey` and the like, unless the value is a path to a file), or by its
/// value: a URL with a password, a connection string with one, a private key.
pub fn looks_secret(name: &OsStr, value: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let value = value.to_string_lossy();
    if HARMLESS.contains(&&*name) || PROXIES.contains(&&*name) {
        return false;
    }
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let named = WORDS.contains(&last) || ENDS.iter().any(|end| name.ends_with(end));
    if named {
        // `SSH_KEY=/home/me/.ssh/id`: the secret is elsewhere.
        let path = Path::new(&*value);
        return !(path.is_absolute() && path.is_file());
    }
    let upper = value.to_ascii_uppercase();
    MARKS.iter().any(|mark| upper.contains(mark)) || holds_password(&value)
}

/// Whether a URL in `value` has a password: `scheme://user:password@host`.
fn holds_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let end = |c: char| matches!(c, '/' | '?' | '#') || c.is_whitespace();
        let authority = rest.split(end).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        let password = user.and_then(|user| user.split_once(':'));
        password.is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expected: bool, variables: &[&str]) {
        for variable in variables {
            let (name, value) = variable.split_once('=').expect("NAME=value");
            let found = looks_secret(OsStr::new(name), OsStr::new(value));
            assert_eq!(found, expected, "{variable}");
        }
    }

    #[test]
    fn names_of_secrets() {
        check(
            true,
            &[
                "OPENAI_API_KEY=x",
                "github_token=x",
                "Db_Password=x",
                "AWS_SECRET=x",
                "X_CREDENTIAL=x",
                "AWS_ACCESS_KEY_ID=x",
                "AWS_SECRET_ACCESS_KEY=x",
                "AWS_SESSION_TOKEN=x",
                "GITHUB_PAT=x",
                "apikey=x",
                "API_KEY=x",
                "MYAPIKEY=x",
                "SMTP_PASS=x",
                "SSHPASS=x",
                "PGPASSWORD=x",
                "MYSQL_PWD=x",
                "SENTRY_DSN=x",
                "NPM_AUTH=x",
                "npm_config__auth=x",
                "npm_config_//registry/:_authToken=x",
                "STRIPE_KEY=x",
                "GPG_PASSPHRASE=x",
                "GOOGLE_CREDENTIALS={}",
                "AZURE_STORAGE_CONNECTION_STRING=x",
                "SLACK_WEBHOOK_URL=x",
            ],
        );
    }

    #[test]
    fn values_with_secrets() {
        check(
            true,
            &[
                "DATABASE_URL=postgres://app:hunter2@db/app",
                "REDIS=redis://:hunter2@cache:6379",
                "INDEXES=https://a.example/ https://me:tok@b.example/simple",
                "MONGO=mongodb+srv://me:p%40ss@host/?w=1",
                "DB=host=db password=hunter2 user=app",
                "SQL=Server=db;Uid=app;Pwd=hunter2;",
                "SIGNER=-----BEGIN OPENSSH PRIVATE KEY-----",
            ],
        );
    }

    #[test]
    fn what_commands_need() {
        check(
            false,
            &[
                "PWD=/work",
                "OLDPWD=/",
                "TOKENIZER=fast",
                "KEYBOARD=us",
                "MONKEY=banana",
                "MAX_TOKENS=4096",
                "COMPASS=north",
                "PATH=/bin",
                "SSH_AUTH_SOCK=/tmp/agent",
                "GIT_ASKPASS=/bin/false",
                "https_proxy=http://me:hunter2@proxy:3128",
                "DATABASE_URL=postgres://db/app",
                "REMOTE=ssh://git@example.com/x:y@z",
                "HOMEPAGE=https://example.com/?at=a:b@c",
                "SSH_KEY=/proc/self/exe",
            ],
        );
    }
}
