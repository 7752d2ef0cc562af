//! `hermitcrab serve-model`.

use std::io::{self, Write};

use hermitcrab::script::{Script, ScriptedModel};
use hermitcrab_host::serve_model::ServeModel;

use crate::cli::ServeOptions;
use crate::failure::{Code, Failure, reason};
use crate::prompt;

/// Serves the script until the process ends.
pub(crate) fn serve(options: &ServeOptions) -> Result<Code, Failure> {
    let json = prompt::read_file(&options.script, "the script")?;
    let script = Script::parse(&json).map_err(|error| {
        Failure::usage(format!(
            "{} is not a script: {error}",
            options.script.display()
        ))
    })?;
    let mut model = ScriptedModel::new(script).keep_requests(options.keep);
    if options.looping {
        model = model.looping();
    }
    let server = ServeModel::start(model, options.port).map_err(|error| {
        Failure::usage(format!(
            "cannot listen on 127.0.0.1:{}: {}; choose another --port, or 0 for a free one",
            options.port,
            reason(&error)
        ))
    })?;
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on {}", server.url())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::failed(format!("cannot write to stdout: {}", reason(&error))))?;
    server.wait();
    Ok(Code::DONE)
}
