//! The characters that an expression tells apart: as few symbols as there are
//! answers to what it asks about a character.

use regex_syntax::hir::LookSet;

/// Ranges of characters, in order.
pub(super) type Ranges = Vec<(char, char)>;

/// What a text consists of, as one expression sees it.
pub(super) type Symbol = u32;

/// The end of the text.
const END: Symbol = 0;

/// A byte that is no part of a character.
const BROKEN: Symbol = 1;

/// Symbols before those of characters.
const FIRST: Symbol = 2;

/// What `^`, `$` and `\b` ask about a neighbour.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kind(pub(super) u32);

impl Kind {
    /// Where the text begins or ends.
    pub(super) const EDGE: Self = Self(1);
    pub(super) const LINE_FEED: Self = Self(2);
    pub(super) const RETURN: Self = Self(4);
    pub(super) const ASCII_WORD: Self = Self(8);
    pub(super) const WORD: Self = Self(16);
    /// A byte that is no part of a character.
    pub(super) const BROKEN: Self = Self(32);

    pub(super) fn has(self, kind: Self) -> bool {
        self.0 & kind.0 != 0
    }
}

#[derive(Clone, Debug)]
pub(super) struct Alphabet {
    ascii: [Symbol; 128],
    /// Where a stretch of characters begins and which symbol they are.
    stretches: Vec<(u32, Symbol)>,
    /// What each symbol is to its neighbours, as far as the expression asks.
    kinds: Vec<Kind>,
    /// The symbols of each set of characters that the expression reads, sorted.
    read: Vec<Vec<Symbol>>,
    /// What the expression asks about neighbours.
    asked: Kind,
}

impl Alphabet {
    /// Of an expression that reads `read` and asks `looks`.
    pub(super) fn new(read: &[Ranges], looks: LookSet) -> Self {
        let mut asked = Kind::EDGE.0;
        let mut neighbours = Vec::new();
        if looks.contains_anchor_line() {
            neighbours.push((Kind::LINE_FEED, vec![('\n', '\n')]));
            neighbours.push((Kind::RETURN, vec![('\r', '\r')]));
        }
        if looks.contains_word_ascii() {
            neighbours.push((Kind::ASCII_WORD, ascii_word()));
        }
        if looks.contains_word_unicode() {
            asked |= Kind::BROKEN.0;
            neighbours.push((Kind::WORD, word()));
        }
        for (kind, _) in &neighbours {
            asked |= kind.0;
        }
        if looks.is_empty() {
            asked = 0;
        }
        let sets = || {
            read.iter()
                .chain(neighbours.iter().map(|(_, ranges)| ranges))
        };
        let mut stretches: Vec<(u32, Symbol)> = vec![(0, 0)];
        for (from, to) in sets().flatten() {
            stretches.push((*from as u32, 0));
            stretches.push((*to as u32 + 1, 0));
        }
        stretches.sort_unstable();
        stretches.dedup();
        // Each set gives those of its characters that had the same symbol a new one.
        let mut symbols = 1;
        for ranges in sets() {
            let mut renamed = vec![None; symbols as usize];
            for index in inside(ranges, &stretches) {
                let symbol = &mut stretches[index].1;
                *symbol = *renamed[*symbol as usize].get_or_insert_with(|| {
                    symbols += 1;
                    symbols - 1
                });
            }
        }
        // Some of them have no character any more.
        let mut renamed = vec![None; symbols as usize];
        let mut symbols = FIRST;
        for (_, symbol) in &mut stretches {
            *symbol = *renamed[*symbol as usize].get_or_insert_with(|| {
                symbols += 1;
                symbols - 1
            });
        }
        let mut kinds = vec![Kind::default(); symbols as usize];
        kinds[END as usize] = Kind::EDGE;
        kinds[BROKEN as usize] = Kind::BROKEN;
        for (kind, ranges) in &neighbours {
            for symbol in symbols_of(ranges, &stretches) {
                kinds[symbol as usize].0 |= kind.0;
            }
        }
        let mut alphabet = Self {
            ascii: [0; 128],
            read: read.iter().map(|it| symbols_of(it, &stretches)).collect(),
            stretches,
            kinds,
            asked: Kind(asked),
        };
        for character in 0..128_u8 {
            alphabet.ascii[usize::from(character)] = alphabet.find(character.into());
        }
        alphabet
    }

    /// How many symbols there are.
    pub(super) fn size(&self) -> usize {
        self.kinds.len()
    }

    /// The symbol at `at` and its length in bytes.
    pub(super) fn symbol(&self, text: &[u8], at: usize) -> (Symbol, usize) {
        match text.get(at) {
            None => (END, 0),
            Some(byte) if byte.is_ascii() => (self.ascii[usize::from(*byte)], 1),
            Some(_) => match character(&text[at..]) {
                Some(character) => (self.find(character), character.len_utf8()),
                None => (BROKEN, 1),
            },
        }
    }

    /// Whether `symbol` is one of the set with this number.
    pub(super) fn holds(&self, set: u32, symbol: Symbol) -> bool {
        self.read[set as usize].binary_search(&symbol).is_ok()
    }

    pub(super) fn kind(&self, symbol: Symbol) -> Kind {
        self.kinds[symbol as usize]
    }

    /// What of `kind` the expression asks about.
    pub(super) fn seen(&self, kind: Kind) -> Kind {
        Kind(kind.0 & self.asked.0)
    }

    fn find(&self, character: char) -> Symbol {
        let after = self
            .stretches
            .partition_point(|(from, _)| *from <= character as u32);
        self.stretches[after - 1].1
    }
}

/// Indices of the stretches within `ranges`.
fn inside(ranges: &Ranges, stretches: &[(u32, Symbol)]) -> Vec<usize> {
    let place = |end: u32| stretches.partition_point(|(from, _)| *from < end);
    let mut indices = Vec::new();
    for (from, to) in ranges {
        indices.extend(place(*from as u32)..place(*to as u32 + 1));
    }
    indices
}

fn symbols_of(ranges: &Ranges, stretches: &[(u32, Symbol)]) -> Vec<Symbol> {
    let indices = inside(ranges, stretches).into_iter();
    let mut symbols: Vec<Symbol> = indices.map(|index| stretches[index].1).collect();
    symbols.sort_unstable();
    symbols.dedup();
    symbols
}

/// The first character of `text`, if it begins with one.
fn character(text: &[u8]) -> Option<char> {
    let length = match text.first()? {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    let bytes = text.get(..length)?;
    std::str::from_utf8(bytes).ok()?.chars().next()
}

fn ascii_word() -> Ranges {
    vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]
}

/// `\w`.
fn word() -> Ranges {
    use regex_syntax::hir::{Class, HirKind};
    match regex_syntax::parse(r"\w").as_ref().map(|hir| hir.kind()) {
        Ok(HirKind::Class(Class::Unicode(class))) => {
            class.iter().map(|it| (it.start(), it.end())).collect()
        }
        _ => ascii_word(),
    }
}
