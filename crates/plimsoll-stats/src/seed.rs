//! One seed, many named streams.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The one number that makes a study repeatable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed(u64);

impl Seed {
    /// Any number will do; it is printed with every result.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// As a number, for printing.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The stream of this name: independent of every other name, equal for an equal name.
    pub fn stream(self, name: &str) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(self.0, name.as_bytes())))
    }

    /// The seed of one run of several.
    pub fn run(self, index: u64) -> Self {
        Self(mix(self.0, &index.to_le_bytes()))
    }
}

/// FNV-1a over the bytes, started from the seed and finished by SplitMix64's scrambler, so that
/// neighbouring seeds and similar names share nothing.
fn mix(seed: u64, bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ scramble(seed);
    scramble(
        bytes.iter().fold(start, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }),
    )
}

fn scramble(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A stream of random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Uniform in `[0, 1)`, from the upper 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `(0, 1]`, whose logarithm is finite.
    pub fn uniform_positive(&mut self) -> f64 {
        1.0 - self.uniform()
    }

    /// Exponential with mean one.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform_positive())
    }

    /// A stream beside this one, so far ahead of it that the two never meet: what is drawn from one does not shift the other.
    pub fn aside(&self) -> Self {
        let mut ahead = self.0.clone();
        ahead.long_jump();
        Self(ahead)
    }

    /// Uniform over `0..n`; zero for `n == 0`.
    pub fn index(&mut self, n: usize) -> usize {
        // Multiply-shift: the bias is below n / 2^64.
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    pub(crate) fn generator(&mut self) -> &mut Xoshiro256PlusPlus {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_and_repeatable() {
        let draws = |seed: u64, name: &str| {
            let mut stream = Seed::new(seed).stream(name);
            [stream.uniform(), stream.uniform(), stream.uniform()]
        };
        assert_eq!(draws(7, "arrivals"), draws(7, "arrivals"));
        assert_ne!(draws(7, "arrivals"), draws(7, "lengths"));
        assert_ne!(draws(7, "arrivals"), draws(8, "arrivals"));
        assert_ne!(Seed::new(7).run(0), Seed::new(7).run(1));
    }

    /// A fingerprint: published results name a seed, so the draws may never change.
    #[test]
    fn the_generator_is_pinned() {
        let mut stream = Seed::new(7).stream("arrivals");
        let draws: Vec<u64> = (0..3).map(|_| stream.0.next_u64()).collect();
        assert_eq!(draws, PINNED);
    }
    const PINNED: [u64; 3] = [3360629128196303742, 2767405899753838504, 5208709368696452140];

    #[test]
    fn uniform_fills_its_range() {
        let mut stream = Seed::new(1).stream("uniform");
        let draws: Vec<f64> = (0..100_000).map(|_| stream.uniform()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        // Standard error 1/sqrt(12 n) = 0.0009; five of them.
        assert!((mean - 0.5).abs() < 0.0046, "{mean}");
        assert!(draws.iter().all(|x| (0.0..1.0).contains(x)));
        assert!((0..1000).all(|_| stream.index(3) < 3));
        assert_eq!(stream.index(0), 0);
    }
}
