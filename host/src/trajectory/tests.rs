//! Trajectories as turns.

use serde_json::json;

use super::*;

/// The turns of a trajectory of `agent` up to `round`, in short.
fn check(agent: &str, round: u32, steps: &Value, expected: &[&str]) {
    let whole = json!({"agent": {"name": agent}, "steps": steps});
    let history = history(whole.to_string().as_bytes(), round).expect("a history");
    let short = |turn: &Turn| match turn {
        Turn::User { content, .. } => format!("user {}", content.text()),
        Turn::Steering { content, .. } => format!("steering {}", content.text()),
        Turn::System { content, .. } => format!("system {content}"),
        Turn::Compaction { summary, .. } => format!("summary {summary}"),
        Turn::Assistant {
            content,
            tool_calls,
            ..
        } => {
            let call = |call: &ToolCall| {
                let kind = if call.custom { "custom" } else { "call" };
                format!(" {kind} {} {}", call.id, call.arguments)
            };
            let calls: String = tool_calls.iter().map(call).collect();
            format!("agent {content}{calls}")
        }
        Turn::ToolResults { results, .. } => {
            let result = |result: &ToolResult| {
                let mark = if result.is_error { "!" } else { "=" };
                format!("{}{mark}{}", result.tool_call_id, result.content)
            };
            let all: Vec<String> = results.iter().map(result).collect();
            format!("results {}", all.join(" "))
        }
    };
    let turns: Vec<String> = history.record.turns.iter().map(short).collect();
    assert_eq!(turns, expected, "round {round}");
}

#[test]
fn ours_writes_freeform_calls_and_cut_off_ones_its_own_way() {
    let steps = json!([
        {"source": "user", "message": "a"},
        {"source": "agent", "message": "b", "tool_calls": [
            {"tool_call_id": "1", "function_name": "apply_patch", "arguments": {"raw": "*** Begin"}},
            {"tool_call_id": "2", "function_name": "shell", "arguments": {"command": "x"}},
        ], "observation": {"results": [
            {"source_call_id": "1", "content": "no", "extra": {"is_error": true}},
            {"source_call_id": "2", "content": "", "extra": {"unfinished": true}},
        ]}},
        {"source": "system", "message": "Loop detected"},
        {"source": "agent", "message": "c"},
    ]);
    let call = r#"call 2 {"command":"x"}"#;
    let of_ours = format!("agent b custom 1 *** Begin {call}");
    let results = "results 1!no";
    let expected = ["user a", &of_ours, results, "steering Loop detected"];
    check("hermitcrab", 1, &steps, &expected);
    let of_others = format!(r#"agent b call 1 {{"raw":"*** Begin"}} {call}"#);
    let expected = ["user a", &of_others, results, "system Loop detected"];
    check("other", 1, &steps, &expected);
    check("other", 0, &steps, &["user a"]);
}

#[test]
fn what_follows_a_done_input_is_the_next_one() {
    let steps = json!([
        {"source": "user", "message": "a"},
        {"source": "agent", "message": "b"},
        {"source": "system", "message": "c"},
        {"source": "user", "message": "d"},
        {"source": "agent", "message": [{"type": "text", "text": "e"}]},
    ]);
    check("other", 1, &steps, &["user a", "agent b"]);
    let all = ["user a", "agent b", "system c", "user d", "agent e"];
    check("other", 2, &steps, &all);
}

#[test]
fn results_and_their_calls() {
    let step = |ids: &[&str], results: Value| {
        let call = |id: &&str| json!({"tool_call_id": id, "function_name": "f"});
        let calls: Vec<Value> = ids.iter().map(call).collect();
        json!([{"source": "agent", "message": "", "tool_calls": calls,
            "observation": {"results": results}}])
    };
    let named = |id: &str, text: &str| json!({"source_call_id": id, "content": text});
    let unnamed = |text: &str| json!({ "content": text });
    let steps = step(
        &["a", "b"],
        json!([unnamed("1"), named("a", "2"), unnamed("3")]),
    );
    let calls = "agent  call a {} call b {}";
    check("other", 1, &steps, &[calls, "results a=2 b=1\n3"]);
    let steps = step(
        &["", ""],
        json!([named("", "1"), named("", "2"), named("", "3")]),
    );
    let calls = "agent  call call {} call call_2 {}";
    check("other", 1, &steps, &[calls, "results call=1 call_2=2\n3"]);
}
