//! What it costs, what is tried, and what is proposed.

use plimsoll_units::{Factor, Fraction, Seconds, Usd, UsdPerByte, UsdPerHour, UsdPerKwh};

use crate::read::{Reader, Whole, choice, table};
use crate::sections::Dtype;
use crate::values::{
    AcceleratorName, ClassName, Day, Effect, Expression, InstanceName, ModelName, Name, PoolName,
};

table! {
    /// Prices that differ from the catalogue's.
    pub struct Prices = "prices" {
        /// Taken off every list price.
        discount: Fraction, default("0.0", "list prices, as published");
        /// Nodes by region.
        node: NodeRate, list("the catalogue's list prices");
    }
}

table! {
    /// The price of a node.
    pub struct NodeRate = "prices.node", check rate_makes_sense {
        /// The instance, as the catalogue calls it.
        instance: InstanceName, optional("any node of the accelerator");
        /// The accelerator, where the price is for one device.
        accelerator: AcceleratorName, optional("the instance says it");
        /// Where it holds.
        region: String, optional("everywhere");
        /// Without commitment.
        on_demand: UsdPerHour, optional("the catalogue's");
        /// With a commitment.
        reserved: UsdPerHour, optional("not offered");
        /// Reclaimable.
        spot: UsdPerHour, optional("not offered");
        /// Where the price is from.
        source: String, default("'this file'", "it was typed in");
        /// When it held.
        as_of: Day, optional("unknown, so it counts as old");
    }
}

fn rate_makes_sense(rate: &NodeRate, reader: &mut Reader<'_>) {
    if rate.instance.is_some() == rate.accelerator.is_some() {
        let diagnostic = reader
            .at_key("accelerator", "contradiction", "a price is for an `instance` or for one `accelerator`")
            .label(if rate.instance.is_some() { "both are given" } else { "neither is given" })
            .help("write `accelerator = \"H100-SXM\"` for a price per device, or `instance = \"p5.48xlarge\"` for a node");
        reader.report(diagnostic);
    }
}

table! {
    /// What is paid besides devices and tokens.
    pub struct Costs = "costs" {
        /// Disks and object stores.
        storage: UsdPerHour, optional("not counted");
        /// Links and load balancers.
        network: UsdPerHour, optional("not counted");
        /// Data that leaves.
        egress: UsdPerByte, optional("not counted");
        /// Logs, metrics, traces.
        observability: UsdPerHour, optional("not counted");
        /// Judges and test sets.
        evaluation: UsdPerHour, optional("not counted");
        /// People.
        engineering: UsdPerHour, optional("not counted");
        /// Hardware of one's own.
        owned: Owned, list("nothing is owned");
    }
}

table! {
    /// Hardware of one's own, paid over its life.
    pub struct Owned = "costs.owned" {
        /// The device.
        accelerator: AcceleratorName, required;
        /// What a whole node cost.
        node_price: Usd, required;
        /// Devices in it.
        devices: Whole<1, 1024>, default("8", "the usual node");
        /// How long it is written off over.
        lifetime: Seconds, default("'1460d'", "four years, the usual depreciation of accelerators");
        /// What a node draws beside its devices is in the price of power.
        power_price: UsdPerKwh, default("'$0.10/kWh'", "an order of magnitude; your bill says it");
        /// Power drawn from the grid, against what devices draw.
        power_overhead: Factor, default("1.3", "cooling and conversion of a usual data centre");
        /// Space, staff and contracts a node needs.
        hosting: UsdPerHour, default("'$0/h'", "none was stated");
    }
}

table! {
    /// What may be spent.
    pub struct Budget = "budget" {
        /// In a month.
        monthly: Usd, optional("no cap");
        /// In an hour.
        hourly: UsdPerHour, optional("no cap");
        /// For one success.
        per_success: Usd, optional("no cap");
        /// A warning comes at this share of a cap.
        warn_at: Fraction, default("0.8", "early enough to act");
    }
}

choice! {
    /// What is lost in a stress.
    pub enum StressLoss {
        /// Nothing.
        Nothing = "nothing",
        /// A replica.
        Replica = "replica",
        /// A node.
        Node = "node",
        /// A zone.
        Zone = "zone",
        /// A region.
        Region = "region",
    }
}

table! {
    /// A stress scenario. One that is called like a standard one takes its place.
    pub struct Stress = "stress" {
        /// What tables call it.
        name: Name, required;
        /// The classes it changes.
        class: ClassName, list("all classes");
        /// The share of their tasks that it changes: a cohort.
        share: Fraction, default("1.0", "all of them");
        /// Multiplies the rate.
        rate: Factor, default("1.0", "the rate stays");
        /// Multiplies prompt lengths.
        prompt: Factor, default("1.0", "prompts stay");
        /// Multiplies output lengths.
        output: Factor, default("1.0", "outputs stay");
        /// Multiplies the cache hit rate.
        cache_hit: Factor, default("1.0", "the hit rate stays");
        /// The share that goes to the strongest model instead: to the pool whose replicas cost most.
        to_strongest: Fraction, default("0.0", "routes stay");
        /// Multiplies what providers allow.
        provider_limits: Factor, default("1.0", "limits stay");
        /// Multiplies startup times.
        startup: Factor, default("1.0", "startup stays");
        /// Multiplies prices.
        price: Factor, default("1.0", "prices stay");
        /// The share of requests that fail and come a second time.
        failure: Fraction, default("0.0", "nothing more fails than before");
        /// What is lost at peak.
        lose: StressLoss, default("'nothing'", "nothing is lost");
        /// Who looks after it.
        owner: String, optional("nobody is named");
    }
}

table! {
    /// A proposed optimisation: what it changes, what it may cost in quality, how it is taken back.
    pub struct Change = "change" {
        /// What tables call it.
        name: Name, required;
        /// The classes it changes.
        class: ClassName, list("all classes");
        /// The pool it changes.
        pool: PoolName, optional("no pool is changed");
        /// Multiplies prompt lengths.
        prompt: Factor, default("1.0", "prompts stay");
        /// Multiplies output lengths.
        output: Factor, default("1.0", "outputs stay");
        /// The new cache hit rate.
        cache_hit: Fraction, optional("the hit rate stays");
        /// The new model.
        model: ModelName, optional("the model stays");
        /// The new storage of weights.
        weights: Dtype, optional("weights stay");
        /// The new largest batch.
        max_num_seqs: Whole<1, 1_000_000>, optional("the batch stays");
        /// Multiplies the success rate, or `"unknown"`.
        success_rate: Effect, default("'unknown'", "nobody measured it, so no saving per success is claimed");
        /// Who answers for it.
        owner: String, optional("nobody is named");
        /// What must stay true.
        guardrail: String, optional("none is stated");
        /// When it is taken back, as an expression a monitor can evaluate.
        rollback: Expression, optional("none is stated");
    }
}
