//! What runs while words are expanded and conditions are tested.

use bashkit::parser::{ParameterOp, Word, WordPart};

use super::arithmetic;
use super::read::Reader;
use super::word::{beginning, has_literal_escape};

impl Reader<'_> {
    pub(super) fn words(&mut self, words: &[Word]) {
        for word in words {
            self.word(word);
        }
    }

    /// What runs while `word` is expanded.
    pub(super) fn word(&mut self, word: &Word) {
        if has_literal_escape(word) {
            self.concern("it has a word with a backslash behind a bracket");
        }
        for part in &word.parts {
            match part {
                WordPart::Literal(_)
                | WordPart::Variable(_)
                | WordPart::ArrayLength(_)
                | WordPart::ArrayIndices { .. }
                | WordPart::PrefixMatch { .. } => {}
                WordPart::CommandSubstitution(commands)
                | WordPart::ProcessSubstitution { commands, .. } => {
                    // The parser leaves out what it does not understand.
                    if commands.is_empty() {
                        self.concern("it has a substitution that is not understood");
                    }
                    let outside = self.defined.clone();
                    self.commands(commands);
                    self.defined = outside;
                }
                WordPart::ArithmeticExpansion(expression) => self.arithmetic(expression),
                WordPart::CompoundAssignment { elements, .. } => self.words(elements),
                WordPart::ParameterExpansion {
                    name,
                    operator,
                    operand,
                    ..
                } => {
                    self.parameter(name);
                    self.operand(operand);
                    match operator {
                        ParameterOp::AssignDefault => {
                            self.assign(name, arithmetic::is_number(operand));
                        }
                        ParameterOp::ReplaceFirst {
                            pattern,
                            replacement,
                        }
                        | ParameterOp::ReplaceAll {
                            pattern,
                            replacement,
                        } => {
                            self.operand(pattern);
                            self.operand(replacement);
                        }
                        _ => {}
                    }
                }
                WordPart::Length(name) => self.parameter(name),
                WordPart::ArrayAccess { name, index } => {
                    self.parameter(name);
                    if !matches!(index.as_str(), "@" | "*") {
                        self.arithmetic(index);
                    }
                }
                WordPart::Substring {
                    name,
                    offset,
                    length,
                } => {
                    self.parameter(name);
                    self.arithmetic(offset);
                    if let Some(length) = length {
                        self.arithmetic(length);
                    }
                }
                WordPart::Transformation { name, operator } => {
                    self.parameter(name);
                    if *operator == 'P' {
                        self.concern("it expands a value as a prompt");
                    }
                }
                WordPart::IndirectExpansion { .. } | WordPart::IndirectSuffix { .. } => {
                    self.concern("it expands a variable that another one names");
                }
                WordPart::BadSubstitution(_) => {
                    self.concern("it has an expansion that is not understood");
                }
            }
        }
    }

    /// The name in `${name…}`.
    fn parameter(&mut self, name: &str) {
        let is_plain = arithmetic::is_name(name)
            || matches!(name, "@" | "*" | "#" | "?" | "$" | "!" | "-")
            || name.bytes().all(|byte| byte.is_ascii_digit());
        if is_plain {
            return;
        }
        let subscript = name
            .split_once('[')
            .filter(|(name, _)| arithmetic::is_name(name));
        match subscript.and_then(|(_, rest)| rest.strip_suffix(']')) {
            Some("@" | "*") => {}
            Some(index) => self.arithmetic(index),
            None => self.concern("it has an expansion that is not understood"),
        }
    }

    /// A text that is expanded only when it is needed.
    fn operand(&mut self, text: &str) {
        let is_plain = text.match_indices('$').all(|(at, _)| {
            let next = text[at + 1..].chars().next();
            next.is_some_and(|next| next.is_ascii_alphanumeric() || next == '_')
        });
        // Shells differ on where a here-document begins whose line goes on in
        // the braces.
        let is_odd = text.contains(['`', '\\', '\n'])
            || ["<(", ">(", "<<"].iter().any(|start| text.contains(start));
        if !is_plain || is_odd {
            self.concern("it has an expansion within an expansion");
        }
    }

    pub(super) fn arithmetic(&mut self, expression: &str) {
        match arithmetic::names(expression) {
            Some(names) => self.counted.extend(names),
            None => self.concern("it has arithmetic with an expansion or a subscript"),
        }
    }

    /// `[[ … ]]`: some of its operators count with their operands.
    pub(super) fn conditional(&mut self, words: &[Word]) {
        self.words(words);
        let operator = |index: usize| words.get(index).map(|word| beginning(word).0);
        for index in 0..words.len() {
            match operator(index).as_deref() {
                Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") => {
                    let before = index.checked_sub(1).and_then(|index| words.get(index));
                    for operand in [before, words.get(index + 1)].into_iter().flatten() {
                        self.counted_word(operand);
                    }
                }
                // A shell that does not know `[[` writes a file.
                Some("<" | ">") => self.concern("it compares with `<` or `>`"),
                Some("-v" | "-R") => {
                    let name = words.get(index + 1).map(beginning);
                    let plain =
                        name.is_some_and(|(name, goes_on)| !goes_on && arithmetic::is_name(&name));
                    if !plain {
                        self.concern("it looks at a variable that is not plainly named");
                    }
                }
                _ => {}
            }
        }
    }

    fn counted_word(&mut self, word: &Word) {
        if word.parts.len() > 1 {
            return self.concern("it counts with what is only known when it runs");
        }
        for part in &word.parts {
            match part {
                WordPart::Literal(text) => self.arithmetic(text),
                WordPart::Variable(name) => self.arithmetic(&format!("${name}")),
                WordPart::ArithmeticExpansion(_)
                | WordPart::ArrayLength(_)
                | WordPart::Length(_) => {}
                _ => self.concern("it counts with what is only known when it runs"),
            }
        }
    }
}
