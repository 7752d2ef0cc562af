//! Whether and where text matches a regular expression: syntax and meaning are
//! those of the `regex` crate, of which only the parser is in every build.
//!
//! Builds with the feature `perf` match with that crate, the others with a small
//! automaton of our own, which saves the slim core 50 KB of download. Both take
//! time linear in the text.

#[cfg(any(test, not(feature = "perf")))]
mod alphabet;
#[cfg(any(test, not(feature = "perf")))]
mod automaton;
#[cfg(test)]
mod tests;

use regex_syntax::hir::Hir;

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    #[cfg(feature = "perf")]
    engine: regex::bytes::Regex,
    #[cfg(not(feature = "perf"))]
    engine: automaton::Automaton,
}

impl Pattern {
    /// Compiles a parsed expression; the error says why it cannot be.
    pub(crate) fn new(hir: &Hir) -> Result<Self, &'static str> {
        #[cfg(feature = "perf")]
        // The printed form nests groups that the one who wrote it did not.
        let engine = regex::bytes::RegexBuilder::new(&hir.to_string())
            .nest_limit(1_000)
            .dfa_size_limit(DFA_BYTES)
            .build()
            .map_err(|_| TOO_LARGE)?;
        #[cfg(not(feature = "perf"))]
        let engine = automaton::Automaton::new(hir)?;
        Ok(Self { engine })
    }

    /// Where a match at or after `from` ends, in the first line that has one;
    /// `from` is 0 or follows a line feed.
    pub(crate) fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        self.engine.shortest_match_at(text, from)
    }
}

/// Bytes of states that the crate's automaton may hold. With its own limit of
/// 2 MiB it gives up on counted Unicode classes: `\w{100}=` over a megabyte of
/// base64 then takes 400 ms instead of one.
#[cfg(feature = "perf")]
const DFA_BYTES: usize = 16 << 20;

/// What either engine says of an expression such as `(a{1000}){1000}`.
const TOO_LARGE: &str = "it is too large once compiled";
