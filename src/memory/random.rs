//! Randomness of one environment: a seeded ChaCha stream, saved with it.
//!
//! The core draws no entropy. Whatever asks for random
//! bytes while a command runs (`getrandom`'s custom backend) gets them from the
//! stream of the environment whose command it is.

use std::cell::RefCell;
use std::rc::Rc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A seeded stream of random bytes. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Random(Rc<RefCell<ChaCha8Rng>>);

/// Where in its stream a [`Random`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RandomState {
    seed: [u8; 32],
    position: u128,
}

impl Random {
    /// The stream that belongs to `seed`, from its start.
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self(Rc::new(RefCell::new(ChaCha8Rng::from_seed(seed))))
    }

    /// Fills `bytes`.
    pub(crate) fn fill(&self, bytes: &mut [u8]) {
        self.0.borrow_mut().fill_bytes(bytes);
    }

    /// Whether nobody is in the middle of drawing from it.
    pub(crate) fn is_apart(&self) -> bool {
        self.0.try_borrow_mut().is_ok()
    }

    /// The next 32 random bits.
    pub(crate) fn next_u32(&self) -> u32 {
        self.0.borrow_mut().next_u32()
    }

    /// The next 64 random bits.
    pub(crate) fn next_u64(&self) -> u64 {
        self.0.borrow_mut().next_u64()
    }

    /// Where the stream is.
    pub(crate) fn state(&self) -> RandomState {
        let random = self.0.borrow();
        RandomState {
            seed: random.get_seed(),
            position: random.get_word_pos(),
        }
    }

    /// Goes to where `state` was taken.
    pub(crate) fn restore(&self, state: &RandomState) {
        let mut random = ChaCha8Rng::from_seed(state.seed);
        random.set_word_pos(state.position);
        *self.0.borrow_mut() = random;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_streams_and_states_resume() {
        let (a, b) = (Random::new([7; 32]), Random::new([7; 32]));
        assert_eq!(a.next_u64(), b.next_u64());
        assert_ne!(a.next_u64(), Random::new([8; 32]).next_u64());
        let state = a.state();
        let after = a.next_u32();
        b.restore(&state);
        assert_eq!(b.next_u32(), after);
    }
}
