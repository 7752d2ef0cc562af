//! Where a history is cut: rounds are whole, so a call and its result stay together,
//! and what the model has not answered yet stays.

use crate::session::turn::Turn;

/// Characters of an input up to which it stays word for word when its round goes: some
/// 4,000 tokens. What a longer one asks for is in the summary.
const CARRIED_CHARS: u64 = 16_000;

/// How many of the last turns stay, where at most `rounds` rounds may, which take at
/// most `tokens` tokens. None: what would go holds no answer that is not in a summary
/// already, so there is nothing to gain.
pub(in crate::session) fn kept(turns: &[Turn], rounds: u32, tokens: u64) -> Option<usize> {
    let is_compaction = |turn: &Turn| matches!(turn, Turn::Compaction { .. });
    let floor = turns.iter().rposition(is_compaction).map_or(0, |at| at + 1);
    // What follows the last answer and its results waits for the model.
    let unanswered = turns[floor..].iter().rev();
    let unanswered = unanswered.take_while(|turn| is_prompt(turn));
    let mut start = turns.len() - unanswered.count();
    let mut chars: u64 = turns[start..].iter().map(chars_of).sum();
    let mut taken = 0;
    let mut at = start;
    while taken < rounds && at > floor {
        // The answer of the round before, with what it answers.
        let end = at;
        while at > floor && !matches!(turns[at - 1], Turn::Assistant { .. }) {
            at -= 1;
        }
        if at == floor {
            break;
        }
        at -= 1;
        while at > floor && is_prompt(&turns[at - 1]) {
            at -= 1;
        }
        chars = chars.saturating_add(turns[at..end].iter().map(chars_of).sum());
        if chars / 4 > tokens {
            break;
        }
        start = at;
        taken += 1;
    }
    let goes = &turns[floor..start];
    let is_answer = |turn: &Turn| matches!(turn, Turn::Assistant { .. });
    goes.iter().any(is_answer).then(|| turns.len() - start)
}

/// The turn with which what stayed begins, of a compaction at `at` that kept `kept`
/// turns: never the results of calls that went.
pub(in crate::session) fn start(turns: &[Turn], at: usize, kept: usize) -> usize {
    let mut start = at.saturating_sub(kept);
    while start > 0 && start < at && matches!(turns[start], Turn::ToolResults { .. }) {
        start -= 1;
    }
    start
}

/// What of the turns that go stays word for word: instructions, and the input that the
/// work is about.
pub(in crate::session) fn carried(turns: &[Turn]) -> impl Iterator<Item = &Turn> {
    let is_input = |turn: &Turn| matches!(turn, Turn::User { .. });
    let input = turns.iter().rposition(is_input);
    let input = input.filter(|at| chars_of(&turns[*at]) <= CARRIED_CHARS);
    turns.iter().enumerate().filter_map(move |(at, turn)| {
        let stays = matches!(turn, Turn::System { .. }) || Some(at) == input;
        stays.then_some(turn)
    })
}

fn is_prompt(turn: &Turn) -> bool {
    matches!(
        turn,
        Turn::User { .. } | Turn::Steering { .. } | Turn::System { .. }
    )
}

fn chars_of(turn: &Turn) -> u64 {
    turn.to_message().approx_chars()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Turns by their letters: u user, s steering, y system, a answer, c answer with a
    /// call, r its result of 400 characters, X compaction.
    fn turns(letters: &str) -> Vec<Turn> {
        let turn = |letter| -> Value {
            match letter {
                'u' => json!({"turn": "user", "content": "u", "timestamp_ms": 1}),
                's' => json!({"turn": "steering", "content": "s", "timestamp_ms": 1}),
                'y' => json!({"turn": "system", "content": "y", "timestamp_ms": 1}),
                'X' => json!({"turn": "compaction", "summary": "x", "kept": 0, "timestamp_ms": 1}),
                'r' => json!({"turn": "tool_results", "timestamp_ms": 1, "results": [
                    {"tool_call_id": "1", "tool_name": "t", "content": "x".repeat(400),
                     "is_error": false}]}),
                letter => {
                    let call = json!({"id": "1", "name": "t", "arguments": "{}"});
                    let calls: &[Value] = if letter == 'c' { &[call] } else { &[] };
                    json!({"turn": "assistant", "content": "a", "tool_calls": calls,
                           "reasoning": null, "usage": {}, "response_id": null,
                           "timestamp_ms": 1})
                }
            }
        };
        letters
            .chars()
            .map(|letter| serde_json::from_value(turn(letter)).expect("a turn"))
            .collect()
    }

    #[track_caller]
    fn check(letters: &str, rounds: u32, tokens: u64, expected: Option<&str>) {
        let turns = turns(letters);
        let kept = kept(&turns, rounds, tokens);
        let shown = kept.map(|kept| &letters[letters.len() - kept..]);
        assert_eq!(shown, expected, "{letters}");
    }

    #[test]
    fn whole_rounds_stay() {
        check("ucrcrcrcr", 3, u64::MAX, Some("crcrcr"));
        check("ucrcrcrcrs", 2, u64::MAX, Some("crcrs"));
        check("ucrcrsycr", 1, u64::MAX, Some("sycr"));
        check("ucrauca", 2, u64::MAX, Some("uca"));
        check("uaua", 1, u64::MAX, Some("ua"));
    }

    #[test]
    fn rounds_that_take_too_much_go() {
        check("ucrcrcrcr", 3, 250, Some("crcr"));
        check("ucrcrcrcr", 3, 10, Some(""));
        check("ucrcrs", 3, 10, Some("s"));
    }

    #[test]
    fn there_may_be_nothing_to_gain() {
        check("", 3, u64::MAX, None);
        check("u", 0, u64::MAX, None);
        check("ucrcrcr", 3, u64::MAX, None);
        check("ucrcrX", 0, u64::MAX, None);
        check("ucrcrXs", 0, u64::MAX, None);
        check("ucrXcr", 0, u64::MAX, Some(""));
        check("ucrXcrcr", 1, u64::MAX, Some("cr"));
    }

    #[test]
    fn instructions_and_the_input_are_carried() {
        let check = |letters: &str, expected: &str| {
            let turns = turns(letters);
            let letter = |turn: &Turn| match turn {
                Turn::User { .. } => 'u',
                Turn::System { .. } => 'y',
                _ => '?',
            };
            assert_eq!(carried(&turns).map(letter).collect::<String>(), expected);
        };
        check("uycryX", "uyy");
        check("uauycr", "uy");
        check("", "");
        let long = json!({"turn": "user", "content": "x".repeat(16_001), "timestamp_ms": 1});
        let long: Turn = serde_json::from_value(long).expect("a turn");
        assert_eq!(carried(&[long]).count(), 0);
    }

    #[test]
    fn results_never_come_first() {
        let turns = turns("ucrcrX");
        assert_eq!(start(&turns, 5, 1), 3);
        assert_eq!(start(&turns, 5, 2), 3);
        assert_eq!(start(&turns, 5, 0), 5);
        assert_eq!(start(&turns, 5, 99), 0);
    }
}
