//! `Hands`: the thread within the fence that changes files for the file tools.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind as Kind};
use tokio::sync::oneshot;

use super::fence::Fence;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that ends with this.
pub(super) struct Hands {
    jobs: Sender<Job>,
    /// What may be changed, for who was refused.
    allowed: String,
}

impl Hands {
    /// A thread within `fence`.
    ///
    /// # Errors
    /// One sentence: there is no such thread.
    pub(super) fn new(fence: Arc<Fence>, allowed: String) -> Result<Self, String> {
        let (jobs, waiting) = channel::<Job>();
        let (entered, has_entered) = channel();
        std::thread::Builder::new()
            .name("fenced files".to_owned())
            .spawn(move || {
                let is_inside = fence.enter();
                let failed = is_inside.is_err();
                let _ = entered.send(is_inside);
                if !failed {
                    waiting.iter().for_each(|job| job());
                }
            })
            .map_err(|error| error.to_string())?;
        match has_entered.recv() {
            Ok(Ok(())) => Ok(Self { jobs, allowed }),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("its thread ended".to_owned()),
        }
    }

    /// Does `work` within the fence.
    ///
    /// # Errors
    /// Those of `work`; what the fence refused names what is allowed.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, EnvironmentError> + Send + 'static,
    ) -> Result<T, EnvironmentError> {
        let (done, result) = oneshot::channel();
        let job: Job = Box::new(move || {
            let _ = done.send(work());
        });
        let gone = || EnvironmentError::new(Kind::Io, "the thread that changes files has ended");
        self.jobs.send(job).map_err(|_| gone())?;
        result.await.map_err(|_| gone())?.map_err(|error| {
            if error.kind != Kind::PermissionDenied {
                return error;
            }
            EnvironmentError::new(error.kind, format!("{} ({})", error.message, self.allowed))
        })
    }
}
