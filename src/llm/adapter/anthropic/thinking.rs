//! Reasoning effort as this API's `thinking` and `output_config` (LLM-client
//! brief §7.3 and §9.1).

use serde_json::{Value, json};

use crate::llm::adapter::effort::{changed, dropped, nearest};
use crate::llm::model::{ModelInfo, ThinkingControl, model_info};
use crate::llm::warning::Warning;

/// Smallest budget that the API accepts.
const MIN_BUDGET: u64 = 1_024;
/// Room for the answer beside the budget.
const ANSWER_TOKENS: u64 = 8_192;

/// Output tokens that every model with budgets allows.
const OLD_MAX_OUTPUT: u64 = 32_000;

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
        Some(effort) => match control(wish.model, wish.info) {
            Control::Budget => by_budget(wish, effort, &mut plan, warnings),
            Control::Level => by_level(wish, effort, &mut plan, warnings),
            Control::None => warnings.push(dropped(wish.model)),
        },
    }
    plan
}

/// Whether reasoning of `model` is bound to what stands before it (LLM-client brief
/// §9.3). That of models that take a budget is not, and they refuse a last round of
/// calls without it.
pub(super) fn is_bound(model: &str) -> bool {
    let info = model_info(model);
    !matches!(control(model, info), Control::Budget)
}

/// How the model's reasoning is measured out.
enum Control {
    Budget,
    Level,
    None,
}

/// What the catalogue says. A model that it does not know goes by the number
/// in its name: reasoning came with 3.7, and up to 4.5 it takes a budget only.
fn control(model: &str, info: Option<&ModelInfo>) -> Control {
    match info {
        Some(info) => match info.thinking_control {
            Some(ThinkingControl::Budget) => Control::Budget,
            Some(ThinkingControl::Level) | None => Control::Level,
        },
        None => match generation(model) {
            Some(number) if number < (3, 7) => Control::None,
            Some(number) if number <= (4, 5) => Control::Budget,
            _ => Control::Level,
        },
    }
}

/// The number in a name: `claude-opus-4-1-20250805` and `claude-opus-4.1` are
/// 4.1, `claude-3-7-sonnet-latest` is 3.7, also behind the name of a vendor
/// (`us.anthropic.claude-sonnet-4-20250514-v1:0` is 4.0).
fn generation(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.rsplit_once("claude-")?;
    let number = |part: &str| part.parse().ok().filter(|number| *number < 100);
    let mut parts = name.split(['-', '.', '@', ':']);
    let major = parts.find_map(number)?;
    let minor = parts.next().and_then(number);
    Some((major, minor.unwrap_or(0)))
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
            .map_or(Some(OLD_MAX_OUTPUT), |info| info.max_output);
        let most = most.unwrap_or(u64::MAX);
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

#[cfg(test)]
mod tests {
    use super::{generation, is_bound};

    #[test]
    fn models_that_bind_their_reasoning() {
        for (model, expected) in [
            ("claude-sonnet-5-5", true),
            ("claude-opus-9", true),
            ("my-model", true),
            ("claude-opus-4-1-20250805", false),
            ("claude-3-7-sonnet-latest", false),
        ] {
            assert_eq!(is_bound(model), expected, "{model}");
        }
    }

    #[test]
    fn the_number_in_a_name() {
        for (name, expected) in [
            ("claude-opus-4-1-20250805", Some((4, 1))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-opus-4.1", Some((4, 1))),
            ("claude-3-7-sonnet-latest", Some((3, 7))),
            ("claude-3-5-haiku@20241022", Some((3, 5))),
            ("claude-2.1", Some((2, 1))),
            ("us.anthropic.claude-sonnet-4-20250514-v1:0", Some((4, 0))),
            ("anthropic/claude-opus-6", Some((6, 0))),
            ("claude-instant", None),
            ("my-model-4-5", None),
            ("", None),
        ] {
            assert_eq!(generation(name), expected, "{name}");
        }
    }
}
