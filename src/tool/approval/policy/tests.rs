//! What the policy says about the calls in `cases.json`, `safe.json` and
//! `calls.json`.

use serde::Deserialize;
use serde_json::Value;

use super::*;

fn policy(settings: &Value) -> Result<ApprovalPolicy, String> {
    let settings: ApprovalSettings =
        serde_json::from_value(settings.clone()).map_err(|error| error.to_string())?;
    ApprovalPolicy::new(&settings)
}

fn line(text: &str, working_dir: Option<&str>) -> CommandLine {
    CommandLine {
        text: text.to_owned(),
        working_dir: working_dir.map(str::to_owned),
    }
}

fn judge(policy: &ApprovalPolicy, command: &str) -> Verdict {
    policy.judge(&Proposal {
        tool_name: "shell",
        kind: "shell",
        writes: &[],
        command: Some(&line(command, None)),
        working_directory: "/work",
        links: &BTreeMap::new(),
    })
}

/// Commands under one set of rules: what is allowed, and why the rest asks.
#[cfg(feature = "analysis")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    about: String,
    approval: Value,
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    ask: Vec<(String, String)>,
}

#[cfg(feature = "analysis")]
fn check_groups(json: &str) {
    let groups: Vec<Group> = serde_json::from_str(json).expect("groups");
    let mut wrong = Vec::new();
    for group in groups {
        let policy = policy(&group.approval).expect("valid settings");
        let allowed = group.allow.iter().map(|command| (command, Verdict::Allow));
        let asked = group.ask.iter();
        let asked = asked.map(|(command, reason)| (command, Verdict::Ask(reason.clone())));
        for (command, expected) in allowed.chain(asked) {
            let verdict = judge(&policy, command);
            if verdict != expected {
                wrong.push(format!(
                    "{}: {command:?}\n  {verdict:?}\n  {expected:?}",
                    group.about
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[cfg(feature = "analysis")]
#[test]
fn commands() {
    check_groups(include_str!("cases.json"));
}

/// None of them is among the programs that ask by their name.
#[cfg(feature = "analysis")]
#[test]
fn safe_commands_are_allowed() {
    let policy = policy(&serde_json::json!({"commands": ["@safe"]})).expect("valid");
    let verdicts = safe_commands().iter().map(|entry| {
        // Only the exact text would be allowed without being read.
        let command = format!("{entry} # {entry}");
        (entry, judge(&policy, &command))
    });
    let wrong: Vec<_> = verdicts
        .filter(|(_, verdict)| *verdict != Verdict::Allow)
        .collect();
    assert_eq!(wrong, []);
}

/// A call under one set of rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    about: String,
    approval: Value,
    tool: String,
    kind: Option<String>,
    #[serde(default)]
    writes: Vec<String>,
    command: Option<String>,
    command_directory: Option<String>,
    directory: Option<String>,
    /// Where paths lead.
    #[serde(default)]
    links: BTreeMap<String, String>,
    /// `allow`, `ask: …` or `deny: …`.
    expect: String,
}

#[test]
fn calls() {
    let calls: Vec<Call> = serde_json::from_str(include_str!("calls.json")).expect("calls");
    let mut wrong = Vec::new();
    for call in calls {
        let command = call.command.as_deref();
        let command = command.map(|text| line(text, call.command_directory.as_deref()));
        let verdict = policy(&call.approval)
            .expect("valid settings")
            .judge(&Proposal {
                tool_name: &call.tool,
                kind: call.kind.as_deref().unwrap_or(&call.tool),
                writes: &call.writes,
                command: command.as_ref(),
                working_directory: call.directory.as_deref().unwrap_or("/work"),
                links: &call.links,
            });
        let verdict = match verdict {
            Verdict::Allow => "allow".to_owned(),
            Verdict::Ask(reason) => format!("ask: {reason}"),
            Verdict::Deny(reason) => format!("deny: {reason}"),
        };
        if verdict != call.expect {
            wrong.push(format!("{}\n  {verdict}\n  {}", call.about, call.expect));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check_refused(settings: Value, message: &str) {
    assert_eq!(policy(&settings).err().as_deref(), Some(message));
}

#[test]
fn settings_that_are_not_valid() {
    use serde_json::json;
    check_refused(
        json!({"write_paths": ["src/["]}),
        "`write_paths` has \"src/[\": unclosed character class; missing ']'",
    );
    check_refused(
        json!({"write_paths": ["../x"]}),
        "`write_paths` has \"../x\": `..` is not possible, use an absolute path",
    );
    check_refused(
        json!({"commands": ["git 'commit"]}),
        "`commands` has \"git 'commit\": a quote is not closed",
    );
    check_refused(
        json!({"commands": [" "]}),
        "`commands` has \" \": it names no command",
    );
    check_refused(
        json!({"tools": {"shell": "maybe"}}),
        "unknown variant `maybe`, expected one of `allow`, `ask`, `deny`",
    );
    check_refused(
        json!({"paths": []}),
        "unknown field `paths`, expected one of `tools`, `write_paths`, `commands`",
    );
}

#[cfg(not(feature = "analysis"))]
#[test]
fn without_the_parser_only_whole_commands_are_recognised() {
    let policy = policy(&serde_json::json!({"commands": ["ls", "cargo test"]})).expect("valid");
    assert_eq!(judge(&policy, " cargo test\n"), Verdict::Allow);
    let asks = Verdict::Ask("this build cannot read commands".to_owned());
    assert_eq!(judge(&policy, "ls -l"), asks);
}

#[test]
fn in_doubt_every_call_asks() {
    let verdict = judge(&ApprovalPolicy::ask_always(), "ls");
    assert_eq!(
        verdict,
        Verdict::Ask("every call needs approval".to_owned())
    );
}

/// No text makes it panic, and none that asks becomes allowed by more of it.
#[cfg(feature = "analysis")]
#[test]
fn any_text_has_a_verdict() {
    let policy = policy(&serde_json::json!({"commands": ["@safe"]})).expect("valid");
    let pieces = [
        "ls", " ", "$(", ")", "'", "\"", "`", "${", "}", "((", "))", "[[", "]]", "\\", "\n", "<<E",
        "|", ">", "é", "sed", "s/a", "awk", "if", "then", "fi", "{", ",", "case", "in", ";;",
        "esac", "x=", "[",
    ];
    let mut seed = 1u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
        }
        judge(&policy, &text);
    }
}

#[cfg(feature = "analysis")]
fn check_paths(approval: Value, writes: &[&str], command: Option<&str>, expected: &[&str]) {
    let writes: Vec<String> = writes.iter().map(|path| (*path).to_owned()).collect();
    let paths = policy(&approval).expect("valid settings").paths(&Proposal {
        tool_name: "any",
        kind: "any",
        writes: &writes,
        command: command.map(|text| line(text, None)).as_ref(),
        working_directory: "/work/",
        links: &BTreeMap::new(),
    });
    let paths: Vec<_> = paths.iter().map(String::as_str).collect();
    assert_eq!(paths, expected);
}

#[cfg(feature = "analysis")]
#[test]
fn paths_that_matter() {
    use serde_json::json;
    let within = || json!({"write_paths": ["src/**", "/tmp/a*/x"], "commands": ["@safe"]});
    check_paths(json!({}), &["a"], None, &[]);
    check_paths(within(), &[], Some("ls -l"), &[]);
    check_paths(within(), &[], Some("ls > /dev/null"), &[]);
    check_paths(
        within(),
        &["src/../b"],
        None,
        &["/tmp", "/work", "/work/b", "src/../b"],
    );
    check_paths(
        within(),
        &[],
        Some("ls > src/b"),
        &["/tmp", "/work", "/work/src/b", "src/b"],
    );
}
