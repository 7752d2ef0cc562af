//! Reasoning effort as this API's `thinking` and `output_config` (LLM-client
//! brief §7.3 and §9.1).

use serde_json::{Value, json};

use crate::llm::adapter::effort::{changed, nearest};
use crate::llm::model::{ModelInfo, ThinkingControl};
use crate::llm::request::Warning;

/// Smallest budget that the API accepts.
const MIN_BUDGET: u64 = 1_024;
/// Room for the answer beside the budget.
const ANSWER_TOKENS: u64 = 8_192;

/// What goes into the body.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) thinking: Option<Value>,
    pub(super) effort: Option<String>,
    pub(super) max_tokens: u64,
}

/// What is asked for.
pub(super) struct Wish<'a> {
    pub(super) effort: Option<&'a str>,
    pub(super) max_tokens: Option<u64>,
    pub(super) forced_call: bool,
    pub(super) model: &'a str,
    pub(super) info: Option<&'static ModelInfo>,
}

/// Tokens to ask for when nothing is known: unknown models are mostly newer
/// than the catalogue, and a coding agent writes whole files.
const DEFAULT_MAX_TOKENS: u64 = 16_384;

pub(super) fn plan(wish: &Wish<'_>, warnings: &mut Vec<Warning>) -> Plan {
    let default = wish
        .info
        .and_then(|info| info.default_max_tokens)
        .unwrap_or(DEFAULT_MAX_TOKENS);
    let mut plan = Plan {
        max_tokens: wish.max_tokens.unwrap_or(default).max(1),
        ..Plan::default()
    };
    match wish.effort {
        None => plan.thinking = by_default(wish.info),
        Some("none") => plan.thinking = off(wish, warnings),
        Some(effort) => match wish.info.and_then(|info| info.thinking_control) {
            Some(ThinkingControl::Budget) => by_budget(wish, effort, &mut plan, warnings),
            Some(ThinkingControl::Level) | None => by_level(wish, effort, &mut plan, warnings),
        },
    }
    plan
}

fn by_default(info: Option<&ModelInfo>) -> Option<Value> {
    info.filter(|info| info.thinks_by_default)
        .map(|info| adaptive(Some(info)))
}

/// Models that no longer take a budget hide the text of their reasoning unless
/// asked for a summary; older ones may not know that field.
fn adaptive(info: Option<&ModelInfo>) -> Value {
    let takes_budget = |info: &ModelInfo| info.thinking_types.iter().any(|kind| kind == "enabled");
    match info {
        Some(info) if !takes_budget(info) => json!({"type": "adaptive", "display": "summarized"}),
        _ => json!({"type": "adaptive"}),
    }
}

fn off(wish: &Wish<'_>, warnings: &mut Vec<Warning>) -> Option<Value> {
    let info = wish.info?;
    let accepts = |kind: &str| info.thinking_types.iter().any(|accepted| accepted == kind);
    if accepts("disabled") {
        return Some(json!({"type": "disabled"}));
    }
    if accepts("between_tools") {
        return Some(json!({"type": "between_tools"}));
    }
    if info.supports_reasoning {
        warnings.push(Warning::new(
            "effort_changed",
            format!(
                "the model `{}` always reasons; effort `none` is left out",
                wish.model
            ),
        ));
    }
    by_default(Some(info))
}

fn by_level(wish: &Wish<'_>, effort: &str, plan: &mut Plan, warnings: &mut Vec<Warning>) {
    let asked = if effort == "minimal" { "low" } else { effort };
    plan.thinking = Some(adaptive(wish.info));
    let given = match wish.info {
        Some(info) => nearest(asked, &info.levels()),
        None => Some(asked),
    };
    if let Some(given) = given.filter(|given| *given != asked) {
        warnings.push(changed(wish.model, asked, given));
    }
    plan.effort = given.map(str::to_owned);
}

fn by_budget(wish: &Wish<'_>, effort: &str, plan: &mut Plan, warnings: &mut Vec<Warning>) {
    if let Some(info) = wish.info.filter(|info| !info.effort_levels.is_empty()) {
        let asked = if effort == "minimal" { "low" } else { effort };
        plan.effort = nearest(asked, &info.levels()).map(str::to_owned);
    }
    if wish.forced_call {
        warnings.push(Warning::new(
            "thinking_dropped",
            format!(
                "the model `{}` cannot reason when a tool call is forced",
                wish.model
            ),
        ));
        return;
    }
    let mut budget = match effort {
        "minimal" | "low" => MIN_BUDGET,
        "high" => 24_576,
        "xhigh" | "max" => 31_999,
        _ => 8_192,
    };
    if wish.max_tokens.is_none() {
        let most = wish
            .info
            .and_then(|info| info.max_output)
            .unwrap_or(u64::MAX);
        plan.max_tokens = plan.max_tokens.max(budget + ANSWER_TOKENS).min(most);
    }
    // The budget is part of max_tokens and must be smaller.
    budget = budget.min(
        plan.max_tokens
            .saturating_sub(ANSWER_TOKENS)
            .max(MIN_BUDGET),
    );
    if budget >= plan.max_tokens {
        warnings.push(Warning::new(
            "thinking_dropped",
            format!(
                "max_tokens {} leaves no room for reasoning",
                plan.max_tokens
            ),
        ));
        return;
    }
    plan.thinking = Some(json!({"type": "enabled", "budget_tokens": budget}));
}
