//! Text of others, made harmless for a terminal.

/// Text that a terminal shows and does not obey: without control characters but
/// line end and tab, and without those that turn the direction of what follows.
pub(crate) fn harmless(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || turns(*c)))
        .collect()
}

/// `text` with long runs of one bracket cut: what is nested thousands deep says
/// no more than that.
pub(crate) fn calm(text: &str) -> String {
    let mut calm = String::new();
    let (mut last, mut count) = (' ', 0);
    for c in text.chars() {
        count = if c == last { count + 1 } else { 1 };
        last = c;
        match ("[](){}".contains(c), count) {
            (true, 9) => calm.push('…'),
            (true, 10..) => {}
            _ => calm.push(c),
        }
    }
    calm
}
