//! The automaton: a parsed expression as steps, and sets of steps as states
//! that are made when a text first leads to them.
//!
//! It reads characters, not bytes, in classes that the expression cannot tell
//! apart. What stands before a place and what comes after it decide about `^`,
//! `$` and `\b` there, so a match is seen one character late. That is enough for
//! whether and where a match ends first; which match is leftmost or longest
//! nobody asks. Between the bytes of a character there is no place, also for
//! `(?-u:\B)`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::TOO_LARGE;
use super::alphabet::{Alphabet, Kind, Ranges, Symbol};

/// Steps of an expression; those of a larger one would take megabytes.
const MAX_STEPS: usize = 250_000;

/// Numbers that the states of one automaton may hold; beyond it, they are
/// forgotten and made anew.
const MAX_CACHED: usize = 512 * 1024;

/// No state yet.
const UNKNOWN: u32 = u32::MAX;

/// A match ends before the character that was read.
const MATCHED: u32 = u32::MAX - 1;

const NOT_ASCII: &str = "without Unicode it names bytes beyond ASCII; take `(?-u)` out of it";

/// An expression that texts are searched for.
#[derive(Clone, Debug)]
pub(super) struct Automaton {
    steps: Vec<Step>,
    alphabet: Alphabet,
    states: RefCell<States>,
}

/// What a step reads, or where it goes without reading.
#[derive(Clone, Debug)]
enum Step {
    /// A character of these.
    Read(u32),
    /// Nothing, where this holds.
    Look(Look),
    /// On to the next step and to that one.
    Fork(usize),
    Jump(usize),
    Match,
}

impl Automaton {
    pub(super) fn new(hir: &Hir) -> Result<Self, &'static str> {
        let mut compiler = Compiler::default();
        compiler.emit(hir)?;
        compiler.push(Step::Match)?;
        let alphabet = Alphabet::new(&compiler.read, hir.properties().look_set());
        let states = States::new(compiler.steps.len());
        Ok(Self {
            steps: compiler.steps,
            alphabet,
            states: RefCell::new(states),
        })
    }

    /// Where the first match at or after `from` ends; `from` is 0 or follows a
    /// line feed.
    pub(super) fn shortest_match_at(&self, text: &[u8], from: usize) -> Option<usize> {
        let mut states = self.states.borrow_mut();
        let states = &mut *states;
        let before = match from {
            0 => Kind::EDGE,
            _ => Kind::LINE_FEED,
        };
        let mut state = states.add(vec![self.alphabet.seen(before).0, 0], self.alphabet.size());
        let mut at = from;
        loop {
            let (symbol, width) = self.alphabet.symbol(text, at);
            let mut next = states.next[state as usize + symbol as usize];
            if next == UNKNOWN {
                next = self.follow(states, state, symbol);
            }
            match next {
                MATCHED => return Some(at),
                _ if at == text.len() => return None,
                _ => {}
            }
            state = next;
            at += width;
        }
    }

    /// Makes the state to which `symbol` leads.
    fn follow(&self, states: &mut States, state: u32, symbol: Symbol) -> u32 {
        let size = self.alphabet.size();
        let set = states.sets[state as usize / size].clone();
        let before = Kind(set[0]);
        let after = self.alphabet.kind(symbol);
        let mut reached = vec![self.alphabet.seen(after).0, 0];
        let mut matched = false;
        for step in &set[1..] {
            states.visit(*step as usize);
        }
        let mut visited = 0;
        while let Some(at) = states.list.get(visited).copied() {
            visited += 1;
            match self.steps[at] {
                Step::Read(ranges) => {
                    if self.alphabet.holds(ranges, symbol) {
                        reached.push(at as u32 + 1);
                    }
                }
                Step::Look(look) => {
                    if holds(look, before, after) {
                        states.visit(at + 1);
                    }
                }
                Step::Fork(there) => {
                    states.visit(at + 1);
                    states.visit(there);
                }
                Step::Jump(there) => states.visit(there),
                Step::Match => matched = true,
            }
        }
        states.leave();
        if matched {
            states.next[state as usize + symbol as usize] = MATCHED;
            return MATCHED;
        }
        reached[1..].sort_unstable();
        let full = states.held + states.next.len() > MAX_CACHED;
        if full {
            states.forget();
        }
        let next = states.add(reached, size);
        if !full {
            states.next[state as usize + symbol as usize] = next;
        }
        next
    }
}

/// Whether `look` holds between what is before and after.
fn holds(look: Look, before: Kind, after: Kind) -> bool {
    let words = |kind: Kind| (before.has(kind), after.has(kind));
    let (ascii_before, ascii_after) = words(Kind::ASCII_WORD);
    let (word_before, word_after) = words(Kind::WORD);
    let (broken_before, broken_after) = words(Kind::BROKEN);
    match look {
        Look::Start => before.has(Kind::EDGE),
        Look::End => after.has(Kind::EDGE),
        Look::StartLF => before.has(Kind::EDGE) || before.has(Kind::LINE_FEED),
        Look::EndLF => after.has(Kind::EDGE) || after.has(Kind::LINE_FEED),
        Look::StartCRLF => {
            before.has(Kind::EDGE)
                || before.has(Kind::LINE_FEED)
                || before.has(Kind::RETURN) && !after.has(Kind::LINE_FEED)
        }
        Look::EndCRLF => {
            after.has(Kind::EDGE)
                || after.has(Kind::RETURN)
                || after.has(Kind::LINE_FEED) && !before.has(Kind::RETURN)
        }
        Look::WordAscii => ascii_before != ascii_after,
        Look::WordAsciiNegate => ascii_before == ascii_after,
        Look::WordStartAscii => !ascii_before && ascii_after,
        Look::WordEndAscii => ascii_before && !ascii_after,
        Look::WordStartHalfAscii => !ascii_before,
        Look::WordEndHalfAscii => !ascii_after,
        Look::WordUnicode => word_before != word_after,
        Look::WordUnicodeNegate => word_before == word_after && !broken_before && !broken_after,
        Look::WordStartUnicode => !word_before && word_after,
        Look::WordEndUnicode => word_before && !word_after,
        Look::WordStartHalfUnicode => !word_before && !broken_before,
        Look::WordEndHalfUnicode => !word_after && !broken_after,
    }
}

/// States that were reached so far.
#[derive(Clone, Debug)]
struct States {
    /// For each state in turn what each symbol leads to: where that state
    /// begins here.
    next: Vec<u32>,
    /// The kind of what was read last, then the steps.
    sets: Vec<Rc<[u32]>>,
    /// Where a state begins in `next`.
    known: BTreeMap<Rc<[u32]>, u32>,
    /// Numbers in `sets`.
    held: usize,
    /// Steps that are being followed, in the order in which they were reached.
    list: Vec<usize>,
    /// Whether a step is in `list`.
    marked: Vec<bool>,
}

impl States {
    fn new(steps: usize) -> Self {
        Self {
            next: Vec::new(),
            sets: Vec::new(),
            known: BTreeMap::new(),
            held: 0,
            list: Vec::new(),
            marked: vec![false; steps],
        }
    }

    fn add(&mut self, set: Vec<u32>, size: usize) -> u32 {
        if let Some(state) = self.known.get(set.as_slice()) {
            return *state;
        }
        let set: Rc<[u32]> = set.into();
        let state = self.next.len() as u32;
        self.next.resize(self.next.len() + size, UNKNOWN);
        self.held += set.len();
        self.sets.push(set.clone());
        self.known.insert(set, state);
        state
    }

    fn forget(&mut self) {
        self.next.clear();
        self.sets.clear();
        self.known.clear();
        self.held = 0;
    }

    fn visit(&mut self, step: usize) {
        if !self.marked[step] {
            self.marked[step] = true;
            self.list.push(step);
        }
    }

    fn leave(&mut self) {
        for step in self.list.drain(..) {
            self.marked[step] = false;
        }
    }
}

/// Turns an expression into steps.
#[derive(Default)]
struct Compiler {
    steps: Vec<Step>,
    /// What `Step::Read` names.
    read: Vec<Ranges>,
}

impl Compiler {
    /// Appends the steps of `hir`, which run on into whatever follows.
    fn emit(&mut self, hir: &Hir) -> Result<(), &'static str> {
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).map_err(|_| NOT_ASCII)?;
                for character in text.chars() {
                    self.read(vec![(character, character)])?;
                }
            }
            HirKind::Class(Class::Unicode(class)) => {
                self.read(class.iter().map(|it| (it.start(), it.end())).collect())?;
            }
            HirKind::Class(Class::Bytes(class)) => {
                if !class.is_ascii() {
                    return Err(NOT_ASCII);
                }
                let characters = class.iter().map(|it| (it.start().into(), it.end().into()));
                self.read(characters.collect())?;
            }
            HirKind::Look(look) => self.push(Step::Look(*look))?,
            HirKind::Repetition(repetition) => self.repeat(repetition)?,
            HirKind::Capture(capture) => self.emit(&capture.sub)?,
            HirKind::Concat(subs) => subs.iter().try_for_each(|sub| self.emit(sub))?,
            HirKind::Alternation(subs) => {
                let mut jumps = Vec::new();
                for (index, sub) in subs.iter().enumerate() {
                    if index + 1 == subs.len() {
                        self.emit(sub)?;
                        break;
                    }
                    let fork = self.steps.len();
                    self.push(Step::Fork(0))?;
                    self.emit(sub)?;
                    jumps.push(self.steps.len());
                    self.push(Step::Jump(0))?;
                    self.steps[fork] = Step::Fork(self.steps.len());
                }
                let end = self.steps.len();
                for jump in jumps {
                    self.steps[jump] = Step::Jump(end);
                }
            }
        }
        Ok(())
    }

    fn repeat(&mut self, repetition: &Repetition) -> Result<(), &'static str> {
        let sub = &repetition.sub;
        let mut start = self.steps.len();
        for _ in 0..repetition.min {
            start = self.steps.len();
            self.emit(sub)?;
        }
        match repetition.max {
            None if repetition.min > 0 => self.push(Step::Fork(start))?,
            None => {
                self.push(Step::Fork(0))?;
                self.emit(sub)?;
                self.push(Step::Jump(start))?;
                self.steps[start] = Step::Fork(self.steps.len());
            }
            Some(max) => {
                let mut forks = Vec::new();
                for _ in repetition.min..max {
                    forks.push(self.steps.len());
                    self.push(Step::Fork(0))?;
                    self.emit(sub)?;
                }
                let end = self.steps.len();
                for fork in forks {
                    self.steps[fork] = Step::Fork(end);
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, ranges: Ranges) -> Result<(), &'static str> {
        let known = self.read.iter().position(|read| *read == ranges);
        let index = known.unwrap_or(self.read.len());
        if known.is_none() {
            self.read.push(ranges);
        }
        self.push(Step::Read(index as u32))
    }

    fn push(&mut self, step: Step) -> Result<(), &'static str> {
        if self.steps.len() == MAX_STEPS {
            return Err(TOO_LARGE);
        }
        self.steps.push(step);
        Ok(())
    }
}
