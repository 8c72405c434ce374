//! The whole file, and what is studied.

use plimsoll_units::{Fraction, Seconds};

use crate::read::{Reader, Whole, choice, table};
use crate::sections::{
    Autoscaling, Budget, Change, Class, Costs, Event, Incident, Line, Pool, Prices, Provider,
    Region, Route, Stress, Tool,
};
use crate::values::{Day, Moment, UtcOffset};

table! {
    /// A scenario: what is asked of the fleet, what the fleet is, and what must hold.
    pub struct Scenario = "scenario", check scenario_makes_sense {
        /// What is studied, over which time, and how sure the answer must be.
        study: Study, default("{}", "every key of it has a default");
        /// Who asks for what: segments of demand that share a token shape and an SLO.
        class: Class, list("there is no demand, so there is nothing to plan");
        /// What will change the demand, and when.
        event: Event, list("demand stays as the classes describe it");
        /// What tasks call besides models.
        tool: Tool, list("no class calls a tool");
        /// Which class is served where.
        route: Route, list("every class goes to the first pool, or to the first provider where there is no pool");
        /// Replicas of one model on one accelerator with one engine configuration.
        pool: Pool, list("nothing is served on devices of one's own");
        /// What pools were measured to carry.
        line: Line, list("load lines are simulated");
        /// Where devices may be had, how many, how fast.
        region: Region, list("one region without quota");
        /// Hosted models that are paid by the token, under rate limits.
        provider: Provider, list("no tokens are rented");
        /// How replicas follow the demand.
        autoscaling: Autoscaling, optional("replicas stay as they are");
        /// Prices that differ from the catalogue's.
        prices: Prices, optional("the catalogue's list prices hold");
        /// What is paid besides devices and tokens.
        costs: Costs, optional("only devices and tokens are counted");
        /// What may be spent.
        budget: Budget, optional("no cap is checked");
        /// Stress scenarios to try, beside the standard ones.
        stress: Stress, list("only the standard stress scenarios are run");
        /// What goes wrong while the fleet is simulated.
        incident: Incident, list("only failures by chance happen");
        /// Proposed optimisations to weigh.
        change: Change, list("nothing is proposed");
    }
}

table! {
    /// What is studied, over which time, and how sure the answer must be.
    pub struct Study = "study", check study_makes_sense {
        /// Heads every result.
        name: String, default("'unnamed study'", "a name only labels results");
        /// How far ahead the study looks.
        horizon: Seconds, default("'7d'", "a week holds every hour of the week once");
        /// When the horizon begins.
        start: Moment, optional("midnight after `as_of`");
        /// The offset of local time from UTC, which `by_hour` and weekends are read in.
        utc_offset: UtcOffset, default("'UTC'", "logs and clusters mostly run on UTC");
        /// Demand is measured over windows of this length.
        window: Seconds, default("'10s'", "short enough to see what a queue feels, long enough to compare with traces");
        /// Makes every draw repeatable.
        seed: Whole<0, 9_223_372_036_854_775_807>, default("7", "any number will do; it is printed with every result");
        /// Independent runs behind each number.
        runs: Whole<2, 64>, default("8", "enough for an interval, cheap enough for every command");
        /// Stands for today, so that the same input gives the same bytes.
        as_of: Day, optional("`--as-of`, else today");
        /// Plan for demand that is exceeded with one minus this probability.
        demand_quantile: Fraction, default("0.95", "one week in twenty may exceed it, and the reserve is there for that");
        /// The share of offered tasks that must be good.
        attainment: Fraction, default("0.99", "the usual objective for interactive serving");
        /// How sure a verdict must be.
        confidence: Fraction, default("0.95", "the usual level");
        /// What the fleet must survive.
        reliability: Reliability, default("{}", "every key of it has a default");
        /// Replicas to have beside those that the demand needs.
        reserve: Reserve, default("{}", "every key of it has a default");
        /// A ledger of past requests, which replaces typed demand.
        ledger: String, optional("demand is what the classes say");
        /// A catalogue file or directory that extends or overrides the built-in one.
        catalog: String, optional("the built-in catalogue alone");
    }
}

table! {
    /// What the fleet must survive.
    pub struct Reliability = "study.reliability" {
        /// The share of time in which attainment must hold.
        availability: Fraction, default("0.999", "three nines: 43 minutes a month");
        /// What may be lost at peak without breaking the SLO.
        survive: Survive, default("'replica'", "one replica fails sooner or later; nodes and zones cost more to survive");
        /// How many of them at once.
        count: Whole<0, 1000>, default("1", "failures are mostly single");
    }
}

table! {
    /// Replicas to have beside those that the demand needs. What may be lost is under `study.reliability`; what a slow start and a wrong forecast need is
    /// worked out.
    pub struct Reserve = "study.reserve" {
        /// Replicas of a pool that a rolling upgrade takes out of service at once.
        rollout: Whole<0, 1000>, default("1", "versions are mostly replaced one replica at a time, at any hour");
        /// Replicas of a pool that try a new version.
        canary: Whole<0, 1000>, default("0", "no canary was stated");
        /// Nodes of a pool that are taken out of service for maintenance at once.
        maintenance: Whole<0, 1000>, default("0", "no maintenance at peak was stated");
        /// The most of a pool that a plan puts where devices can be taken away.
        spot: Fraction, default("0.5", "what is reclaimed is reclaimed together, and half of a pool still answers somebody");
        /// The share of what is cached that is computed again while some caches are cold.
        cold_cache: Fraction, default("0.1", "after a failure or an upgrade one cache in ten or so is empty");
    }
}

choice! {
    /// A unit of loss.
    pub enum Survive {
        /// Nothing.
        Nothing = "nothing",
        /// One replica.
        Replica = "replica",
        /// A node with all its replicas.
        Node = "node",
        /// A zone.
        Zone = "zone",
        /// A region.
        Region = "region",
    }
}

fn study_makes_sense(study: &Study, reader: &mut Reader<'_>) {
    if study.horizon < Seconds::whole(3600) {
        let diagnostic = reader
            .at_key(
                "horizon",
                "out-of-range",
                format!("a horizon of {} holds no busiest hour", study.horizon),
            )
            .label("shorter than one hour")
            .help("write `horizon = \"7d\"`");
        reader.report(diagnostic);
    }
    if study.horizon > Seconds::whole(400 * 86_400) {
        let diagnostic = reader
            .at_key(
                "horizon",
                "out-of-range",
                format!("a horizon of {} is further than any plan holds", study.horizon),
            )
            .label("longer than 400 days")
            .help("write `horizon = \"28d\"`");
        reader.report(diagnostic);
    }
    let window = study.window.get();
    if !(1.0..=3600.0).contains(&window) {
        let diagnostic = reader
            .at_key(
                "window",
                "out-of-range",
                format!("a window of {} does not fit into the busiest hour", study.window),
            )
            .label("not between 1 s and 1 h")
            .help("write `window = \"10s\"`");
        reader.report(diagnostic);
    }
    for (key, share, least, most) in [
        ("demand_quantile", study.demand_quantile, 0.01, 0.999),
        ("attainment", study.attainment, 0.01, 0.99999),
        ("confidence", study.confidence, 0.5, 0.999),
    ] {
        let share = share.get();
        if !(least..=most).contains(&share) {
            let diagnostic = reader
                .at_key(
                    key,
                    "out-of-range",
                    format!("`{key}` must lie between {least} and {most}; it is {share}"),
                )
                .label("nothing is certain, and no sample shows more")
                .help(format!("write `{key} = 0.95`"));
            reader.report(diagnostic);
        }
    }
}

fn scenario_makes_sense(scenario: &Scenario, reader: &mut Reader<'_>) {
    super::demand::classes_have_demand(scenario, reader);
    super::supply::routes_add_up(scenario, reader);
    super::fleet::fleet_holds_together(scenario, reader);
}
