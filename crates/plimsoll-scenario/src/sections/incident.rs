//! What goes wrong while a fleet is simulated.

use plimsoll_units::{Factor, Seconds};

use crate::read::{Reader, Whole, choice, table};
use crate::values::{ClassName, Name, PoolName, RegionName, ServiceName};

choice! {
    /// What goes wrong.
    pub enum IncidentKind {
        /// Replicas stop at once.
        ReplicaLoss = "replica-loss",
        /// Nodes stop at once, with all replicas on them.
        NodeLoss = "node-loss",
        /// Zones stop at once, with all replicas in them.
        ZoneLoss = "zone-loss",
        /// A region stops at once, with all replicas in it.
        RegionLoss = "region-loss",
        /// Replicas are taken back with the pool's `spot.notice`, and new ones start.
        Reclaim = "reclaim",
        /// Replicas are replaced by new ones, a few at a time.
        Upgrade = "upgrade",
        /// Prefix caches are emptied.
        CacheLoss = "cache-loss",
        /// A provider or tool answers nothing.
        Outage = "outage",
        /// More is asked for.
        Surge = "surge",
    }
}

table! {
    /// What goes wrong while a fleet is simulated, and when.
    pub struct Incident = "incident", check incident_makes_sense {
        /// What tables call it.
        name: Name, required;
        /// What goes wrong.
        kind: IncidentKind, required;
        /// When it begins, after the counted span does.
        at: Seconds, required;
        /// How long it lasts; a surge needs it.
        lasts: Seconds, optional("a loss lasts the pool's `time_to_repair`, an outage to the end; what is reclaimed is replaced at once; upgrades and cache losses take what they take");
        /// The pool that is hit, by a loss, a reclaim or an upgrade.
        pool: PoolName, optional("all pools");
        /// The classes that a surge is of.
        class: ClassName, list("all classes");
        /// The region that is hit; a `region-loss` needs it.
        region: RegionName, optional("any region");
        /// The provider or tool that an outage is of.
        target: ServiceName, optional("only an outage has one");
        /// Replicas, nodes or zones that each pool that is hit loses.
        count: Whole<1, 100_000>, default("1", "failures are mostly single");
        /// With a surge: multiplies the rate.
        load: Factor, default("2.0", "twice the usual rate: more than most reserves hold");
        /// With an upgrade: replicas that are replaced at once.
        batch: Whole<1, 100_000>, default("1", "one at a time disturbs least");
    }
}

fn incident_makes_sense(_incident: &Incident, _reader: &mut Reader<'_>) {}
