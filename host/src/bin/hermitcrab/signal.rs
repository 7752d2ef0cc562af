//! Requests to stop: Ctrl-C, and on Unix what `kill`, `timeout` and a closed
//! terminal send.

use crate::failure::{Failure, reason};

/// A write beyond the limit of file sizes (`ulimit -f`) is an error, and does
/// not end the process with half a file on the disk. Commands get the signal.
#[cfg(unix)]
pub(crate) fn ignore_file_size_limit() {
    // SAFETY: ignoring a signal runs no code of ours; if it fails, the process
    // dies of such a write as it would have.
    let _ = unsafe {
        nix::sys::signal::signal(
            nix::sys::signal::Signal::SIGXFSZ,
            nix::sys::signal::SigHandler::SigIgn,
        )
    };
}

#[cfg(not(unix))]
pub(crate) fn ignore_file_size_limit() {}

/// Listens from its creation on; until then the process dies as usual.
#[cfg(unix)]
pub(crate) struct Stops {
    signals: [tokio::signal::unix::Signal; 3],
    is_final: bool,
}

#[cfg(unix)]
impl Stops {
    pub(crate) fn listen() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Failure::failed(format!("cannot listen for signals: {}", reason(&error)))
            })
        };
        Ok(Self {
            signals: [
                listen(SignalKind::interrupt())?,
                listen(SignalKind::terminate())?,
                listen(SignalKind::hangup())?,
            ],
            is_final: false,
        })
    }

    /// Waits for the next request. Nothing is lost if it is not awaited to the end.
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => self.is_final = true,
            _ = hangup.recv() => self.is_final = true,
        }
    }

    /// Whether one was no Ctrl-C: it asks for the end of the process.
    pub(crate) fn are_final(&self) -> bool {
        self.is_final
    }
}

/// Listens from its creation on; until then the process dies as usual.
#[cfg(not(unix))]
pub(crate) struct Stops;

#[cfg(not(unix))]
impl Stops {
    pub(crate) fn listen() -> Result<Self, Failure> {
        Ok(Self)
    }

    /// Whether one asks for the end of the process.
    pub(crate) fn are_final(&self) -> bool {
        false
    }

    /// Waits for the next request.
    pub(crate) async fn next(&mut self) {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("hermitcrab: cannot listen for Ctrl-C: {}", reason(&error));
            std::future::pending::<()>().await;
        }
    }
}
