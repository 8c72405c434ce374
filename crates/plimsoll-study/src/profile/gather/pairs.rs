//! Prompts with their outputs: each up to a limit, a sample beyond it.

use super::Gathering;

/// Pairs of lengths. A row is in the sample when a number made of the row itself is small enough, and that bound is halved
/// until the sample fits: so it depends neither on the order of rows nor on how the log is divided.
#[derive(Clone, Debug)]
pub(in crate::profile) struct Pairs {
    most: usize,
    /// How often the bound was halved.
    halved: u32,
    kept: Vec<Pair>,
}

/// A row's lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::profile) struct Pair {
    mark: u32,
    pub prompt: u32,
    pub output: u32,
    pub class: u32,
    pub weight: f32,
}

impl Pairs {
    pub fn new(shape: &Gathering) -> Self {
        let most = shape.exact_rows.max(1);
        // As often as it will have to be in the end.
        let over = shape.rows_expected.unwrap_or(0).saturating_sub(1) / most;
        let halved = u64::BITS - over.leading_zeros();
        Self { most: most as usize, halved: halved.min(31), kept: Vec::new() }
    }

    #[inline]
    pub fn push(&mut self, at: Option<i64>, prompt: u32, output: u32, class: u32, weight: f64) {
        let mark = mark(at, prompt, output, class);
        if self.takes(mark) {
            let weight = weight.min(f64::from(f32::MAX)) as f32;
            self.kept.push(Pair { mark, prompt, output, class, weight });
            if self.kept.len() > self.most {
                self.fit();
            }
        }
    }

    pub fn append(&mut self, mut later: Self) {
        self.halved = self.halved.max(later.halved);
        self.kept.append(&mut later.kept);
        let halved = self.halved;
        self.kept.retain(|pair| below(pair.mark, halved));
        self.fit();
    }

    fn takes(&self, mark: u32) -> bool {
        below(mark, self.halved)
    }

    #[cold]
    fn fit(&mut self) {
        while self.kept.len() > self.most && self.halved < 32 {
            self.halved += 1;
            let halved = self.halved;
            self.kept.retain(|pair| below(pair.mark, halved));
        }
    }

    /// Puts them in an order of their own, so that sums over them do not depend on the order they came in.
    pub fn sort(&mut self) {
        self.kept.sort_unstable_by_key(|pair| {
            (pair.prompt, pair.output, pair.class, pair.mark, pair.weight.to_bits())
        });
    }

    /// Those that were kept.
    pub fn kept(&self) -> &[Pair] {
        &self.kept
    }

    /// Whether all were.
    pub fn exact(&self) -> bool {
        self.halved == 0
    }
}

fn below(mark: u32, halved: u32) -> bool {
    u64::from(mark) >> (32 - halved.min(32)) == 0
}

/// A number made of the row, as good as a chance one (SplitMix64).
fn mark(at: Option<i64>, prompt: u32, output: u32, class: u32) -> u32 {
    let lengths = u64::from(prompt) << 32 | u64::from(output);
    let x = scramble(lengths).wrapping_add(at.unwrap_or(-1) as u64);
    (scramble(x ^ u64::from(class).rotate_left(40)) >> 32) as u32
}

fn scramble(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
