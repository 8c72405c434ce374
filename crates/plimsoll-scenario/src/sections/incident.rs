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
        /// Replicas are taken back after the pool's `spot.notice`, at once where it has none, and new ones start.
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
        /// The pool that is hit.
        pool: PoolName, optional("all pools");
        /// The classes that a surge is of.
        class: ClassName, list("all classes");
        /// The region that is hit; a `region-loss` needs it.
        region: RegionName, optional("all regions of the pool");
        /// The provider or tool that an outage is of.
        target: ServiceName, optional("only an outage has one");
        /// Replicas, nodes or zones that each pool that is hit loses.
        count: Whole<1, 100_000>, default("1", "failures are mostly single");
        /// With a surge: multiplies the rate.
        load: Factor, default("2.0", "a round figure; write the surge that is feared");
        /// With an upgrade: replicas that are replaced at once.
        batch: Whole<1, 100_000>, default("1", "one at a time disturbs least");
    }
}

impl IncidentKind {
    /// The keys that say something about it, beside `name`, `kind` and `at`.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::ReplicaLoss | Self::NodeLoss | Self::ZoneLoss | Self::Reclaim => {
                &["lasts", "pool", "region", "count"]
            }
            Self::RegionLoss => &["lasts", "region"],
            Self::Upgrade => &["pool", "region", "batch"],
            Self::CacheLoss => &["pool", "region"],
            Self::Outage => &["lasts", "target"],
            Self::Surge => &["lasts", "class", "load"],
        }
    }

    const ALL: [Self; 9] = [
        Self::ReplicaLoss,
        Self::NodeLoss,
        Self::ZoneLoss,
        Self::RegionLoss,
        Self::Reclaim,
        Self::Upgrade,
        Self::CacheLoss,
        Self::Outage,
        Self::Surge,
    ];
}

fn incident_makes_sense(incident: &Incident, reader: &mut Reader<'_>) {
    let (name, kind) = (incident.name.as_str(), incident.kind);
    for key in ["lasts", "pool", "class", "region", "target", "count", "load", "batch"] {
        if !reader.wrote(key) || kind.keys().contains(&key) {
            continue;
        }
        let has: Vec<String> = IncidentKind::ALL
            .into_iter()
            .filter(|kind| kind.keys().contains(&key))
            .map(|kind| kind.to_string())
            .collect();
        let diagnostic = reader
            .at_key(key, "contradiction", format!("`{key}` says nothing about the kind `{kind}`"))
            .label(format!("only for {}", has.join(", ")))
            .help(format!(
                "take `{key}` out, or write `kind = \"{}\"`",
                has.first().map_or("", String::as_str)
            ));
        reader.report(diagnostic);
    }
    let needs = match kind {
        IncidentKind::Surge => {
            incident.lasts.is_none().then_some(("lasts", "\"10m\"", "how long does it last?"))
        }
        IncidentKind::RegionLoss => {
            incident.region.is_none().then_some(("region", "\"…\"", "which region?"))
        }
        IncidentKind::Outage => {
            incident.target.is_none().then_some(("target", "\"…\"", "of which provider or tool?"))
        }
        _ => None,
    };
    if let Some((key, example, question)) = needs
        && !reader.wrote(key)
    {
        let known = match key {
            "region" => &["region"][..],
            "target" => &["provider", "tool"],
            _ => &[],
        };
        let known = known.iter().filter_map(|kind| reader.names.get(kind)).flatten().next();
        let example = known.map_or_else(|| example.to_owned(), |known| format!("\"{known}\""));
        let diagnostic = reader
            .at_key(
                "kind",
                "missing-key",
                format!("incident `{name}` of the kind `{kind}` needs `{key}`"),
            )
            .label(question)
            .help(format!("add `{key} = {example}`"));
        reader.report(diagnostic);
    }
    if incident.lasts == Some(Seconds::ZERO) {
        let diagnostic = reader
            .at_key("lasts", "out-of-range", format!("incident `{name}` is over as it begins"))
            .label("must be above 0")
            .help("write `lasts = \"10m\"`");
        reader.report(diagnostic);
    }
}
