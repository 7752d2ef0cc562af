//! What is said behind a command that failed in a sandbox, perhaps because of it.

use std::path::Path;

use aho_corasick::AhoCorasick;

use crate::local::Sandbox;
use crate::local::sandbox::Bounds;

/// What programs print when a change or a connection was refused.
const SIGNS: [&str; 15] = [
    "permission denied",
    "operation not permitted",
    "eacces",
    "eperm",
    "read-only file system",
    "cross-device link",
    "could not resolve",
    "name resolution",
    "network is unreachable",
    "failed to connect",
    "could not connect",
    "couldn't connect",
    "no matching distribution",
    "unable to open database",
    "readonly database",
];
/// Bytes of the end of a chunk that the next one is looked through with.
const OVERLAP: usize = 32;

/// What `bounds` allow in `directory`, in one clause.
pub(super) fn allowed(bounds: &Bounds, directory: &Path) -> String {
    let mut allowed = match bounds.sandbox {
        Sandbox::Off => return String::new(),
        Sandbox::ReadOnly => "the sandbox of this session allows no changes of files".to_owned(),
        Sandbox::WorkspaceWrite => {
            let others: String = bounds
                .writable
                .iter()
                .map(|path| format!(", `{}`", path.display()))
                .collect();
            let directory = directory.display();
            format!(
                "the sandbox of this session allows changes in `{directory}`{others} and the temporary directories only"
            )
        }
    };
    if !bounds.network {
        allowed.push_str(", and commands have no network");
    }
    allowed.push_str(
        "; the user can allow more: `hermitcrab run` has --allow-write DIR, --net and --sandbox off",
    );
    allowed
}

/// Looks for signs of a refusal in the output of a command.
pub(super) struct Signs {
    signs: AhoCorasick,
    before: Vec<u8>,
    seen: bool,
}

impl Signs {
    pub(super) fn new() -> Self {
        let signs = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(SIGNS)
            .expect("plain texts");
        Self {
            signs,
            before: Vec::new(),
            seen: false,
        }
    }

    /// The next piece of output.
    pub(super) fn look(&mut self, output: &[u8]) {
        if self.seen {
            return;
        }
        let head = &output[..output.len().min(OVERLAP)];
        self.before.extend_from_slice(head);
        self.seen = self.signs.is_match(&*self.before) || self.signs.is_match(output);
        let tail = match output.len() < OVERLAP {
            true => &self.before[self.before.len().saturating_sub(OVERLAP)..],
            false => &output[output.len() - OVERLAP..],
        };
        self.before = tail.to_vec();
    }

    /// Whether there was one.
    pub(super) fn were_seen(&self) -> bool {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_seen_across_pieces() {
        let text = b"bash: /etc/x: Permission denied\n";
        for at in 0..text.len() {
            let mut signs = Signs::new();
            for piece in [&text[..at], &text[at..]] {
                signs.look(piece);
            }
            assert!(signs.were_seen(), "{at}");
            let mut bytes = Signs::new();
            text.iter().for_each(|byte| bytes.look(&[*byte]));
            assert!(bytes.were_seen());
        }
        let mut signs = Signs::new();
        signs.look(b"all is well");
        assert!(!signs.were_seen());
    }
}
