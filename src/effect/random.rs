//! Entropy of an instance: one ChaCha stream from the seed given at open.
//! The core never asks anyone else, so a replay draws the same numbers.

use std::cell::RefCell;
use std::rc::Rc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A deterministic random stream. Clones share one state.
#[derive(Clone)]
pub struct Random(Rc<RefCell<ChaCha8Rng>>);

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(Rc::new(RefCell::new(ChaCha8Rng::from_seed(seed))))
    }

    /// The next `N` random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.borrow_mut().fill_bytes(&mut bytes);
        bytes
    }

    /// A number in `0.0..1.0`, for jitter.
    pub fn unit(&self) -> f64 {
        // 53 bits fill the mantissa of a double.
        (self.0.borrow_mut().next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A random UUID (version 4), for ids.
    pub fn uuid(&self) -> String {
        uuid::Builder::from_random_bytes(self.bytes())
            .into_uuid()
            .to_string()
    }
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Random")
    }
}
