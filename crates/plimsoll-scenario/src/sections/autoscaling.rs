//! How replicas follow the demand.

use plimsoll_units::{Factor, Fraction, Seconds};

use crate::read::{Reader, Whole, choice, table};
use crate::values::PoolName;

choice! {
    /// What an autoscaler looks at.
    pub enum ScaleSignal {
        /// Requests waiting.
        QueueDepth = "queue-depth",
        /// How long the oldest waits.
        QueueAge = "queue-age",
        /// Requests in flight per replica.
        InFlight = "in-flight",
        /// Uncached prompt tokens a second per replica.
        FreshTokens = "fresh-tokens",
        /// The 90th percentile of first tokens.
        TtftP90 = "ttft-p90",
        /// Good tasks among all.
        Goodput = "goodput",
        /// Use of the KV cache.
        Kv = "kv",
    }
}

impl ScaleSignal {
    /// Whether the signal of two replicas is the sum of theirs. A latency or a ratio of ten replicas is no larger than
    /// that of one, so dividing it by their number means nothing.
    pub fn adds_up(self) -> bool {
        match self {
            Self::QueueDepth | Self::InFlight | Self::FreshTokens => true,
            Self::QueueAge | Self::TtftP90 | Self::Goodput | Self::Kv => false,
        }
    }
}

choice! {
    /// Who decides about replicas.
    pub enum Controller {
        /// The autoscaler of Kubernetes; it keeps at least one replica.
        Hpa = "hpa",
        /// KEDA, which hands over to the autoscaler of Kubernetes from one replica on, and takes the last one away.
        Keda = "keda",
    }
}

choice! {
    /// What a target is held against.
    pub enum TargetKind {
        /// The signal's sum over replicas, divided by their number.
        AverageValue = "average-value",
        /// The signal as it is.
        Value = "value",
    }
}

choice! {
    /// Which of two policies holds.
    pub enum SelectPolicy {
        /// The one that allows more change.
        Max = "max",
        /// The one that allows less change.
        Min = "min",
        /// Neither: replicas do not change in this direction.
        Disabled = "disabled",
    }
}

table! {
    /// How replicas follow the demand, as the Kubernetes autoscaler does it, within each pool's `replicas.plan`.
    pub struct Autoscaling = "autoscaling", check autoscaling_makes_sense {
        /// Who decides: `hpa` keeps at least one replica, `keda` goes to none where `replicas.plan` begins at 0.
        controller: Controller, default("'hpa'", "every Kubernetes cluster has it");
        /// The pools whose replicas it moves.
        pools: PoolName, list("all pools that have room between their least and most replicas");
        /// What it looks at.
        signal: ScaleSignal, default("'fresh-tokens'", "demand signals show overload that bounded gauges cannot");
        /// The signal's value that it steers to, per replica where `target_kind` is `average-value`; a simulation needs it.
        target: Factor, optional("the plan's own load line");
        /// What the target is held against.
        target_kind: TargetKind, optional("`average-value` for signals that add up over replicas, `value` for `ttft-p90`, `goodput`, `kv` and `queue-age`");
        /// Time between two decisions.
        period: Seconds, default("'15s'", "the default sync period of the Kubernetes autoscaler");
        /// Age of what it sees.
        scrape_delay: Seconds, default("'15s'", "a usual Prometheus scrape interval");
        /// Differences that it ignores.
        tolerance: Fraction, default("0.1", "the Kubernetes default");
        /// How long a higher need must last.
        up_stabilization: Seconds, default("'0s'", "the Kubernetes default");
        /// How long a lower need must last.
        down_stabilization: Seconds, default("'300s'", "the Kubernetes default");
        /// Replicas it may add in one `up_period`.
        up_replicas: Whole<1, 100_000>, default("4", "the Kubernetes default, where doubling is not more");
        /// The percentage of its replicas it may add in one `up_period`.
        up_percent: Whole<1, 10_000>, default("100", "the Kubernetes default: doubling, where that is more than `up_replicas`");
        /// The time that the two limits above are for.
        up_period: Seconds, default("'15s'", "the Kubernetes default");
        /// Which of the two limits holds.
        up_select: SelectPolicy, default("'max'", "the Kubernetes default");
        /// Replicas it may take away in one `down_period`.
        down_replicas: Whole<1, 100_000>, default("1", "draining loses cache and takes time");
        /// The percentage of its replicas it may take away in one `down_period`.
        down_percent: Whole<1, 100>, optional("`down_replicas` alone is the limit; Kubernetes by itself allows 100 percent");
        /// The time that the two limits above are for.
        down_period: Seconds, default("'15s'", "the Kubernetes default");
        /// Which of the two limits holds.
        down_select: SelectPolicy, default("'max'", "the Kubernetes default");
        /// With `keda`: the first replica comes when the signal is above this.
        activation: Factor, optional("anything above 0 brings the first replica");
        /// With `keda`: the time between two looks while there is no replica.
        polling: Seconds, default("'30s'", "the KEDA default");
        /// With `keda`: the time without need before the last replica goes; without effect where the fewest replicas are not 0.
        cooldown: Seconds, default("'300s'", "the KEDA default");
        /// Floors by time.
        schedule: Schedule, list("no floors");
        /// A floor from the demand that is expected.
        forecast: ForecastFloor, optional("it only reacts");
    }
}

impl Autoscaling {
    /// What the target is held against: as written, else as the signal demands.
    pub fn target_kind(&self) -> TargetKind {
        let natural =
            if self.signal.adds_up() { TargetKind::AverageValue } else { TargetKind::Value };
        self.target_kind.unwrap_or(natural)
    }
}

fn autoscaling_makes_sense(autoscaling: &Autoscaling, reader: &mut Reader<'_>) {
    let signal = autoscaling.signal;
    if autoscaling.target_kind == Some(TargetKind::AverageValue) && !signal.adds_up() {
        let (seen, target, ratio) = match signal {
            ScaleSignal::TtftP90 | ScaleSignal::QueueAge => ("0.45 s", "0.5 s", "0.45 / 0.5"),
            _ => ("0.72", "0.8", "0.72 / 0.8"),
        };
        let diagnostic = reader
            .at_key(
                "target_kind",
                "contradiction",
                format!(
                    "`average-value` divides by the replicas, but `{signal}` does not add up over them"
                ),
            )
            .label(format!("10 replicas at {seen} against {target} would ask for ceil({ratio}) = 1"))
            .help("write `target_kind = \"value\"`, or take it out");
        reader.report(diagnostic);
    }
    for key in ["activation", "polling", "cooldown"] {
        if autoscaling.controller != Controller::Keda && reader.wrote(key) {
            let diagnostic = reader
                .at_key(
                    key,
                    "contradiction",
                    format!("`{key}` is for KEDA, and the controller is `hpa`"),
                )
                .label("says nothing here")
                .help(format!("write `controller = \"keda\"`, or take `{key}` out"));
            reader.report(diagnostic);
        }
    }
    for (key, period, usual) in [
        ("period", autoscaling.period, "15s"),
        ("up_period", autoscaling.up_period, "15s"),
        ("down_period", autoscaling.down_period, "15s"),
        ("polling", autoscaling.polling, "30s"),
    ] {
        if period < Seconds::whole(1) {
            let diagnostic = reader
                .at_key(
                    key,
                    "out-of-range",
                    format!("`{key}` must be at least 1 s; it is {period}"),
                )
                .label("autoscalers count in whole seconds")
                .help(format!("write `{key} = \"{usual}\"`"));
            reader.report(diagnostic);
        }
    }
    if autoscaling.target.is_some_and(|target| target.get() == 0.0) {
        let diagnostic = reader
            .at_key(
                "target",
                "out-of-range",
                "a target of 0 asks for more replicas whatever the signal says",
            )
            .label("must be above 0")
            .help("write what one replica may carry, or take `target` out");
        reader.report(diagnostic);
    }
}

table! {
    /// A floor from the demand that the scenario itself expects a while ahead.
    pub struct ForecastFloor = "autoscaling.forecast", check forecast_makes_sense {
        /// How far ahead it looks; at least as long as a replica takes to start.
        lead: Seconds, required;
        /// Tasks a second that one replica is expected to carry.
        tasks_per_replica: Factor, required;
    }
}

fn forecast_makes_sense(forecast: &ForecastFloor, reader: &mut Reader<'_>) {
    if forecast.tasks_per_replica.get() == 0.0 {
        let diagnostic = reader
            .at_key(
                "tasks_per_replica",
                "out-of-range",
                "no number of replicas that carry 0 tasks a second is enough",
            )
            .label("must be above 0")
            .help("write what one replica carries at the load line: `tasks_per_replica = 4`");
        reader.report(diagnostic);
    }
}

table! {
    /// A floor between two hours of the day, over midnight where the second is the lower.
    pub struct Schedule = "autoscaling.schedule", check schedule_makes_sense {
        /// The pool it is for.
        pool: PoolName, required;
        /// From this hour.
        from_hour: Whole<0, 23>, required;
        /// To this hour.
        to_hour: Whole<1, 24>, required;
        /// Not fewer replicas than this.
        replicas: Whole<0, 100_000>, required;
    }
}

impl Schedule {
    /// Whether it holds in an hour of the day.
    pub fn holds(&self, hour: u64) -> bool {
        let (from, to) = (self.from_hour.get(), self.to_hour.get());
        if from < to { (from..to).contains(&hour) } else { hour >= from || hour < to }
    }
}

fn schedule_makes_sense(schedule: &Schedule, reader: &mut Reader<'_>) {
    let hour = schedule.from_hour.get();
    if hour != schedule.to_hour.get() {
        return;
    }
    let message = format!("a floor from hour {hour} to hour {hour} covers no hour, or all of them");
    let diagnostic = reader
        .at_key("to_hour", "contradiction", message)
        .label("the hour at which it begins")
        .help("write `from_hour = 0` and `to_hour = 24` for the whole day");
    reader.report(diagnostic);
}
