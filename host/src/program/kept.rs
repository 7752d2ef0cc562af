//! The files that a program keeps between calls, so that a call tells it only
//! what has changed: those of the sandboxes that called last.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::tree::Tree;

/// A program's name in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeKey {
    sandbox: u64,
    name: String,
}

impl TreeKey {
    pub(super) fn new(sandbox: u64, name: &str) -> Self {
        Self {
            sandbox,
            name: name.to_owned(),
        }
    }
}

/// Trees of some places, the one that was put last at the end.
pub(super) struct Kept {
    most: usize,
    trees: Mutex<Vec<(TreeKey, u64, Tree)>>,
}

impl Kept {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            trees: Mutex::default(),
        }
    }

    /// The tree of a place in the state `since`. Any other one is out of date
    /// then, and none is left.
    pub(super) fn take(&self, place: &TreeKey, since: Option<u64>) -> Option<Tree> {
        let mut trees = self.lock();
        let index = trees.iter().position(|(other, ..)| other == place)?;
        let (_, state, tree) = trees.remove(index);
        (since == Some(state)).then_some(tree)
    }

    /// Keeps the tree of a place in a state; the oldest one goes if there are
    /// too many.
    pub(super) fn put(&self, place: TreeKey, state: u64, tree: Tree) {
        let mut trees = self.lock();
        trees.retain(|(other, ..)| *other != place);
        if trees.len() >= self.most {
            trees.remove(0);
        }
        trees.push((place, state, tree));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(TreeKey, u64, Tree)>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::tree::Room;

    #[test]
    fn the_last_places_keep_their_last_state() {
        let kept = Kept::new(2);
        let place = |sandbox| TreeKey::new(sandbox, "python3");
        let put = |sandbox, state| kept.put(place(sandbox), state, Tree::new(Room::default()));
        let has = |sandbox, since| kept.take(&place(sandbox), since).is_some();
        put(1, 1);
        assert!(!has(1, None), "told from nothing");
        assert!(!has(1, Some(1)), "out of date since");
        put(1, 2);
        put(1, 3);
        put(2, 7);
        assert!(has(1, Some(3)));
        assert!(!has(1, Some(3)), "taken");
        assert!(!has(2, Some(6)), "another state");
        for sandbox in 1..=3 {
            put(sandbox, 1);
        }
        assert!(!has(1, Some(1)), "too many");
        assert!(has(2, Some(1)) && has(3, Some(1)));
        assert!(kept.take(&TreeKey::new(2, "py"), Some(1)).is_none());
    }
}
