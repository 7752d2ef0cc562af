//! Runs that ask a provider, here the scripted model over loopback HTTP: retries,
//! budgets, and failures that are nobody's fault.

use hermitcrab::script::ScriptedModel;
use hermitcrab_host::serve_model::ServeModel;

use super::*;

const KEY: &str = "sk-canary-eval-51b7e2f09c4d83a6";

fn serve(steps: &Value) -> ServeModel {
    let script = steps.to_string();
    let model = ScriptedModel::from_json(&script)
        .expect("a script")
        .looping();
    ServeModel::start(model, 0).expect("a model")
}

fn asked(place: &Place, model: &ServeModel, arguments: &[&str]) -> Ran {
    let url = model.url();
    let all = [
        &[
            "suite",
            "--out",
            "out",
            "--provider",
            "anthropic",
            "--base-url",
            &url,
        ],
        arguments,
    ];
    let mut command = place.command(&all.concat());
    command.env("ANTHROPIC_API_KEY", KEY);
    ran(command)
}

fn plain(place: &Place, names: &[&str]) {
    for name in names {
        place.write(&format!("suite/{name}/task.toml"), "instruction = \"x\"\n");
        place.write(&format!("suite/{name}/check.sh"), "true\n");
    }
}

#[test]
fn a_provider_answers_and_its_key_is_nowhere() {
    let place = Place::new();
    plain(&place, &["a", "b"]);
    let model = serve(&json!({"steps": [{"text": "fine"}]}));
    let ran = asked(&place, &model, &["--trials", "3"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.rows("out").len(), 6);
    assert_eq!(model.requests().len(), 6);
    let found = Command::new("grep")
        .args(["-ra", KEY])
        .arg(place.path("out"))
        .output();
    assert!(found.expect("grep").stdout.is_empty());
}

#[test]
fn what_the_provider_fails_at_is_tried_again_and_never_a_failure() {
    let place = Place::new();
    plain(&place, &["a"]);
    let fails = json!({"error": {"status": 529, "headers": {"retry-after": "0"}}});
    // The session tries three times by itself.
    let model = serve(&json!({"steps": [fails, fails, fails, {"text": "fine"}]}));
    let ran = asked(&place, &model, &["--retry-delay-ms", "1"]);
    let rows = place.rows("out");
    assert_eq!(ends(&rows), [("a", "passed", None)], "{ran:?}");
    assert_eq!(rows[0]["attempts"], 2);
    assert!(ran.stderr.starts_with("retry a.1: "), "{ran:?}");

    let place = Place::new();
    plain(&place, &["a"]);
    let model = serve(&json!({"steps": [fails]}));
    let ran = asked(&place, &model, &["--retry-delay-ms", "1", "--retries", "1"]);
    let rows = place.rows("out");
    assert_eq!(rows[0]["outcome"], "infra_error");
    assert_eq!(rows[0]["passed"], Value::Null);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

#[test]
fn a_wrong_key_is_not_tried_again() {
    let place = Place::new();
    plain(&place, &["a"]);
    let model =
        serve(&json!({"steps": [{"error": {"status": 401, "type": "authentication_error"}}]}));
    let ran = asked(&place, &model, &["--retry-delay-ms", "1"]);
    let rows = place.rows("out");
    assert_eq!(
        (&rows[0]["outcome"], &rows[0]["attempts"]),
        (&json!("infra_error"), &json!(1)),
        "{ran:?}"
    );
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn a_budget_ends_the_run_and_a_larger_one_goes_on() {
    let place = Place::new();
    plain(&place, &["a", "b", "c", "d"]);
    let model = serve(&json!({"steps": [{"text": "fine"}]}));
    let ran = asked(&place, &model, &["--jobs", "1", "--budget-tokens", "240"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "hermitcrab: the run's budget of 240 tokens is used up: go on with --resume and a larger one\n"
    );
    assert_eq!((place.rows("out").len(), model.requests().len()), (2, 2));
    let ran = asked(&place, &model, &["--jobs", "1", "--resume"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((place.rows("out").len(), model.requests().len()), (4, 4));
}
