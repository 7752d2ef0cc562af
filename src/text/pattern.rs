//! Whether and where text matches a regular expression: the `regex` crate's, which
//! takes time linear in the text.

use regex_syntax::hir::Hir;

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(regex::bytes::Regex);

impl Pattern {
    /// Compiles a parsed expression; the error says why it cannot be.
    pub(crate) fn new(hir: &Hir) -> Result<Self, &'static str> {
        // The printed form nests groups that the one who wrote it did not.
        regex::bytes::RegexBuilder::new(&hir.to_string())
            .nest_limit(1_000)
            .dfa_size_limit(DFA_BYTES)
            .build()
            .map(Self)
            .map_err(|_| TOO_LARGE)
    }

    /// Where a match at or after `from` ends, in the first line that has one;
    /// `from` is 0 or follows a line feed.
    pub(crate) fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        self.0.shortest_match_at(text, from)
    }
}

/// Bytes of states that the crate's automaton may hold. With its own limit of
/// 2 MiB it gives up on counted Unicode classes: `\w{100}=` over a megabyte of
/// base64 then takes 400 ms instead of one.
const DFA_BYTES: usize = 16 << 20;

/// What is said of an expression such as `(a{1000}){1000}`.
const TOO_LARGE: &str = "it is too large once compiled";
