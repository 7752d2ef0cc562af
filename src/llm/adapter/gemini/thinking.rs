//! Reasoning effort as `thinkingConfig`: a level from Gemini 3 on, a budget
//! before (LLM-client brief §7.3).

use serde_json::{Value, json};

use crate::llm::adapter::effort::{changed, dropped, nearest};
use crate::llm::model::ModelInfo;
use crate::llm::warning::Warning;

/// Levels that every model with levels is known to take.
const COMMON_LEVELS: [&str; 3] = ["low", "medium", "high"];
/// A budget that the model measures out itself.
const AUTOMATIC: i64 = -1;

/// The `thinkingConfig` for `effort`; `None` when there is nothing to say.
pub(super) fn config(
    effort: Option<&str>,
    model: &str,
    info: Option<&ModelInfo>,
    is_old: bool,
    warnings: &mut Vec<Warning>,
) -> Option<Value> {
    if info.is_some_and(|info| !info.supports_reasoning) {
        if effort.is_some_and(|effort| effort != "none") {
            warnings.push(dropped(model));
        }
        return None;
    }
    let Some(effort) = effort else {
        // Without it the text of the reasoning stays hidden.
        return info
            .filter(|info| info.thinks_by_default)
            .map(|_| json!({"includeThoughts": true}));
    };
    if is_old {
        return Some(budget(effort, model, info, warnings));
    }
    let accepted = match info {
        Some(info) if !info.effort_levels.is_empty() => info.levels(),
        _ => COMMON_LEVELS.to_vec(),
    };
    let asked = match effort {
        "none" => "minimal",
        "max" => "xhigh",
        effort => effort,
    };
    let given = nearest(asked, &accepted).unwrap_or(asked);
    if given != effort {
        warnings.push(changed(model, effort, given));
    }
    Some(json!({"thinkingLevel": given.to_ascii_uppercase(), "includeThoughts": true}))
}

fn budget(
    effort: &str,
    model: &str,
    info: Option<&ModelInfo>,
    warnings: &mut Vec<Warning>,
) -> Value {
    let can_be_off =
        info.is_none_or(|info| info.thinking_types.iter().any(|kind| kind == "disabled"));
    let tokens = match effort {
        "none" if can_be_off => return json!({"thinkingBudget": 0}),
        "none" => {
            warnings.push(changed(model, effort, "low"));
            1_024
        }
        "minimal" | "low" => 1_024,
        "medium" => 8_192,
        "high" | "xhigh" | "max" => 24_576,
        _ => AUTOMATIC,
    };
    json!({"thinkingBudget": tokens, "includeThoughts": true})
}
