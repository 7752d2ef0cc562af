//! `KnownFiles`: what an agent knows of files, so that it does not overwrite what it does
//! not know.
//!
//! Reading and writing tools note the whole contents that they have passed on. A tool
//! that would replace or delete a whole file asks first whether it still holds what
//! was noted. A tool that replaces a piece of text need not: it finds that piece, and
//! keeps the rest.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use bytes::Bytes;

use crate::text::{SortedMap, decode_file, unified_diff};

/// Bytes of contents that are kept, together; the oldest are forgotten.
const MAX_KEPT_BYTES: usize = 8 << 20;
/// Files that are known at most.
const MAX_FILES: usize = 10_000;
/// Lines of context around a change.
const CONTEXT: usize = 2;
/// Bytes of contents that are compared; of longer ones no diff is shown.
const MAX_COMPARED_BYTES: usize = 256 << 10;
/// Bytes of a diff that are shown.
const MAX_DIFF_BYTES: usize = 8 << 10;

/// The files that one agent knows. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct KnownFiles(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    /// By absolute path, with when it was noted.
    files: SortedMap<String, (u64, Bytes)>,
    bytes: usize,
    next: u64,
}

impl KnownFiles {
    /// The agent knows what the file at `path` (absolute) holds.
    pub fn note(&self, path: &str, content: Bytes) {
        let mut state = self.0.borrow_mut();
        state.forget(path);
        if content.len() > MAX_KEPT_BYTES {
            return;
        }
        state.bytes += content.len();
        state.next += 1;
        let now = state.next;
        state.files.insert(path.to_owned(), (now, content));
        while state.bytes > MAX_KEPT_BYTES || state.files.len() > MAX_FILES {
            let oldest = state.files.iter().min_by_key(|(_, (when, _))| *when);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else {
                return;
            };
            state.forget(&oldest);
        }
    }

    /// What has changed in the file at `path`, which holds `current`, since the agent saw
    /// it; none if nothing did or it never saw it. It has seen it then.
    pub fn change(&self, path: &str, current: &Bytes) -> Option<String> {
        let noted = self
            .0
            .borrow()
            .files
            .get(path)
            .map(|(_, noted)| noted.clone())?;
        if noted == *current {
            return None;
        }
        self.note(path, current.clone());
        let mut message =
            "it changed since it was last read or written here. Do it again if that is meant"
                .to_owned();
        if noted.len().max(current.len()) <= MAX_COMPARED_BYTES
            && let (Ok((old, _)), Ok((new, _))) = (decode_file(&noted), decode_file(current))
        {
            let diff = unified_diff(&old, &new, CONTEXT);
            let shown = &diff[..diff.floor_char_boundary(MAX_DIFF_BYTES)];
            let _ = write!(message, ". What changed:\n\n{shown}");
            if shown.len() < diff.len() {
                message.push_str("…\n[more has changed; read the file]");
            }
        }
        Some(message)
    }
}

impl State {
    fn forget(&mut self, path: &str) {
        if let Some((_, content)) = self.files.remove(path) {
            self.bytes -= content.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_once() {
        let known = KnownFiles::default();
        let (old, new) = (Bytes::from("a\nb\n"), Bytes::from("a\nc\n"));
        assert_eq!(known.change("/f", &new), None);
        known.note("/f", old.clone());
        assert_eq!(known.change("/f", &old), None);
        let told = known.change("/f", &new).expect("a change");
        assert!(told.contains("-b\n+c"), "{told}");
        assert_eq!(known.change("/f", &new), None);
    }

    #[test]
    fn it_is_bounded() {
        let known = KnownFiles::default();
        let large = Bytes::from(vec![b'x'; MAX_KEPT_BYTES / 2]);
        for path in ["/a", "/b", "/c"] {
            known.note(path, large.clone());
        }
        let other = Bytes::from("y");
        assert_eq!(known.change("/a", &other), None);
        assert!(
            known
                .change("/c", &other)
                .is_some_and(|told| told.len() < 10_000)
        );
        for number in 0..MAX_FILES + 5 {
            known.note(&format!("/{number}"), other.clone());
        }
        assert_eq!(known.0.borrow().files.len(), MAX_FILES);
    }
}
