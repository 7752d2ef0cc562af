//! The line at the bottom: what goes on, how far, and what it has cost.

use std::time::Instant;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::wrap::cut;
use crate::harmless::harmless;
use crate::render::duration;

/// What a session is at.
#[derive(Default)]
pub(super) struct Status {
    state: &'static str,
    since: Option<Instant>,
    round: u64,
    /// Tokens of the last request.
    used: u64,
    /// Tokens that fit the model; 0: not known.
    pub(super) window: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    output_tokens: u64,
    /// In US dollars, as far as prices are known.
    cost: Option<f64>,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) last_error: Option<String>,
    /// What a key would do now.
    pub(super) hint: &'static str,
}

impl Status {
    /// An input is being sent.
    pub(super) fn begin(&mut self) {
        self.state = "thinking";
        self.since = Some(Instant::now());
        self.round = 0;
        self.hint = "";
    }

    pub(super) fn is_working(&self) -> bool {
        self.since.is_some()
    }

    pub(super) fn event(&mut self, event: &Value) {
        let data = &event["data"];
        let own = event["agent_id"].is_null();
        let number = |name: &str| data[name].as_u64().unwrap_or(0);
        let text = |name: &str| harmless(data[name].as_str().unwrap_or_default());
        match event["kind"].as_str().unwrap_or_default() {
            "SESSION_START" if own => {
                self.provider = text("provider");
                self.model = text("model");
            }
            "USER_INPUT" | "COMPACTION_START" if own => {
                let since = self.since;
                self.begin();
                self.since = since.or(self.since);
                if event["kind"] == "COMPACTION_START" {
                    self.state = "summarising";
                }
            }
            "ASSISTANT_TEXT_START" if own => {
                self.state = "answering";
                self.round += 1;
            }
            "TOOL_CALL_START" => self.state = "working",
            "TOOL_CALL_END" if own => self.state = "thinking",
            "RETRY" if own => self.state = "waiting",
            "USAGE" => {
                if own {
                    self.used = number("prompt_tokens") + number("output_tokens");
                }
                self.prompt_tokens += number("prompt_tokens");
                self.cached_tokens += number("cache_read_tokens");
                self.output_tokens += number("output_tokens");
                if let Some(cost) = data["cost_usd"].as_f64() {
                    *self.cost.get_or_insert(0.0) += cost;
                }
            }
            "COMPACTION_END" if own => {
                self.used = number("after_tokens");
                if self.state == "summarising" {
                    self.state = "thinking";
                }
            }
            "STATE_CHANGED" if own => match data["to"].as_str() {
                Some("PROCESSING") if self.since.is_none() => self.begin(),
                Some("IDLE" | "AWAITING_INPUT" | "CLOSED") => self.idle(),
                _ => {}
            },
            "ERROR" if own => self.last_error = Some(text("message")),
            "PROCESSING_END" | "SESSION_END" if own => self.idle(),
            _ => {}
        }
    }

    /// Nothing is done.
    pub(super) fn idle(&mut self) {
        self.state = "";
        self.since = None;
        self.hint = "";
    }

    fn price(&self) -> Option<String> {
        self.cost.map(|cost| format!("${cost:.4}"))
    }

    /// What `/cost` shows.
    pub(super) fn cost(&self) -> String {
        let price = self
            .price()
            .unwrap_or_else(|| "the price is not known".to_owned());
        format!(
            "{} tokens in ({} from the cache), {} out, {price}",
            self.prompt_tokens, self.cached_tokens, self.output_tokens
        )
    }

    /// In one row; what does not fit is left out, the last first.
    pub(super) fn line(&self, is_asking: bool, columns: usize) -> Line<'static> {
        let dim = Style::new().add_modifier(Modifier::DIM);
        let (state, style) = match self.state {
            _ if is_asking => ("asking", Style::new().fg(Color::Yellow)),
            "" => ("ready", dim),
            state => (state, Style::new().fg(Color::Cyan)),
        };
        let mut parts = Vec::new();
        if !self.hint.is_empty() {
            parts.push(self.hint.to_owned());
        }
        if let Some(since) = self.since {
            let seconds = since.elapsed().as_secs();
            parts.push(elapsed(seconds));
            if self.round > 0 {
                parts.push(format!("round {}", self.round));
            }
        }
        if self.window > 0 && self.used > 0 {
            parts.push(format!(
                "context {} %",
                (self.used * 100).div_ceil(self.window)
            ));
        }
        if self.prompt_tokens > 0 {
            let (read, written) = (short(self.prompt_tokens), short(self.output_tokens));
            parts.push(format!("{read} in {written} out"));
        }
        parts.extend(self.price());
        parts.push(self.model.clone());
        let mut rest = String::new();
        let room = columns.saturating_sub(state.width());
        for part in parts.iter().filter(|part| !part.is_empty()) {
            if rest.width() + part.width() + 3 > room {
                break;
            }
            rest.push_str(" · ");
            rest.push_str(part);
        }
        Line::from(vec![
            Span::styled(cut(state, columns), style),
            Span::styled(rest, dim),
        ])
    }
}

/// Whole seconds, as people say them.
pub(super) fn elapsed(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => duration(seconds * 1000),
    }
}

/// `1234` as `1.2k`.
fn short(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..100_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        100_000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_leaves_out_what_does_not_fit() {
        let mut status = Status {
            window: 200_000,
            ..Status::default()
        };
        status.event(&json!({"kind": "SESSION_START", "data": {"provider": "p", "model": "m-1"}}));
        status.event(&json!({"kind": "USAGE", "data": {
            "prompt_tokens": 45_230, "output_tokens": 800, "cost_usd": 0.1234,
        }}));
        let check = |columns, expected: &str| {
            assert_eq!(status.line(false, columns).to_string(), expected);
        };
        check(
            80,
            "ready · context 24 % · 45.2k in 800 out · $0.1234 · m-1",
        );
        check(40, "ready · context 24 % · 45.2k in 800 out");
        check(10, "ready");
        check(3, "re…");
    }
}
