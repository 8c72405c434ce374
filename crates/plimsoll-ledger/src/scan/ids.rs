//! Small numbers for what is met again and again.

use std::hash::{BuildHasherDefault, Hasher};

/// It is only asked for the number of a key, never in which order keys are.
#[expect(clippy::disallowed_types, reason = "never iterated, so that its order cannot matter")]
type Numbers<const N: usize> =
    std::collections::HashMap<[u32; N], u32, BuildHasherDefault<Multiply>>;

/// Keys, numbered in the order in which they are met.
#[derive(Default)]
pub(super) struct Ids<const N: usize> {
    numbers: Numbers<N>,
    keys: Vec<[u32; N]>,
}

impl<const N: usize> Ids<N> {
    pub(super) fn of(&mut self, key: [u32; N]) -> usize {
        let next = self.keys.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        number as usize
    }

    pub(super) fn keys(&self) -> &[[u32; N]] {
        &self.keys
    }
}

/// Keys are a few small numbers: a multiplication for two of them spreads them well enough.
#[derive(Default)]
pub(super) struct Multiply(u64);

impl Multiply {
    fn word(&mut self, word: u64) {
        // An odd number without a pattern: the fraction of the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        // The product is best at its upper end, and tables look at the lower one, too.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_usize(&mut self, _: usize) {
        // How many numbers a key has is the same for all of them.
    }
}
