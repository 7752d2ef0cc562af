//! Globs over `/`-separated paths: `*`, `**`, `?`, `[a-z]`, `{a,b}` and `\`, as
//! ripgrep reads them.
//!
//! A glob becomes a small automaton, so that matching takes at most the product
//! of the two lengths, whatever the pattern says.

/// Characters that a pattern may have.
const MAX_LENGTH: usize = 4096;

/// Braces within braces that a pattern may have.
const MAX_NESTING: usize = 16;

/// A pattern that whole paths are matched against.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    steps: Vec<Step>,
    /// What every path that matches ends with.
    tail: String,
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    One(char),
    /// `?`: one character, but no `/`.
    Any,
    /// `*`: any number of characters, but no `/`.
    Star,
    /// `**/`: any number of directories.
    Directories,
    /// `**` at the end: everything.
    Rest,
    Class(Class),
    /// `{a,b}`: the one or the other.
    Either(Vec<Vec<Token>>),
}

/// `[a-z]`, which never matches a `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Class {
    negated: bool,
    ranges: Vec<(char, char)>,
}

/// A state of the automaton: what it reads, or where it goes without reading.
#[derive(Clone, Debug)]
enum Step {
    One(char),
    Any,
    Anything,
    Class(Class),
    /// On to the next step and to that one.
    Fork(usize),
    Jump(usize),
    End,
}

impl Glob {
    /// Reads `pattern`; the error says what is wrong with it.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_LENGTH {
            return Err(format!("it is longer than {MAX_LENGTH} bytes"));
        }
        let mut tokens = Parser::new(pattern).parse()?;
        if tokens == [Token::Directories] {
            tokens = vec![Token::Rest];
        }
        let mut tail: Vec<char> = Vec::new();
        for token in tokens.iter().rev() {
            let Token::One(character) = token else { break };
            tail.push(*character);
        }
        let mut steps = Vec::new();
        emit(&tokens, &mut steps);
        steps.push(Step::End);
        Ok(Self {
            steps,
            tail: tail.into_iter().rev().collect(),
        })
    }

    /// Whether the whole of `path` matches.
    pub(crate) fn is_match(&self, path: &str) -> bool {
        if !path.ends_with(&self.tail) {
            return false;
        }
        let mut now = States::new(self.steps.len());
        let mut next = States::new(self.steps.len());
        now.enter(&self.steps, 0);
        for character in path.chars() {
            for at in &now.list {
                if self.steps[*at].reads(character) {
                    next.enter(&self.steps, at + 1);
                }
            }
            std::mem::swap(&mut now, &mut next);
            if now.list.is_empty() {
                return false;
            }
            next.clear();
        }
        now.marked[self.steps.len() - 1]
    }
}

/// `text` as a glob that matches it alone.
pub(crate) fn escape_glob(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '*' | '?' | '[' | ']' | '{' | '}' => escaped.extend(['[', character, ']']),
            '\\' => escaped.push_str("\\\\"),
            _ => escaped.push(character),
        }
    }
    escaped
}

impl Step {
    fn reads(&self, character: char) -> bool {
        match self {
            Self::One(one) => *one == character,
            Self::Any => character != '/',
            Self::Anything => true,
            Self::Class(class) => character != '/' && class.holds(character),
            Self::Fork(_) | Self::Jump(_) | Self::End => false,
        }
    }
}

impl Class {
    fn holds(&self, character: char) -> bool {
        let inside = |(low, high): &(char, char)| (*low..=*high).contains(&character);
        self.ranges.iter().any(inside) != self.negated
    }
}

/// States that the automaton is in at one place of a path.
struct States {
    list: Vec<usize>,
    marked: Vec<bool>,
}

impl States {
    fn new(steps: usize) -> Self {
        Self {
            list: Vec::with_capacity(steps),
            marked: vec![false; steps],
        }
    }

    /// Enters `at`, and what is reached from there without reading.
    fn enter(&mut self, steps: &[Step], at: usize) {
        let mut seen = self.list.len();
        self.add(at);
        while let Some(entered) = self.list.get(seen).copied() {
            seen += 1;
            match steps[entered] {
                Step::Fork(there) => {
                    self.add(entered + 1);
                    self.add(there);
                }
                Step::Jump(there) => self.add(there),
                _ => {}
            }
        }
    }

    fn add(&mut self, at: usize) {
        if !self.marked[at] {
            self.marked[at] = true;
            self.list.push(at);
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.marked.fill(false);
    }
}

/// Appends the steps of `tokens`, which run on into whatever follows.
fn emit(tokens: &[Token], steps: &mut Vec<Step>) {
    for token in tokens {
        match token {
            Token::One(character) => steps.push(Step::One(*character)),
            Token::Any => steps.push(Step::Any),
            Token::Class(class) => steps.push(Step::Class(class.clone())),
            Token::Star => emit_repeated(Step::Any, steps),
            Token::Rest => emit_repeated(Step::Anything, steps),
            Token::Directories => {
                let start = steps.len();
                steps.push(Step::Fork(start + 5));
                emit_repeated(Step::Anything, steps);
                steps.push(Step::One('/'));
            }
            Token::Either(branches) => emit_either(branches, steps),
        }
    }
}

/// Three steps: `step` any number of times.
fn emit_repeated(step: Step, steps: &mut Vec<Step>) {
    let start = steps.len();
    steps.extend([Step::Fork(start + 3), step, Step::Jump(start)]);
}

/// An empty branch says nothing, as in `{a,}`; without any other the group is
/// empty.
fn emit_either(branches: &[Vec<Token>], steps: &mut Vec<Step>) {
    let branches: Vec<&Vec<Token>> = branches.iter().filter(|branch| !is_empty(branch)).collect();
    let mut ends = Vec::new();
    for (index, branch) in branches.iter().enumerate() {
        let start = steps.len();
        let is_last = index + 1 == branches.len();
        if !is_last {
            steps.push(Step::Jump(start));
        }
        emit(branch, steps);
        if !is_last {
            ends.push(steps.len());
            steps.push(Step::Jump(start));
            steps[start] = Step::Fork(steps.len());
        }
    }
    let end = steps.len();
    for jump in ends {
        steps[jump] = Step::Jump(end);
    }
}

fn is_empty(tokens: &[Token]) -> bool {
    tokens.iter().all(|token| match token {
        Token::Either(branches) => branches.iter().all(|branch| is_empty(branch)),
        _ => false,
    })
}

struct Parser<'a> {
    rest: std::str::Chars<'a>,
    /// Before the character that was read last.
    before: Option<char>,
    last: Option<char>,
    /// The branch that is being read is the last one of the last group; the
    /// first group is the pattern itself.
    groups: Vec<Vec<Vec<Token>>>,
}

impl<'a> Parser<'a> {
    fn new(pattern: &'a str) -> Self {
        Self {
            rest: pattern.chars(),
            before: None,
            last: None,
            groups: vec![vec![Vec::new()]],
        }
    }

    fn parse(mut self) -> Result<Vec<Token>, String> {
        while let Some(character) = self.read() {
            match character {
                '?' => self.push(Token::Any),
                '*' => self.star(),
                '[' => self.class()?,
                '{' if self.groups.len() > MAX_NESTING => {
                    return Err(format!("it nests braces deeper than {MAX_NESTING}"));
                }
                '{' => self.groups.push(vec![Vec::new()]),
                '}' => match self.groups.pop() {
                    Some(branches) if !self.groups.is_empty() => {
                        self.push(Token::Either(branches));
                    }
                    _ => {
                        return Err(
                            "unopened alternate group; missing '{' (`\\}` is the character)"
                                .to_owned(),
                        );
                    }
                },
                ',' if self.is_nested() => {
                    if let Some(branches) = self.groups.last_mut() {
                        branches.push(Vec::new());
                    }
                }
                '\\' => match self.read() {
                    Some(escaped) => self.push(Token::One(escaped)),
                    None => return Err("it ends with a `\\` that escapes nothing".to_owned()),
                },
                other => self.push(Token::One(other)),
            }
        }
        if self.is_nested() {
            return Err(
                "unclosed alternate group; missing '}' (`\\{` is the character)".to_owned(),
            );
        }
        let whole = self.groups.pop().and_then(|mut branches| branches.pop());
        Ok(whole.unwrap_or_default())
    }

    fn is_nested(&self) -> bool {
        self.groups.len() > 1
    }

    fn read(&mut self) -> Option<char> {
        self.before = self.last;
        self.last = self.rest.next();
        self.last
    }

    fn next(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn branch(&mut self) -> Option<&mut Vec<Token>> {
        self.groups.last_mut().and_then(|group| group.last_mut())
    }

    fn push(&mut self, token: Token) {
        if let Some(branch) = self.branch() {
            branch.push(token);
        }
    }

    /// After a `*`. Two of them mean directories only if they are all there is
    /// between two slashes.
    fn star(&mut self) {
        let before = self.before;
        if self.next() != Some('*') {
            return self.push(Token::Star);
        }
        self.read();
        let is_nested = self.is_nested();
        let next = self.next();
        let starts = self.branch().is_none_or(|branch| branch.is_empty());
        let ends = next.is_none() || (is_nested && !starts && matches!(next, Some(',' | '}')));
        if !(starts || before == Some('/')) || !(ends || next == Some('/')) {
            return self.push(Token::Star);
        }
        self.read_if('/');
        let again = |token: &mut Token| *token == Token::Directories;
        if let Some(branch) = self.branch() {
            let repeated = branch.pop_if(again);
            branch.push(match (ends, repeated) {
                (true, _) => Token::Rest,
                (false, _) => Token::Directories,
            });
        }
    }

    fn read_if(&mut self, character: char) {
        if self.next() == Some(character) {
            self.read();
        }
    }

    /// After a `[`. A `]` or `-` in the first place, and a `-` in the last,
    /// stand for themselves.
    fn class(&mut self) -> Result<(), String> {
        let negated = matches!(self.next(), Some('!' | '^'));
        if negated {
            self.read();
        }
        let mut ranges: Vec<(char, char)> = Vec::new();
        let mut in_range = false;
        loop {
            let character = self.read().ok_or("unclosed character class; missing ']'")?;
            match (character, ranges.last_mut()) {
                (']', Some(_)) => break,
                ('-', Some(_)) if !in_range => in_range = true,
                (high, Some((low, end))) if in_range => {
                    if high < *low {
                        return Err(format!("the range `{low}-{high}` is backwards"));
                    }
                    *end = high;
                    in_range = false;
                }
                (one, _) => ranges.push((one, one)),
            }
        }
        if in_range {
            ranges.push(('-', '-'));
        }
        self.push(Token::Class(Class { negated, ranges }));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
