//! What a script sets: variables that change what programs do, and values that
//! arithmetic might run.

use bashkit::parser::{Assignment, AssignmentValue, Word, WordPart};

use super::arithmetic;
use super::read::Reader;
use super::word::{argument, beginning, is_number};

/// Arrays that bash itself has, beside those whose assignment is refused anyway.
const ARRAYS: [&str; 6] = [
    "PIPESTATUS",
    "GROUPS",
    "MAPFILE",
    "COPROC",
    "COMPREPLY",
    "COMP_WORDS",
];

impl Reader<'_> {
    /// What builtins do to the meaning of the rest.
    pub(super) fn builtin(&mut self, name: &str, arguments: &[Word]) {
        let is_one_of = |list: &[String]| list.iter().any(|known| known == name);
        if is_one_of(&self.names.assigning_builtins) {
            arguments.iter().for_each(|word| self.declared(name, word));
        } else if is_one_of(&self.names.naming_builtins) {
            arguments.iter().for_each(|word| self.named(name, word));
            self.assign("REPLY", false);
        } else if name == "printf" {
            self.printf(arguments);
        } else if matches!(name, "cd" | "pushd" | "popd") {
            self.script.changes_directory = true;
        } else if name == "let" {
            self.concern("`let` counts with texts");
        }
    }

    /// An argument of `export` and its like.
    fn declared(&mut self, builtin: &str, word: &Word) {
        if let [WordPart::CompoundAssignment { name, .. }] = word.parts.as_slice() {
            self.arrays = true;
            return self.assign(name, false);
        }
        let (text, goes_on) = beginning(word);
        if let Some(letters) = text.strip_prefix(['-', '+']) {
            // `-i` counts with what is assigned, `-n` makes another name of it.
            let goes_on = goes_on || argument(word).literal().is_none();
            if goes_on || letters.contains(['i', 'n']) && !(builtin == "export" && letters == "n") {
                self.concern(format!("`{builtin}` has the option {text}"));
            }
            // A program that is a script would call it instead of what it names.
            if letters.contains('f') && (builtin == "export" || letters.contains('x')) {
                self.concern(format!("`{builtin}` hands a function to programs"));
            }
            self.arrays |= letters.contains(['a', 'A']);
            return;
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text.as_str(), None),
        };
        let name = name.strip_suffix('+').unwrap_or(name);
        if !arithmetic::is_name(name) || (goes_on && value.is_none()) {
            return self.concern(format!(
                "`{builtin}` sets a variable that is not plainly named"
            ));
        }
        // Of an array bash reads such a value again, and expands what is in it,
        // whatever quotes are around the word.
        match value.map(|value| value.trim_start()) {
            Some(value) if value.starts_with('(') => {
                self.concern(format!("`{builtin}` sets an array by a text"));
            }
            Some("") if goes_on => {
                self.expanded = Some(builtin.to_owned());
                self.arrays |= ARRAYS.contains(&name);
            }
            _ => {}
        }
        match value {
            Some(value) => {
                let known = (!goes_on).then_some(value);
                self.set(name, known.is_some_and(arithmetic::is_number), known);
            }
            // `export PATH` and `readonly x` leave the value; `local x` does not.
            None if self.names.is_dangerous_variable(name) => self.assign(name, false),
            None => {}
        }
    }

    /// An argument of `read` and its like.
    fn named(&mut self, builtin: &str, word: &Word) {
        let (text, goes_on) = beginning(word);
        if goes_on || text.contains(['[', '{', '*', '?']) {
            return self.concern(format!(
                "`{builtin}` sets a variable that is not plainly named"
            ));
        }
        self.unsets |= builtin == "unset";
        if text.starts_with('-') {
            self.arrays |= text.contains('a');
            // A name may follow its option at once, as in `-aPATH` and `-raPATH`.
            let ends = text.char_indices().skip(2).map(|(at, _)| &text[at..]);
            for name in ends.filter(|name| arithmetic::is_name(name)) {
                self.assign(name, false);
            }
        } else if arithmetic::is_name(&text) {
            self.assign(&text, false);
        }
    }

    /// `printf -v name` sets a variable, and so does `%n`.
    fn printf(&mut self, arguments: &[Word]) {
        let mut rest = arguments;
        while let Some((first, after)) = rest.split_first() {
            let known = argument(first);
            if known.literal().is_none() && known.may_be_option() {
                return self.concern("the first argument of `printf` is only known when it runs");
            }
            let (text, goes_on) = beginning(first);
            let Some(attached) = text.strip_prefix("-v") else {
                break;
            };
            let (name, after) = match (attached, after.split_first()) {
                ("", Some((name, after))) => (beginning(name), after),
                _ => ((attached.to_owned(), goes_on), after),
            };
            match name {
                (name, false) if arithmetic::is_name(&name) => self.assign(&name, false),
                _ => {
                    return self.concern("`printf -v` sets a variable that is not plainly named");
                }
            }
            rest = after;
        }
        let rest = match rest {
            [end, after @ ..] if argument(end).literal() == Some("--") => after,
            all => all,
        };
        if let [format, _, ..] = rest
            && argument(format).literal().is_none_or(stores)
        {
            self.concern("`printf` has a format that may set a variable");
        }
    }

    pub(super) fn assignment(&mut self, assignment: &Assignment) {
        if let Some(index) = &assignment.index {
            self.arrays = true;
            self.arithmetic(index);
            // Elsewhere than in bash `x[a > b]=1` is a command.
            if index.contains(|char: char| !char.is_ascii_alphanumeric() && !"_$+-*".contains(char))
            {
                self.concern("it sets an element whose subscript is not plain");
            }
        }
        match &assignment.value {
            AssignmentValue::Scalar(word) => {
                self.word(word);
                let known = argument(word);
                self.set(&assignment.name, is_number(word), known.literal());
            }
            AssignmentValue::Array(words) => {
                self.arrays = true;
                self.words(words);
                let numbers = words.iter().all(is_number);
                self.assign(&assignment.name, numbers);
            }
        }
    }

    /// A variable gets a value that is not known, or not looked at.
    pub(super) fn assign(&mut self, name: &str, number: bool) {
        self.set(name, number, None);
    }

    /// A variable gets this value, if it is known.
    fn set(&mut self, name: &str, number: bool, value: Option<&str>) {
        if !arithmetic::is_name(name) {
            self.concern("it sets a variable that is not plainly named");
        } else if self.names.is_dangerous_variable(name) {
            self.concern(format!("it sets {name}, which changes what programs do"));
        } else if matches!(name, "LANG" | "LC_ALL" | "LC_CTYPE") && !value.is_some_and(is_locale) {
            self.concern(format!(
                "it sets {name}, which may change what the bytes of a text mean"
            ));
        } else if !number
            && self
                .names
                .counting_variables
                .iter()
                .any(|known| known == name)
        {
            self.concern(format!("it sets {name}, whose value bash counts"));
        }
        let known = self.assigned.entry(name.to_owned()).or_insert(true);
        *known &= number;
    }
}

/// Whether a shell reads quotes and operators in this locale as they are written here:
/// in others a backslash may be the second byte of a character.
fn is_locale(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    matches!(value.as_str(), "" | "c" | "posix")
        || value.ends_with(".utf-8")
        || value.ends_with(".utf8")
}

/// Whether a format of `printf` has `%n`, which stores how much came out.
fn stores(format: &str) -> bool {
    let format = format.replace("%%", "");
    format.split('%').skip(1).any(|rest| {
        let conversion = rest.trim_start_matches(|c| "-+ #'0123456789.*$hlLjzt".contains(c));
        conversion.starts_with('n')
    })
}
