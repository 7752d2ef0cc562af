//! `Instance`: a running core, and the environments that it is given.

use std::collections::BTreeMap;
use std::sync::Arc;

use hermitcrab::session::InstanceCall;

use crate::core::Core as _;
use crate::driver::DriverHandle;
use crate::environment::HostEnvironment;
use crate::error::HostError;
use crate::memory::{EnvironmentChoice, EnvironmentHandle, MemoryOptions};
use crate::program::{Lent, ProgramFn};

/// A running core: environments and sessions that live together. Clones are
/// handles to the same one; it ends with its last handle, session and
/// environment.
#[derive(Clone)]
pub struct Instance {
    pub(crate) driver: DriverHandle,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Instance")
    }
}

impl Instance {
    /// Why the record of this instance
    /// ([`Host::recorded_instance`](crate::Host::recorded_instance)) is not whole, if it is
    /// not: the disk is full, for example.
    ///
    /// # Errors
    /// The instance has ended.
    pub async fn record_failure(&self) -> Result<Option<String>, HostError> {
        self.driver
            .call(|driver| Ok(driver.core.record_failure()))
            .await
    }

    /// Ends the record of this instance, which goes on: all of it is in the file then.
    /// Says why it is not whole, if it is not.
    ///
    /// # Errors
    /// The instance has ended.
    pub async fn end_record(&self) -> Result<Option<std::io::Error>, HostError> {
        self.driver
            .call(|driver| Ok(driver.core.end_record()))
            .await
    }

    /// Ends the journal of this instance ([`InstanceOptions::journal`](crate::InstanceOptions)),
    /// which goes on. Says why it is not whole, if it is not.
    ///
    /// # Errors
    /// The instance has ended.
    pub async fn end_journal(&self) -> Result<Option<std::io::Error>, HostError> {
        self.driver.call(|driver| Ok(driver.core.end_kept())).await
    }

    /// Adds an environment that `environment` answers for.
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn add_environment(
        &self,
        environment: Arc<dyn HostEnvironment>,
    ) -> Result<EnvironmentHandle, HostError> {
        let number = self
            .driver
            .call(move |driver| {
                let info = environment.info();
                let call = InstanceCall::AddRemoteEnvironment { info };
                let number = driver.core.small_number(call)?;
                driver.environments.insert(number, environment);
                Ok(number)
            })
            .await?;
        Ok(EnvironmentHandle::new(self.driver.clone(), number))
    }

    /// Adds a sandbox: a file tree and a shell inside the core.
    ///
    /// # Errors
    /// Settings or files that the core refuses.
    pub async fn add_memory(&self, options: MemoryOptions) -> Result<EnvironmentHandle, HostError> {
        let number = self
            .driver
            .call(move |driver| {
                let settings = options.to_json();
                let call = InstanceCall::AddMemoryEnvironment { settings };
                let environment = driver.core.small_number(call)?;
                if let Some(archive) = options.archive {
                    driver.core.tell(InstanceCall::ImportTar {
                        environment,
                        archive,
                    })?;
                }
                if !options.files.is_empty() {
                    driver.core.tell(InstanceCall::ImportFiles {
                        environment,
                        files: options.files,
                    })?;
                }
                let number = environment;
                driver.programs.insert(number, Lent::new(options.programs));
                Ok(number)
            })
            .await?;
        Ok(EnvironmentHandle::new(self.driver.clone(), number))
    }

    /// Adds a sandbox by `add`.
    pub(crate) async fn sandbox(
        &self,
        add: InstanceCall,
        programs: BTreeMap<String, ProgramFn>,
    ) -> Result<EnvironmentHandle, HostError> {
        let number = self
            .driver
            .call(move |driver| {
                let number = driver.core.small_number(add)?;
                driver.programs.insert(number, Lent::new(programs));
                Ok(number)
            })
            .await?;
        Ok(EnvironmentHandle::new(self.driver.clone(), number))
    }

    /// The environment of a choice; adds it if the instance does not have it.
    pub(crate) async fn environment(
        &self,
        choice: EnvironmentChoice,
    ) -> Result<EnvironmentHandle, HostError> {
        match choice {
            EnvironmentChoice::Host(environment) => self.add_environment(environment).await,
            EnvironmentChoice::Memory(memory) => self.add_memory(memory).await,
            EnvironmentChoice::Existing(environment) => Ok(environment),
        }
    }
}
