//! How many replicas a fleet asks for, as signals move: Kubernetes' HorizontalPodAutoscaler, and KEDA on top of it.
//!
//! Nothing is measured and nobody is started here: whoever has the fleet tells how it stands, and does what it is told. The arithmetic is that of
//! `docs/model.md`, "The autoscaler", to the last rounding, oddities included.

use std::collections::VecDeque;

/// How replicas are to follow signals.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// Fewest replicas. Zero with [`Activation`] is KEDA's to reach; without, the autoscaler's own, as of Kubernetes 1.37.
    pub min: u32,
    /// Most replicas; at least one, and not fewer than the fewest.
    pub max: u32,
    /// How it adds.
    pub up: Behaviour,
    /// How it removes.
    pub down: Behaviour,
    /// How it comes to have none at all and some again, where KEDA sees to that.
    pub activation: Option<Activation>,
}

/// How replicas are added, or removed. An object without any behaviour is not modelled: it adds at most to the double or to four at a sync,
/// whatever it added before, and waits before removing only.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// How far from one the ratio of value to target may be for nothing to be done; at exactly this far, nothing is.
    pub tolerance: f64,
    /// How long a recommendation holds back more daring ones that come after it, in picoseconds.
    pub stabilization: u64,
    /// How much may change how fast; at least one, except where it is disabled.
    pub policies: Vec<ScalePolicy>,
    /// Which of them counts.
    pub select: Select,
}

/// How much may change within a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalePolicy {
    /// How much; not nothing.
    pub change: Change,
    /// Within how long, in picoseconds; not none.
    pub period: u64,
}

/// How many replicas come or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// So many.
    Replicas(u32),
    /// So many hundredths of those there were when the period began; what may be there afterwards is rounded up when adding, down when removing.
    Percent(u32),
}

/// Which policy counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// The one that allows the largest change.
    Max,
    /// The one that allows the smallest.
    Min,
    /// None: nothing changes in this direction.
    Disabled,
}

/// How KEDA goes to no replicas at all, and back to the first. A fewest above zero is what it goes back to, as with an idle count of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// Between two polls, in picoseconds; the caller keeps to it.
    pub polling: u64,
    /// How long nothing must have been active before the last replica goes, in picoseconds.
    pub cooldown: u64,
    /// The same, counted from the first poll, where nothing has been active yet.
    pub cooldown_initial: u64,
}

/// A signal as it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its value, in thousandths at best; none where it could not be read. An empty answer that KEDA is left to ignore is a zero.
    pub value: Option<f64>,
    /// What it should be; at least a thousandth.
    pub target: f64,
    /// What it should be that of.
    pub kind: TargetKind,
    /// Above this it is reason for KEDA to have a replica.
    pub activation: f64,
}

/// What a target is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// The value divided by the replicas: it is a sum over all of them.
    AverageValue,
    /// The value itself, which more replicas are believed to lower in proportion.
    Value,
}

impl Metric {
    /// One for which any value above zero is reason to have a replica.
    pub fn new(value: Option<f64>, target: f64, kind: TargetKind) -> Self {
        Self { value, target, kind, activation: 0.0 }
    }

    /// So many replicas by the calendar, as KEDA's cron says it: a sum like any other, one for each replica, so that the tolerance applies to it too. Zero
    /// outside its hours.
    pub fn floor(replicas: u32) -> Self {
        Self::new(Some(f64::from(replicas)), 1.0, TargetKind::AverageValue)
    }
}

/// What a fleet should now have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Replicas it should have.
    pub replicas: u32,
    /// Replicas that signals alone would have; those it should have where they were not looked at.
    pub wanted: u32,
    /// Why it is this many.
    pub why: Why,
}

/// Why it is so many replicas. Where several things held it back, the last of them, in this order: stabilization, policies, bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Signals want as many, and get them.
    Moved,
    /// Signals want as many as there are.
    Kept,
    /// Signals want others, but not by enough.
    Tolerance,
    /// A recommendation of the last while stands against it.
    Stabilized,
    /// Policies allow no more of a change.
    Policy,
    /// No fewer are allowed.
    Min,
    /// No more are allowed.
    Max,
    /// Signals could not be read: all of them, or some and the others want fewer.
    Missing,
    /// There are none, and it is not the autoscaler that has brought that about: it does nothing.
    Stopped,
    /// Something is active: the first replicas.
    Activated,
    /// Nothing has been active for long enough: none.
    Deactivated,
    /// Nothing is active, but was a while ago.
    Cooling,
}

/// An autoscaler and what it remembers.
#[derive(Clone, Debug)]
pub struct Controller {
    scaling: Scaling,
    /// What signals wanted at recent syncs, and how many there were at the first.
    recommended: Option<VecDeque<(u64, u32)>>,
    /// When it added how many.
    added: Vec<(u64, u32)>,
    /// When it removed how many.
    removed: Vec<(u64, u32)>,
    /// Whether it has itself removed the last one.
    emptied: bool,
    /// When KEDA polled first.
    polled: Option<u64>,
    /// When KEDA last found something active.
    active: Option<u64>,
}

impl Controller {
    /// One that has seen nothing yet. Panics where the scaling is not what its fields say.
    pub fn new(scaling: Scaling) -> Self {
        assert!(scaling.max >= 1 && scaling.min <= scaling.max, "bounds are in order");
        for behaviour in [&scaling.up, &scaling.down] {
            let policies = &behaviour.policies;
            assert!(behaviour.tolerance >= 0.0, "a tolerance is not negative");
            assert!(
                behaviour.select == Select::Disabled || !policies.is_empty(),
                "some policy allows a change"
            );
            assert!(
                policies.iter().all(|policy| policy.period > 0
                    && !matches!(policy.change, Change::Replicas(0) | Change::Percent(0))),
                "a policy allows some change in some time"
            );
        }
        Self {
            scaling,
            recommended: None,
            added: Vec::new(),
            removed: Vec::new(),
            emptied: false,
            polled: None,
            active: None,
        }
    }

    /// What the HorizontalPodAutoscaler decides at a sync, usually every 15 seconds. `replicas` are those asked for, which is taken for those that exist too;
    /// `ready` those that say they are ready, the ones that are leaving included while they say so. It counts on being obeyed at once.
    pub fn decide(&mut self, now: u64, replicas: u32, ready: u32, metrics: &[Metric]) -> Decision {
        self.recommended.get_or_insert_with(|| VecDeque::from([(now, replicas)]));
        let (min, max) = (self.min(), self.scaling.max);
        let at_once = |replicas, why| Decision { replicas, wanted: replicas, why };
        let decision = if replicas == 0 && !(min == 0 && self.emptied) {
            at_once(0, Why::Stopped)
        } else if replicas > max {
            at_once(max, Why::Max)
        } else if replicas < min {
            at_once(min, Why::Min)
        } else {
            match self.wanted(replicas, ready, metrics) {
                Some((wanted, within)) => self.restrain(now, replicas, wanted, within),
                None => at_once(replicas, Why::Missing),
            }
        };
        self.remember(now, replicas, decision.replicas);
        decision
    }

    /// What KEDA decides at a poll: between none and the first, and nothing else. It heeds no stabilization, no policy, and goes to none from any number.
    pub fn poll(&mut self, now: u64, replicas: u32, metrics: &[Metric]) -> Decision {
        let Some(activation) = self.scaling.activation else {
            return Decision { replicas, wanted: replicas, why: Why::Kept };
        };
        let first = *self.polled.get_or_insert(now);
        let active = metrics.iter().any(|m| m.value.is_some_and(|value| value > m.activation));
        let missing = metrics.iter().any(|m| m.value.is_none());
        let (then, why) = match (active, missing) {
            (true, _) if replicas == 0 => {
                self.active = Some(now);
                (self.min(), Why::Activated)
            }
            // One that cannot be read keeps even what is active from counting.
            (_, true) => (replicas, Why::Missing),
            (true, false) => {
                self.active = Some(now);
                (replicas, Why::Kept)
            }
            (false, false) if replicas == 0 => (0, Why::Kept),
            (false, false) => {
                // An object is there a moment before it is first polled, so that no time at all has passed by then.
                let over = match self.active {
                    Some(at) => now.saturating_sub(at) > activation.cooldown,
                    None => now.saturating_sub(first) >= activation.cooldown_initial,
                };
                if over { (0, Why::Deactivated) } else { (replicas, Why::Cooling) }
            }
        };
        Decision { replicas: then, wanted: then, why }
    }

    /// The fewest that the autoscaler itself may leave: KEDA never lets it have none.
    fn min(&self) -> u32 {
        match self.scaling.activation {
            Some(_) => self.scaling.min.max(1),
            None => self.scaling.min,
        }
    }

    /// Replicas that signals want, the most that any of them wants, and whether that is because it is within tolerance; none where they do not tell.
    fn wanted(&self, replicas: u32, ready: u32, metrics: &[Metric]) -> Option<(u32, bool)> {
        let wanted = metrics.iter().filter_map(|m| self.proposal(replicas, ready, m)).max()?;
        let missing = metrics.iter().any(|m| m.value.is_none());
        (!missing || wanted.0 >= replicas).then_some(wanted)
    }

    /// Replicas that a signal wants, and whether it is within tolerance.
    fn proposal(&self, replicas: u32, ready: u32, metric: &Metric) -> Option<(u32, bool)> {
        let (value, target) = (thousandths(metric.value?), thousandths(metric.target).max(1.0));
        // Without replicas an average has no bounds, and a value is for the first alone; nothing tolerates either.
        let (ratio, wanted) = match metric.kind {
            TargetKind::AverageValue => (value / (target * f64::from(replicas)), value / target),
            TargetKind::Value if replicas == 0 => (f64::NAN, value / target),
            TargetKind::Value => (value / target, value / target * f64::from(ready)),
        };
        let (up, down) = (self.scaling.up.tolerance, self.scaling.down.tolerance);
        if (1.0 - down..=1.0 + up).contains(&ratio) {
            return Some((replicas, true));
        }
        // A cast saturates.
        Some((wanted.ceil() as u32, false))
    }

    /// What is left of a wish after stabilization, policies and bounds.
    fn restrain(&mut self, now: u64, replicas: u32, wanted: u32, within: bool) -> Decision {
        let stable = self.stabilize(now, replicas, wanted);
        let (then, limit) = if stable > replicas {
            let allowed = self.most(now, replicas);
            let max = self.scaling.max;
            let limit = if max > allowed { Why::Policy } else { Why::Max };
            (stable.min(allowed.min(max)), limit)
        } else {
            let allowed = self.fewest(now, replicas);
            let limit = if self.min() < allowed { Why::Policy } else { Why::Min };
            (stable.max(allowed.max(self.min())), limit)
        };
        let why = if then != stable {
            limit
        } else if stable != wanted {
            Why::Stabilized
        } else if wanted != replicas {
            Why::Moved
        } else if within {
            Why::Tolerance
        } else {
            Why::Kept
        };
        Decision { replicas: then, wanted, why }
    }

    /// The nearest number between the lowest recommendation of the time that adding waits, and the highest of the time that removing does; this one included.
    fn stabilize(&mut self, now: u64, replicas: u32, wanted: u32) -> u32 {
        let (up, down) = (self.scaling.up.stabilization, self.scaling.down.stabilization);
        let recommended = self.recommended.get_or_insert_default();
        let age = |at: u64| now.saturating_sub(at);
        while recommended.front().is_some_and(|(at, _)| age(*at) >= up.max(down)) {
            recommended.pop_front();
        }
        let (mut lowest, mut highest) = (wanted, wanted);
        for &(at, recommendation) in recommended.iter() {
            // One that is exactly as old as the window is out of it.
            if age(at) < up {
                lowest = lowest.min(recommendation);
            }
            if age(at) < down {
                highest = highest.max(recommendation);
            }
        }
        recommended.push_back((now, wanted));
        replicas.clamp(lowest, highest)
    }

    /// Replicas that policies let there be at most.
    fn most(&self, now: u64, replicas: u32) -> u32 {
        let Behaviour { policies, select, .. } = &self.scaling.up;
        let limits = policies.iter().map(|policy| {
            let began = self.began(now, replicas, policy.period);
            match policy.change {
                Change::Replicas(n) => began + i64::from(n),
                // In this order of operations, which makes 111 of 100 and ten in a hundred.
                Change::Percent(n) => (began as f64 * (1.0 + f64::from(n) / 100.0)).ceil() as i64,
            }
        });
        let limit = match select {
            Select::Max => limits.max(),
            Select::Min => limits.min(),
            Select::Disabled => None,
        };
        u32::try_from(limit.unwrap_or(0).max(0)).unwrap_or(u32::MAX).max(replicas)
    }

    /// Replicas that policies let there be at least.
    fn fewest(&self, now: u64, replicas: u32) -> u32 {
        let Behaviour { policies, select, .. } = &self.scaling.down;
        let limits = policies.iter().map(|policy| {
            let began = self.began(now, replicas, policy.period);
            match policy.change {
                Change::Replicas(n) => began - i64::from(n),
                Change::Percent(n) => (began as f64 * (1.0 - f64::from(n) / 100.0)) as i64,
            }
        });
        let limit = match select {
            Select::Max => limits.min(),
            Select::Min => limits.max(),
            Select::Disabled => None,
        };
        let all = i64::from(replicas);
        u32::try_from(limit.unwrap_or(all).clamp(0, all)).unwrap_or(replicas)
    }

    /// Replicas there were when a period began that ends now, as far as it was the autoscaler that changed them; what KEDA does it does not see, so that there may
    /// seem to have been fewer than none.
    fn began(&self, now: u64, replicas: u32, period: u64) -> i64 {
        let within = |changes: &[(u64, u32)]| -> i64 {
            let recent = changes.iter().filter(|(at, _)| now.saturating_sub(*at) < period);
            recent.map(|(_, n)| i64::from(*n)).sum()
        };
        i64::from(replicas) - within(&self.added) + within(&self.removed)
    }

    /// Keeps a change for the policies. One that its own direction has no more use for makes room for the new one, although the other direction's policies may
    /// look back further.
    fn remember(&mut self, now: u64, replicas: u32, then: u32) {
        if then == replicas {
            return;
        }
        self.emptied = then == 0;
        let (changes, behaviour) = match then > replicas {
            true => (&mut self.added, &self.scaling.up),
            false => (&mut self.removed, &self.scaling.down),
        };
        let longest = behaviour.policies.iter().map(|policy| policy.period).max().unwrap_or(0);
        let change = (now, then.abs_diff(replicas));
        match changes.iter().rposition(|(at, _)| now.saturating_sub(*at) > longest) {
            Some(old) => changes[old] = change,
            None => changes.push(change),
        }
    }
}

/// A quantity as it reaches the autoscaler: in whole thousandths, never below none, and none where it is no number.
fn thousandths(quantity: f64) -> f64 {
    if quantity.is_finite() { (quantity * 1000.0).round().max(0.0) } else { 0.0 }
}
