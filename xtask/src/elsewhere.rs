//! Environments elsewhere: the contract over a server of SSH on this machine, and over
//! stand-ins of containers.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

use crate::native;
use crate::workspace::{NATIVE, cargo};

/// How long the server may take to listen.
const START: Duration = Duration::from_secs(20);

pub(crate) fn test(shell: &Shell) -> Result<()> {
    ensure!(
        cmd!(shell, "busybox true").quiet().run().is_ok(),
        "cannot run busybox; install it"
    );
    let server = Server::start(shell)?;
    cargo(shell)
        .arg("test")
        .args(NATIVE)
        .args(["--test", "contract", "--"])
        .args(["component_ssh", "component_container", "component_busybox"])
        .env(native::EMBED, native::core_path())
        .env("HERMITCRAB_TEST_SSH", server.way())
        .run()
        .context("an environment elsewhere does not keep the contract")
}

/// A server of SSH on the loopback interface, for this user and one key.
struct Server {
    place: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Server {
    fn start(shell: &Shell) -> Result<Self> {
        let program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"];
        let program = program.iter().find(|path| Path::new(path).exists());
        let program = program.context("there is no sshd; install a server of OpenSSH")?;
        let place = tempfile::tempdir()?;
        let at = |name: &str| -> PathBuf { place.path().join(name) };
        for key in [at("host"), at("user")] {
            cmd!(shell, "ssh-keygen -q -t ed25519 -N '' -f {key}")
                .quiet()
                .run()?;
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let directory = place.path().display();
        let settings = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {directory}/host\n\
             AuthorizedKeysFile {directory}/user.pub\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\n"
        );
        std::fs::write(at("settings"), settings)?;
        // As root it wants a directory that is not there before its first start.
        drop(std::fs::create_dir("/run/sshd"));
        let child = Command::new(program)
            .arg("-D")
            .arg("-f")
            .arg(at("settings"))
            .arg("-E")
            .arg(at("log"))
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start sshd")?;
        let server = Self { place, port, child };
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = std::fs::read_to_string(server.place.path().join("log"));
            ensure!(
                begun.elapsed() < START,
                "sshd does not listen: {}",
                log.unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// The words after `ssh` that lead there.
    fn way(&self) -> String {
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        format!(
            "-p {} -i {} -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
             -o LogLevel=ERROR {user}@127.0.0.1",
            self.port,
            self.place.path().join("user").display()
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
