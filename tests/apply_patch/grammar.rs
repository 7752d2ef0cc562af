//! The grammar that models are given against the parser: whatever the one
//! derives, the other reads.

use std::collections::BTreeMap;

use hermitcrab::tool::ApplyPatch;
use hermitcrab::tool::apply_patch::parse;

use crate::random::Numbers;

/// Alternatives, each a sequence.
type Choice = Vec<Vec<Item>>;

#[derive(Debug)]
struct Item {
    what: What,
    /// `?`, `*`, `+` or nothing.
    repeat: Option<char>,
}

#[derive(Debug)]
enum What {
    Literal(String),
    Name(String),
    Group(Choice),
}

/// Reads as much of Lark as the grammar uses.
struct Reader<'a>(std::iter::Peekable<std::str::Chars<'a>>);

impl Reader<'_> {
    fn choice(&mut self) -> Choice {
        let mut choice = vec![Vec::new()];
        while let Some(c) = self.0.next() {
            let what = match c {
                c if c.is_whitespace() => continue,
                ')' => return choice,
                '|' => {
                    choice.push(Vec::new());
                    continue;
                }
                '(' => What::Group(self.choice()),
                '"' => What::Literal(self.while_some(|c| c != '"')),
                first => {
                    let rest = self.while_some(|c| c.is_alphanumeric() || c == '_');
                    What::Name(format!("{first}{rest}"))
                }
            };
            if matches!(what, What::Literal(_)) {
                self.0.next();
            }
            let repeat = self.0.next_if(|c| matches!(c, '?' | '*' | '+'));
            let last = choice.last_mut().expect("an alternative");
            last.push(Item { what, repeat });
        }
        choice
    }

    fn while_some(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(c) = self.0.next_if(|c| wanted(*c)) {
            text.push(c);
        }
        text
    }
}

fn rules() -> BTreeMap<&'static str, Choice> {
    let mut bodies: BTreeMap<&str, String> = BTreeMap::new();
    let mut current = "";
    for line in ApplyPatch::GRAMMAR.lines() {
        if line.trim().is_empty() || line.starts_with("//") {
            continue;
        }
        let body = match line.split_once(':') {
            Some((name, body)) if !line.starts_with(' ') => {
                current = name;
                body
            }
            _ => line,
        };
        *bodies.entry(current).or_default() += body;
    }
    assert_eq!(bodies.remove("TEXT").as_deref(), Some(r" /[^\n]+/"));
    assert_eq!(bodies.remove("NEWLINE").as_deref(), Some(r" /\n/"));
    let rules = bodies.iter();
    rules
        .map(|(name, body)| (*name, Reader(body.chars().peekable()).choice()))
        .collect()
}

const TEXTS: [&str; 8] = [
    "a",
    " b c",
    "@@",
    "-",
    "+x",
    "*** End Patch",
    "\u{2014}",
    "\t!",
];

fn derive(
    rules: &BTreeMap<&str, Choice>,
    choice: &Choice,
    numbers: &mut Numbers,
    text: &mut String,
) {
    for item in numbers.of(choice) {
        let times = match item.repeat {
            None => 1,
            Some('?') => numbers.below(2),
            Some('*') => numbers.below(4),
            _ => 1 + numbers.below(3),
        };
        for _ in 0..times {
            match &item.what {
                What::Literal(literal) => text.push_str(literal),
                What::Group(choice) => derive(rules, choice, numbers, text),
                What::Name(name) => match name.as_str() {
                    "TEXT" => *text += *numbers.of(&TEXTS),
                    "NEWLINE" => text.push('\n'),
                    name => derive(rules, &rules[name], numbers, text),
                },
            }
        }
    }
}

#[test]
fn the_parser_reads_what_the_grammar_derives() {
    let rules = rules();
    let mut numbers = Numbers::new(4);
    for _ in 0..5_000 {
        let mut text = String::new();
        derive(&rules, &rules["start"], &mut numbers, &mut text);
        if let Err(error) = parse(&text) {
            panic!("{error}\n{text}");
        }
    }
}
