//! The same time in whole picoseconds, tabulated once per pool: what a simulator asks a billion times.

use crate::around::Launch;
use crate::rates::{Rates, Term};
use crate::step::{Batch, floor, host_seconds, kv_seconds, step};
use crate::work::Work;

/// What a step carries, in whole tokens and sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepLoad {
    /// Prompt tokens.
    pub prefill: u64,
    /// Twice the pairs of a prompt token and a token it sees, so that halves stay whole.
    pub pairs_doubled: u64,
    /// Prompts, whole or in part.
    pub prompts: u64,
    /// Sequences that generate a token.
    pub decodes: u64,
    /// Their contexts together.
    pub context: u64,
    /// The longest of them; none or less than the mean is taken as all alike.
    pub longest: u64,
    /// Tokens that were guessed for them and are verified with theirs.
    pub drafts: u64,
}

impl StepLoad {
    /// Adds a part of a prompt that comes after `before` tokens of it.
    pub fn add_chunk(&mut self, tokens: u64, before: u64) {
        self.prefill += tokens;
        self.pairs_doubled += tokens * (2 * before + tokens);
        self.prompts += 1;
    }

    /// Adds a sequence that generates a token and sees so many.
    pub fn add_decode(&mut self, context: u64) {
        self.decodes += 1;
        self.context += context;
        self.longest = self.longest.max(context);
    }

    /// Tokens that its sequences lack together to be as long as the longest of them.
    #[inline]
    pub fn uneven(&self) -> u64 {
        self.decodes.saturating_mul(self.longest).saturating_sub(self.context)
    }

    /// The same in the numbers of the closed form.
    pub fn batch(&self) -> Batch {
        Batch {
            prefill: self.prefill as f64,
            pairs: self.pairs_doubled as f64 / 2.0,
            prompts: self.prompts as f64,
            // A guess is computed and sampled as a token of its own; its context is read with its sequence's.
            decodes: (self.decodes + self.drafts) as f64,
            context: self.context as f64,
            uneven: self.uneven() as f64,
        }
    }
}

/// A stretch of contexts on which the time of a decode step is affine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodePiece {
    /// Picoseconds at a context sum of zero, were the piece to reach that far.
    pub base: u64,
    /// Picoseconds of each token of context.
    pub slope: u64,
    /// The piece holds for context sums up to this one.
    pub until: u64,
}

/// A pool's step times, in whole picoseconds.
///
/// A step's time is a sum of functions of one number each: of its tokens, of its sequences, of pairs, of context. Those of tokens and sequences are
/// tables; the rest are whole coefficients. Coefficients are rounded up, so that no rounding makes a step faster than physics.
#[derive(Clone, Debug, PartialEq)]
pub struct StepModel {
    /// By how many sequences there are to spread over stages and copies: one, two, and so on; the last for all that have enough.
    shares: Vec<Share>,
    host: HostTimes,
}

/// The times where stages and copies have so many sequences to share.
#[derive(Clone, Debug, PartialEq)]
struct Share {
    tokens: Table,
    sampled: Table,
    /// Picoseconds of each prompt token.
    prefill: u64,
    attention: Vec<Kind>,
    /// The largest step that is a captured graph, or one in pieces.
    graph_tokens: u64,
}

/// Attention layers with one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    /// Picoseconds of a token of context, in a step of decodes alone and in one with prompts.
    slope: u64,
    mixed: u64,
    /// Picoseconds of a token that a sequence lacks to be as long as the longest.
    uneven: u64,
    /// Femtoseconds of half a pair.
    half_pair: u64,
    window: u64,
}

/// Picoseconds that the host needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HostTimes {
    piece: u64,
    eager: u64,
    /// Of a launch: each step, and each sequence.
    own: [u64; 2],
}

/// A function of a whole number: each value up to `EXACT`, then every `STRIDE`th with straight lines between.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    exact: Vec<u64>,
    coarse: Vec<u64>,
}

const EXACT: u64 = 1024;
const STRIDE: u64 = 64;
/// Tables end here; beyond, the last slope goes on.
const MOST: u64 = 1 << 16;

impl Table {
    fn of(most: u64, f: impl Fn(f64) -> f64) -> Self {
        let most = most.clamp(2, MOST);
        let at = |n: u64| picoseconds(f(n as f64));
        let exact: Vec<u64> = (0..=EXACT.min(most)).map(at).collect();
        let mut coarse = Vec::new();
        if most > EXACT {
            // One knot past the end, for the last slope.
            coarse
                .extend((0..=(most - EXACT).div_ceil(STRIDE) + 1).map(|i| at(EXACT + i * STRIDE)));
        }
        Self { exact, coarse }
    }

    #[inline]
    fn at(&self, n: u64) -> u64 {
        if let Some(value) = self.exact.get(n as usize) {
            return *value;
        }
        self.between(n)
    }

    fn between(&self, n: u64) -> u64 {
        let knots = if self.coarse.len() >= 2 { &self.coarse } else { &self.exact };
        let (origin, stride) = if self.coarse.len() >= 2 { (EXACT, STRIDE) } else { (0, 1) };
        let index = (((n - origin) / stride) as usize).min(knots.len() - 2);
        let (low, high) = (knots[index], knots[index + 1]);
        let past = n - origin - index as u64 * stride;
        // Rounded up.
        let rise = u128::from(high.saturating_sub(low)) * u128::from(past);
        low.saturating_add(u64::try_from(rise.div_ceil(u128::from(stride))).unwrap_or(u64::MAX))
    }
}

/// Whole picoseconds, rounded up; what does not fit stops at the end of the type, 213 days.
fn picoseconds(seconds: f64) -> u64 {
    (seconds * 1e12).ceil().max(0.0) as u64
}

/// Fewer sequences than stages times copies get tables of their own up to this many; beyond, those of the next smaller number, which are slower.
const SCARCE: u64 = 16;

impl StepModel {
    /// Tabulates the closed form for steps of up to `tokens_most` tokens.
    pub fn new(work: &Work, rates: &Rates, tokens_most: u64) -> Self {
        let enough = (work.pipeline * work.attention_replicas) as u64;
        let mut shares: Vec<Share> = (1..enough.min(SCARCE))
            .map(|n| Share::of(work, rates, tokens_most, n as f64))
            .collect();
        shares.push(Share::of(work, rates, tokens_most, enough as f64));
        let host =
            |tokens: f64, prefill: bool| picoseconds(host_seconds(work, rates, tokens, prefill));
        let own = [Term::LaunchSeconds, Term::LaunchSequenceSeconds];
        let host = HostTimes {
            piece: host(0.0, true),
            eager: host(f64::INFINITY, true),
            own: own.map(|term| picoseconds(rates.get(term))),
        };
        let model = Self { shares, host };
        model.assert_floors(work, rates);
        model
    }

    /// The same where everything takes so many times as long, at least once.
    #[must_use]
    pub fn slower(mut self, times: f64) -> Self {
        assert!(times >= 1.0, "nothing is faster than itself: {times}");
        let slow = |ps: &mut u64| *ps = (*ps as f64 * times).ceil() as u64;
        for share in &mut self.shares {
            for table in [&mut share.tokens, &mut share.sampled] {
                table.exact.iter_mut().chain(&mut table.coarse).for_each(slow);
            }
            slow(&mut share.prefill);
            for Kind { slope, mixed, uneven, half_pair, .. } in &mut share.attention {
                [slope, mixed, uneven, half_pair].into_iter().for_each(slow);
            }
        }
        let HostTimes { piece, eager, own: [own, each] } = &mut self.host;
        [piece, eager, own, each].into_iter().for_each(slow);
        self
    }

    /// No step is ever faster than physics: checked on the coefficients, where it can be checked once for all.
    fn assert_floors(&self, work: &Work, rates: &Rates) {
        let alone = self.decode_piece(1, 1, 0);
        let least = floor(work, rates, &Batch::decode(1.0, 0.0));
        assert!(
            alone.base as f64 >= least * 1e12 * 0.999_999,
            "a step of one token beats the memory bandwidth"
        );
        let bytes = work.kv_bytes() / rates.sheet.bandwidth;
        let slope: u64 = self.shares[0].attention.iter().map(|k| k.slope).sum();
        assert!(
            slope as f64 >= bytes * 1e12 * 0.999_999,
            "a token of context is read faster than the memory allows"
        );
    }

    /// The tables for so many sequences.
    #[inline]
    fn share(&self, sequences: u64) -> &Share {
        let last = self.shares.len() - 1;
        &self.shares[(sequences.saturating_sub(1) as usize).min(last)]
    }

    /// The time of a step where others like it come before and after, in picoseconds: the slower of device and host decides.
    #[inline]
    pub fn step(&self, load: &StepLoad) -> u64 {
        let generated = load.decodes + load.drafts;
        let tokens = load.prefill + generated;
        if tokens == 0 {
            return 0;
        }
        let share = self.share(load.decodes + load.prompts);
        self.device(load).max(self.host(share, tokens, load.prefill > 0))
    }

    /// What the device needs for a step, were the host infinitely fast.
    #[inline]
    pub fn device(&self, load: &StepLoad) -> u64 {
        let generated = load.decodes + load.drafts;
        let tokens = load.prefill + generated;
        if tokens == 0 {
            return 0;
        }
        let share = self.share(load.decodes + load.prompts);
        let mut time = share
            .tokens
            .at(tokens)
            .saturating_add(share.sampled.at(generated + load.prompts.min(load.prefill)))
            .saturating_add(share.prefill.saturating_mul(load.prefill));
        for kind in &share.attention {
            let seen = load.context.min(kind.window.saturating_mul(generated));
            let (slope, lacking) = if load.prefill > load.prompts {
                (kind.mixed, 0)
            } else {
                (kind.slope, load.uneven())
            };
            time = time.saturating_add(slope.saturating_mul(seen));
            time = time.saturating_add(kind.uneven.saturating_mul(lacking));
            let doubled =
                load.pairs_doubled.min(kind.window.saturating_mul(2).saturating_mul(load.prefill));
            let pairs = (u128::from(kind.half_pair) * u128::from(doubled)).div_ceil(1000);
            time = time.saturating_add(u64::try_from(pairs).unwrap_or(u64::MAX));
        }
        time
    }

    /// What the host of an asynchronous engine needs for a step.
    #[inline]
    pub fn launch(&self, load: &StepLoad) -> Launch<u64> {
        let sequences = load.decodes + load.prompts;
        let share = self.share(sequences);
        let [own, each] = self.host.own;
        let own = own.saturating_add(each.saturating_mul(sequences));
        let kernels = self.host(share, load.prefill + load.decodes + load.drafts, load.prefill > 0);
        // A captured decode step's is hidden, see `launch` of the closed form.
        let empty = || share.tokens.at(load.decodes).saturating_add(share.sampled.at(load.decodes));
        let own = if kernels == 0 { own.min(empty()) } else { own };
        Launch { before: own / 2, whole: own.saturating_add(kernels) }
    }

    /// What the host needs at least for a step.
    #[inline]
    fn host(&self, share: &Share, tokens: u64, prefill: bool) -> u64 {
        match (tokens <= share.graph_tokens, prefill) {
            (true, false) => 0,
            (true, true) => self.host.piece,
            (false, _) => self.host.eager,
        }
    }

    /// The affine piece of the device's time of a decode step of so many sequences that holds at this context sum. They lack `uneven` tokens to be all as
    /// long as the longest, and go on doing so while each grows by a token a step.
    #[inline]
    pub fn device_piece(&self, decodes: u64, context: u64, uneven: u64) -> DecodePiece {
        let share = self.share(decodes);
        let mut base = share.tokens.at(decodes).saturating_add(share.sampled.at(decodes));
        let (mut slope, mut until) = (0u64, u64::MAX);
        for kind in &share.attention {
            base = base.saturating_add(kind.uneven.saturating_mul(uneven));
            let full = kind.window.saturating_mul(decodes);
            if context <= full {
                slope = slope.saturating_add(kind.slope);
                until = until.min(full);
            } else {
                base = base.saturating_add(kind.slope.saturating_mul(full));
            }
        }
        DecodePiece { base, slope, until }
    }

    /// The same of a step where others like it come before and after: the slower of device and host decides.
    #[inline]
    pub fn decode_piece(&self, decodes: u64, context: u64, uneven: u64) -> DecodePiece {
        let DecodePiece { base, slope, until } = self.device_piece(decodes, context, uneven);
        let host = self.host(self.share(decodes), decodes, false);
        if host <= base {
            return DecodePiece { base, slope, until };
        }
        // Eager: the host's time, until the device takes longer.
        let crossing = (host - base).checked_div(slope).unwrap_or(u64::MAX);
        if context <= crossing {
            return DecodePiece { base: host, slope: 0, until: until.min(crossing) };
        }
        DecodePiece { base, slope, until }
    }
}

impl Share {
    /// `sequences` may be no more than stages times copies.
    fn of(work: &Work, rates: &Rates, tokens_most: u64, sequences: f64) -> Self {
        let (stages, copies) = work.spread(sequences);
        // As many stages and copies as have something to do, and no host: its time is a maximum, not a term, and is put back in `step`.
        let device = Work {
            pipeline: stages,
            attention_replicas: copies,
            graph_tokens: Some(f64::INFINITY),
            ..work.clone()
        };
        let shares = stages * copies;
        // A decode step without context is what depends on tokens and what depends on sequences; the latter is taken apart.
        let head = |sampled: f64| {
            let n = sampled / shares;
            let [flops, bytes] = rates.plain;
            crate::step::joined(
                n * work.head.flops / (rates.sheet.peak_plain * flops),
                work.head.bytes / (rates.sheet.bandwidth * bytes),
            )
        };
        let sequence = |n: f64| {
            let state = 2.0 * work.state_bytes / (rates.get(Term::KvBytes) * rates.sheet.bandwidth);
            let adapter = work.adapter.bytes / (rates.plain[1] * rates.sheet.bandwidth);
            n / shares * (rates.get(Term::SequenceSeconds) + state + adapter)
        };
        let of_tokens = |n: f64| match n {
            n if n <= 0.0 => 0.0,
            // A table begins where every share has a sequence; below, it is not used.
            n => {
                let n = n.max(sequences);
                step(&device, rates, &Batch::decode(n, 0.0)).total() - head(n) - sequence(n)
            }
        };
        let tokens = Table::of(tokens_most, of_tokens);
        let sampled =
            Table::of(tokens_most.min(8192), |n| if n > 0.0 { head(n) + sequence(n) } else { 0.0 });
        let rate = rates.sheet.peak_plain * rates.get(Term::AttentionFlops);
        let mut prefill = work.layers * rates.get(Term::TokenSeconds) / shares;
        let mut attention = Vec::new();
        for a in &work.attention {
            let pair = a.layers * a.prefill_flops / rate / shares;
            prefill += rates.get(Term::AttentionRamp) * pair;
            let token = a.layers * kv_seconds(a.kv_bytes, a.decode_flops, rates) / shares;
            let uneven = if a.window.is_some() { 0.0 } else { rates.get(Term::UnevenShare) };
            attention.push(Kind {
                slope: picoseconds(token),
                mixed: picoseconds(token * work.mixed_kv),
                uneven: picoseconds(token * uneven),
                half_pair: (pair / 2.0 * 1e15).ceil().clamp(0.0, 1e18) as u64,
                window: a.window.map_or(u64::MAX, |w| w as u64),
            });
        }
        // Each stage launches its own part.
        let graph_tokens = work.graph_tokens.map_or(0, |n| (n * stages) as u64);
        Self { tokens, sampled, prefill: picoseconds(prefill), attention, graph_tokens }
    }
}

impl DecodePiece {
    /// The time of a step at a context sum within the piece.
    #[inline]
    pub fn at(&self, context: u64) -> u64 {
        self.base.saturating_add(self.slope.saturating_mul(context))
    }
}
