//! Every session case of `tests/cases` on every face of this machine; the
//! format, and how to add one, is in `tests/cases/README.md`.

mod support;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde_json::Value;
use support::case::{self, Case, Need};
use support::face::Face;
use support::harness::{self, Trial};
use support::hosted::{CoreKind, Hosted, World};
use support::{direct, golden, play};

fn main() -> ExitCode {
    let faces: [(&str, Need, Arc<dyn Face>); 4] = [
        ("core", Need::Local, Arc::new(direct::Direct)),
        (
            "native",
            Need::Local,
            Arc::new(Hosted::new(CoreKind::Native, World::Local)),
        ),
        (
            "component",
            Need::Local,
            Arc::new(Hosted::new(CoreKind::Component, World::Local)),
        ),
        (
            "sandbox",
            Need::Sandbox,
            Arc::new(Hosted::new(CoreKind::Component, World::Memory)),
        ),
    ];
    let mut trials = Vec::new();
    for name in case::names() {
        let case = match Case::load(&name) {
            Ok(case) => case,
            Err(why) => {
                trials.push(Trial::new(name, move || Err(why.clone())));
                continue;
            }
        };
        let fitting = faces.iter().filter(|(face, has, _)| {
            let met = |need: &Need| match need {
                Need::Redirects => true,
                Need::Host => *face != "core",
                Need::Local | Need::Sandbox => need == has,
            };
            case.needs.iter().all(met)
        });
        for (index, (face_name, _, face)) in fitting.enumerate() {
            let (case, name, face) = (case.clone(), name.clone(), face.clone());
            // The first face that can play it says what is expected.
            let rewrite = index == 0 && golden::rewriting();
            trials.push(Trial::new(format!("{face_name}::{name}"), move || {
                check(&name, &case, face.as_ref(), rewrite)
            }));
        }
    }
    harness::main(trials)
}

fn check(name: &str, case: &Case, face: &dyn Face, rewrite: bool) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let played = runtime.block_on(play::play(case, face))?;
    let wrong = [
        schema(&played.events),
        golden::compare(name, &played.transcript, rewrite),
        play::compare(case, &played),
    ];
    let wrong: Vec<String> = wrong.into_iter().filter_map(Result::err).collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

/// Every event keeps to the published schema.
fn schema(events: &[Value]) -> Result<(), String> {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    let validator = VALIDATOR.get_or_init(|| {
        let text = include_str!("../../docs/events.schema.json");
        let schema = serde_json::from_str(text).expect("docs/events.schema.json is JSON");
        jsonschema::validator_for(&schema).expect("docs/events.schema.json is a schema")
    });
    for event in events {
        if let Err(error) = validator.validate(event) {
            return Err(format!(
                "not an event of docs/events.schema.json: {error}: {event}"
            ));
        }
    }
    Ok(())
}
