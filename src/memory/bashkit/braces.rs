//! Braces that make too many words.
//!
//! bashkit leaves a range of more than 10,000 words as it is, and of several braces in
//! one word all words after 100,000 out, without a word.
//!
//! Seen in bashkit 0.20.2; gone when `braces` of `tests/it/bashkit.rs` fails.

use bashkit::parser::{Word, WordPart};

/// Words that one `{1..9}` may have in bashkit, which leaves a longer one as it
/// is.
const BRACE_WORDS: u64 = 10_000;
/// Words that all the braces of one word may have, counted after each of them:
/// beyond this bashkit leaves the rest out.
const BRACE_PRODUCT: u64 = 100_000;
/// Bytes of those words, likewise.
const BRACE_BYTES: u64 = 10 << 20;
/// Groups of braces in one word, likewise.
const BRACE_GROUPS: usize = 100;

/// Stands for what is quoted or expanded, which has no braces for bashkit.
const ATOM: char = '\u{f0000}';
/// Characters of a word that a message shows.
const SHOWN: usize = 60;

/// The braces of `word` that bashkit would not expand, in words.
pub(super) fn problem(word: &Word) -> Option<String> {
    if word.quoted && !word.has_unquoted_glob {
        return None;
    }
    let mut text = String::new();
    for (index, part) in word.parts.iter().enumerate() {
        let quoted = word.part_quoted.get(index).copied();
        match part {
            WordPart::Literal(literal) if !quoted.unwrap_or(word.quoted) => text.push_str(literal),
            _ => text.push(ATOM),
        }
    }
    if !text.contains('{') {
        return None;
    }
    long_range(&text).or_else(|| long_product(word, &text))
}

fn long_range(text: &str) -> Option<String> {
    text.match_indices('{').find_map(|(at, _)| {
        let end = at + text[at..].find('}')?;
        let words = range(&text[at + 1..end])?;
        (words > BRACE_WORDS && !text[..at].ends_with('\\')).then(|| {
            format!(
                "{} has more than {BRACE_WORDS} words, which this shell does not expand; use seq",
                &text[at..=end]
            )
        })
    })
}

/// Words of `1..9`, `1..9..2` or `a..z`.
fn range(text: &str) -> Option<u64> {
    let bound = |text: &str| -> Option<i64> {
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) if letter.is_ascii_alphabetic() => Some(i64::from(letter as u32)),
            _ => text.parse().ok(),
        }
    };
    let bounds: Vec<i64> = text.split("..").map(bound).collect::<Option<_>>()?;
    let (first, last, step) = match bounds[..] {
        [first, last] => (first, last, 1),
        [first, last, step] => (first, last, step.unsigned_abs().max(1)),
        _ => return None,
    };
    Some(first.abs_diff(last) / step + 1)
}

fn long_product(word: &Word, text: &str) -> Option<String> {
    let made = expand(text);
    let counted = made.words.saturating_mul(made.groups.max(1) as u64);
    let bytes = made.words.saturating_mul(made.longest);
    let too_many = counted > BRACE_PRODUCT || bytes > BRACE_BYTES || made.groups > BRACE_GROUPS;
    // One range alone is `long_range`'s.
    (made.groups > 1 && too_many).then(|| {
        let shown: String = word.to_string().chars().take(SHOWN).collect();
        format!("the braces of `{shown}` make more words than this shell expands; use loops")
    })
}

/// What the braces of a word make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Made {
    words: u64,
    groups: usize,
    longest: u64,
}

/// Counts without expanding. Braces that hold no comma and no range stay.
fn expand(word: &str) -> Made {
    // What is open: the word, or a group with its alternatives so far.
    struct Open {
        start: usize,
        product: Made,
        sum: u64,
        commas: usize,
        longest: u64,
        groups: usize,
    }
    let one = Made {
        words: 1,
        groups: 0,
        longest: 0,
    };
    let open = |start| Open {
        start,
        product: one,
        sum: 0,
        commas: 0,
        longest: 0,
        groups: 0,
    };
    let mut stack = vec![open(0)];
    let mut escaped = false;
    for (at, letter) in word.char_indices() {
        let depth = stack.len();
        let Some(top) = stack.last_mut() else {
            return one;
        };
        let was_escaped = escaped;
        escaped = letter == '\\' && !was_escaped;
        if was_escaped {
            top.product.longest += letter.len_utf8() as u64;
            continue;
        }
        match letter {
            '{' => stack.push(open(at + 1)),
            ',' if depth > 1 => {
                top.sum = top.sum.saturating_add(top.product.words);
                top.longest = top.longest.max(top.product.longest);
                top.groups += top.product.groups;
                top.commas += 1;
                top.product = one;
            }
            '}' if depth > 1 => {
                let group = stack.pop().unwrap_or_else(|| open(at));
                let text = &word[group.start..at];
                let made = match range(text) {
                    Some(words) if group.commas == 0 => Made {
                        words,
                        groups: 1,
                        longest: text.len() as u64,
                    },
                    _ if group.commas == 0 => Made {
                        longest: group.product.longest + 2,
                        ..group.product
                    },
                    _ => Made {
                        words: group.sum.saturating_add(group.product.words),
                        groups: 1 + group.groups + group.product.groups,
                        longest: group.longest.max(group.product.longest),
                    },
                };
                if let Some(top) = stack.last_mut() {
                    top.product.words = top.product.words.saturating_mul(made.words);
                    top.product.groups += made.groups;
                    top.product.longest += made.longest;
                }
            }
            _ => top.product.longest += letter.len_utf8() as u64,
        }
    }
    // Braces that were never closed are text.
    let mut made = one;
    for open in stack {
        made.words = made.words.saturating_mul(open.product.words.max(open.sum));
        made.groups += open.groups + open.product.groups;
        made.longest += open.longest.max(open.product.longest);
    }
    made
}

#[cfg(test)]
mod tests {
    use crate::memory::bashkit::script::read;

    fn problem(command: &str) -> Option<String> {
        read(command).problem
    }

    #[test]
    fn braces_that_bashkit_expands() {
        for command in [
            "echo {1..10000}",
            "echo {a..z}{a..z}{a..z}",
            "mkdir -p src/{a,b}/{c,d}",
            "echo '{a..z}{a..z}{a..z}{a..z}'",
            "echo \"{a..z}{a..z}{a..z}{a..z}\"",
            "echo ${a}${b}{1..9} '{1..20000}' \"{1..20000}\"",
            "x={1..20000}; case {1..20000} in a) ;; esac",
            "echo \\{1..20000} {1..20000",
            "awk '{print $1, $2}' f | { read a, b; }",
            "curl -d {\"a\":[1,2],\"b\":{\"c\":1}}",
            "echo {{{{a,b},c},d},e}{x",
        ] {
            assert_eq!(problem(command), None, "{command}");
        }
    }

    #[test]
    fn braces_that_lose_words() {
        let product = |word: &str| {
            Some(format!(
                "the braces of `{word}` make more words than this shell expands; use loops"
            ))
        };
        for word in [
            "{a..z}{a..z}{a..z}{a..z}",
            "x{1..100}y{1..100}z{1..100}",
            "{a,{1..400}}{b,{1..400}}",
            "$a{1..999},{1..999}",
        ] {
            assert_eq!(problem(&format!("echo a; echo {word} | wc")), product(word));
        }
        let groups = "{a,}".repeat(101);
        let shown: String = groups.chars().take(60).collect();
        assert_eq!(problem(&format!("echo {groups}")), product(&shown));
        assert_eq!(
            problem("for i in {1..10001}; do :; done").as_deref(),
            Some("{1..10001} has more than 10000 words, which this shell does not expand; use seq")
        );
    }
}
