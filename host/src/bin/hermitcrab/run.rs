//! A run: checks everything that can be wrong before the first request, and has the
//! task done.

use bytes::Bytes;
use hermitcrab::session::SessionRecord;
use hermitcrab::tool::approval::ApprovalSettings;
use hermitcrab_host::tree::Tree;

use crate::approve;
use crate::archive;
use crate::attach;
use crate::cli::{Approve, EnvironmentKind, RunOptions};
use crate::connect;
use crate::defaults;
use crate::edits;
use crate::failure::{Code, Failure};
use crate::journal::Keep;
use crate::output::{self, Output};
use crate::overlay;
use crate::plan::Plan;
use crate::programs;
use crate::provider;
use crate::save;
use crate::secrets::Secrets;
use crate::settings::{self, Texts};
use crate::surroundings;
use crate::task::{self, Ready};
use crate::workspace::{self, Machine, Workspace};

/// What a run goes on from.
#[derive(Default)]
pub(crate) struct Past {
    /// The conversation, if there was one.
    pub(crate) history: Option<SessionRecord>,
    /// Files of the sandbox to replace.
    pub(crate) edits: Vec<(String, Bytes)>,
}

/// Runs one task, or goes on with the one of `past`.
///
/// # Errors
/// Everything but a natural end, with its exit code and a sentence.
pub(crate) fn run_from(
    mut options: RunOptions,
    secrets: &Secrets,
    past: Past,
) -> Result<Code, Failure> {
    let elsewhere = options.elsewhere.remote();
    let directory = match &elsewhere {
        None => workspace::directory(&options.dir)?,
        Some(_) => options.dir.clone(),
    };
    // A project that is elsewhere has no file here.
    let project = elsewhere.is_none().then_some(&*directory);
    let defaults = defaults::apply(&mut options, project)?;
    let defaults = defaults::over(defaults, options.environment_kind())?;
    let options = &options;
    let Past { history, edits } = past;
    let memory = options.environment_kind() == EnvironmentKind::Memory;
    workspace::check(options)?;
    let settings = settings::over(options.settings.config.as_deref(), &defaults)?;
    let named = Some(settings.provider.as_str()).filter(|name| !name.is_empty());
    let named = options.provider.as_deref().or(named);
    // A profile of the file's is reached as its adapter is.
    let own = named.filter(|name| settings.profiles.contains_key(*name));
    let own = own.map(|name| settings.profile_of(name)).transpose();
    let own =
        own.map_err(|error| Failure::usage(format!("--config: {}", settings::problem(&error))))?;
    let provider = provider::choose(
        own.as_ref().map(|profile| profile.wire).or(named),
        options.base_url.as_deref(),
        |name| secrets.variable(name),
    )?;
    let texts = Texts::read(&options.settings)?;
    let prompt = match (&history, &options.prompt) {
        (Some(_), None) => String::new(),
        _ => task::read(options)?,
    };
    let prompt = attach::attached(prompt, &options.attach)?;
    let passed = workspace::passed(options, secrets)?;
    let output = output::file("--out", options.out.as_deref())?;
    let programs = options
        .python
        .as_deref()
        .map(programs::python)
        .transpose()?;

    let mut before = Tree::new();
    let overlay = match options.environment_kind() {
        EnvironmentKind::Overlay => Some(overlay::begin(&directory)?),
        _ => None,
    };
    let workspace = match (options.environment_kind(), elsewhere, &overlay) {
        (_, Some(remote), _) => {
            let directory = directory.to_str().ok_or_else(|| {
                Failure::usage("--dir is not UTF-8: name the directory that it is there")
            })?;
            Workspace::Elsewhere(remote, directory.to_owned())
        }
        (_, None, Some(overlay)) => {
            let (fence, variables) = overlay.fence(&options.fence, passed)?;
            Workspace::Local(Machine {
                directory: overlay.directory(),
                // SAFETY: nothing so far has started a thread.
                guardian: unsafe { workspace::guardian() }?,
                variables,
                fence,
                terminal: options.tty,
                // The directory itself is as it was.
                checkpoints: false,
            })
        }
        // SAFETY: nothing so far has started a thread.
        (
            EnvironmentKind::Local | EnvironmentKind::Elsewhere | EnvironmentKind::Overlay,
            None,
            None,
        ) => Workspace::Local(Machine {
            directory: directory.clone(),
            guardian: unsafe { workspace::guardian() }?,
            variables: passed,
            fence: options.fence.clone(),
            terminal: options.tty,
            checkpoints: !options.journal.no_checkpoints,
        }),
        (EnvironmentKind::Memory, None, None) => {
            let without = output.as_ref().map(Output::paths).unwrap_or_default();
            before = archive::read_directory(&directory, &without)?;
            let archive = Bytes::from(archive::to_tar(&before)?);
            // Shares its bytes with the archive.
            before = archive::from_tar(&archive)?;
            Workspace::Memory(archive, programs.unwrap_or_default())
        }
    };
    let name = own.map_or_else(
        || provider.provider.to_owned(),
        |profile| profile.id.clone(),
    );
    let model = options.model.as_deref();
    let mut config = settings::config(&options.settings, name, model, texts, settings);
    // Who sits there can be asked.
    let asks = options.chat.is_some() && config.approval == ApprovalSettings::default();
    let asks = asks.then_some(Approve::Ask);
    settings::set_approval(&mut config, options.approve.or(asks));
    settings::check(&config, &options.settings, model)?;
    if memory && config.project.is_none() {
        let profile = config.profile_of(&config.provider);
        let names = profile.map_or_else(|_| Vec::new(), |profile| profile.documents.clone());
        let project = surroundings::project(&directory, &names, &config);
        config.project = Some(task::runtime()?.block_on(project));
    }
    let providers = settings::with_others(provider, &mut config, secrets);
    let (approver, questions) = approve::approver(options, &config, &workspace);
    let plan = Plan {
        config,
        providers,
        workspace,
        approver,
        history,
        record: options.record.clone(),
        keep: Keep::of(options, &directory, &prompt),
        save: options
            .save
            .as_deref()
            .map(save::File::create)
            .transpose()?,
    };
    let result = task::carry_out(options, output, questions, async || {
        let session = connect::open(plan).await?;
        edits::write(&session.session, edits).await?;
        Ok(Ready {
            session,
            prompt,
            before,
        })
    });
    match overlay {
        Some(overlay) => overlay.end(result),
        None => result,
    }
}
