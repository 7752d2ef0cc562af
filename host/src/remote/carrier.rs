//! How a call gets to another machine: `ssh` or the command of a container engine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;

use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind as Kind};
use tokio::process::Command;
use tokio::sync::Mutex;

/// The script that answers calls there.
const SCRIPT: &str = include_str!("there.sh");

/// Longest call in bytes with the script: Linux takes arguments of 128 KiB at most.
const MAX_CALL: usize = 120 * 1024;

/// How long the connection stays without a call, in seconds: so long does its process
/// outlive a process of ours that was killed.
const IDLE: u32 = 60;

/// What `ssh` and the engines of containers may know of this process. No key of a model is
/// among them.
const VARIABLES: [&str; 22] = [
    "CONTAINER_CONNECTION",
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "HOME",
    "KRB5CCNAME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "TERM",
    "TMPDIR",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
];

/// Where a [`RemoteEnvironment`](super::RemoteEnvironment) is, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remote {
    /// A machine that `ssh` reaches without asking: a destination of `ssh`, such as
    /// `user@host` or a name of its configuration.
    Ssh {
        /// The destination.
        destination: String,
        /// Arguments of `ssh` before it, such as `-p 2222`.
        options: Vec<String>,
    },
    /// A container that runs.
    Container {
        /// The engine's command: `docker`, `podman` or one that knows `exec -i NAME`.
        engine: String,
        /// Name or id.
        name: String,
    },
}

impl Remote {
    /// A machine that `ssh destination` reaches.
    pub fn ssh(destination: impl Into<String>) -> Self {
        Self::Ssh {
            destination: destination.into(),
            options: Vec::new(),
        }
    }

    /// The container `name` of `engine` (`docker` or `podman`).
    pub fn container(engine: impl Into<String>, name: impl Into<String>) -> Self {
        Self::Container {
            engine: engine.into(),
            name: name.into(),
        }
    }

    /// What a person calls it.
    fn shown(&self) -> String {
        match self {
            Self::Ssh { destination, .. } => format!("`ssh {destination}`"),
            Self::Container { engine, name } => format!("`{engine} exec {name}`"),
        }
    }
}

/// A way that is open.
#[derive(Debug)]
pub(super) struct Carrier {
    remote: Remote,
    /// Of `ssh`: the directory of the socket that all calls share.
    socket: Option<tempfile::TempDir>,
    /// Held while the connection is made.
    connecting: Mutex<()>,
}

impl Carrier {
    /// Opens the way: with `ssh` the connection that all calls share.
    pub(super) async fn open(remote: Remote) -> Result<Self, EnvironmentError> {
        // A name that begins with a dash would be an option.
        let name = match &remote {
            Remote::Ssh { destination, .. } => destination,
            Remote::Container { name, .. } => name,
        };
        if name.is_empty() || name.starts_with('-') {
            return Err(EnvironmentError::new(
                Kind::InvalidInput,
                format!("{} has no name of a machine or container", remote.shown()),
            ));
        }
        let mut carrier = Self {
            remote,
            socket: None,
            connecting: Mutex::new(()),
        };
        if matches!(carrier.remote, Remote::Ssh { .. }) {
            let directory = tempfile::Builder::new().prefix("hermitcrab-").tempdir();
            let directory = directory.map_err(|error| carrier.broken(&error.to_string()))?;
            carrier.socket = Some(directory);
            carrier.connect().await?;
        }
        Ok(carrier)
    }

    /// Makes the connection again if it has ended without calls.
    pub(super) async fn reach(&self) -> Result<(), EnvironmentError> {
        let has_ended = || self.socket_path().is_some_and(|path| !path.exists());
        if has_ended() {
            let _turn = self.connecting.lock().await;
            if has_ended() {
                return self.connect().await;
            }
        }
        Ok(())
    }

    /// Has `ssh` make the connection and stay in the background.
    async fn connect(&self) -> Result<(), EnvironmentError> {
        let Some(place) = &self.socket else {
            return Ok(());
        };
        // A file: `ssh` keeps its standard error open in the background.
        let said = place.path().join("said");
        let broken = |error: std::io::Error| self.broken(&error.to_string());
        let file = std::fs::File::create(&said).map_err(broken)?;
        let mut command = self.program();
        command
            .args(["-o", "ControlMaster=yes"])
            .args(["-o", &format!("ControlPersist={IDLE}")])
            .args(["-o", "ConnectTimeout=20", "-f", "-N"])
            .arg("--")
            .arg(self.name())
            .stderr(file);
        let status = command.status().await.map_err(broken)?;
        if status.success() {
            return Ok(());
        }
        let said = std::fs::read(&said).unwrap_or_default();
        Err(self.broken(&String::from_utf8_lossy(&said)))
    }

    fn name(&self) -> &str {
        match &self.remote {
            Remote::Ssh { destination, .. } => destination,
            Remote::Container { name, .. } => name,
        }
    }

    fn socket_path(&self) -> Option<PathBuf> {
        let place = self.socket.as_ref()?;
        Some(place.path().join("socket"))
    }

    /// The program with what all of its calls have. It dies with its handle.
    fn program(&self) -> Command {
        let mut command = match &self.remote {
            Remote::Ssh { options, .. } => {
                let mut command = Command::new("ssh");
                command.args(options).args(["-T", "-x"]);
                // Nobody is there to answer a question; a line that is dead is noticed.
                command.args(["-o", "BatchMode=yes", "-o", "ServerAliveInterval=15"]);
                if let Some(path) = self.socket_path() {
                    let mut option = OsString::from("ControlPath=");
                    option.push(path);
                    command.arg("-o").arg(option);
                }
                command
            }
            Remote::Container { engine, .. } => Command::new(engine),
        };
        command.env_clear();
        for name in VARIABLES {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// A call of the script, as a command of this machine with `arguments`.
    pub(super) fn call(&self, arguments: &[&str]) -> Result<Command, EnvironmentError> {
        let length: usize = arguments.iter().map(|argument| argument.len() + 3).sum();
        if length + SCRIPT.len() > MAX_CALL {
            return Err(EnvironmentError::new(
                Kind::TooLarge,
                format!(
                    "a call of {length} bytes is too long for {}; the most is {}: write the \
                     command to a file first",
                    self.remote.shown(),
                    MAX_CALL - SCRIPT.len()
                ),
            ));
        }
        let words = ["sh", "-c", SCRIPT, "hermitcrab"];
        let words = words.iter().chain(arguments);
        let mut command = self.program();
        match &self.remote {
            Remote::Ssh { .. } => {
                let line: Vec<String> = words.map(|word| quoted(word)).collect();
                command.args(["-o", "ControlMaster=no", "--"]);
                command.arg(self.name()).arg(line.join(" "));
            }
            Remote::Container { .. } => {
                command.args(["exec", "-i", self.name()]).args(words);
            }
        }
        Ok(command)
    }

    /// The way broke under a command.
    pub(super) fn cut_off(&self, said: &str) -> EnvironmentError {
        let mut error = self.broken(said);
        error
            .message
            .push_str("; the command may have taken effect there: look before you repeat it");
        error
    }

    /// The way does not lead there (any more).
    pub(super) fn broken(&self, said: &str) -> EnvironmentError {
        let said = said.trim();
        let reason = said
            .lines()
            .last()
            .unwrap_or_default()
            .trim_end_matches('.');
        let shown = self.remote.shown();
        EnvironmentError::new(
            Kind::Io,
            match reason {
                "" => format!("cannot reach {shown}"),
                reason => format!("cannot reach {shown}: {reason}"),
            },
        )
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        let Some(path) = self.socket_path().filter(|path| path.exists()) else {
            return;
        };
        let mut option = OsString::from("ControlPath=");
        option.push(path);
        // Speaks to the process in the background, not to the other machine.
        let mut command = std::process::Command::new("ssh");
        command.arg("-o").arg(option).args(["-O", "exit", "--"]);
        command.arg(self.name());
        let silent = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Where it fails, the process ends with its connection.
        drop(silent.status());
    }
}

/// One word for a POSIX shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_one_word() {
        for word in ["", "a b", "it's", "$x `y` \\ \"z\"", "line\nbreak"] {
            let line = format!("printf %s {}", quoted(word));
            let out = std::process::Command::new("sh")
                .arg("-c")
                .arg(line)
                .output();
            assert_eq!(out.expect("sh").stdout, word.as_bytes());
        }
    }

    #[tokio::test]
    async fn names_that_are_options_are_refused() {
        for remote in [
            Remote::ssh("-oProxyCommand=touch /tmp/x"),
            Remote::ssh(""),
            Remote::container("docker", "--privileged"),
        ] {
            let error = Carrier::open(remote).await.expect_err("refused");
            assert_eq!(error.kind, Kind::InvalidInput);
        }
    }
}
