//! The columns of bills, and what lines say in them.

use std::collections::BTreeMap;

use csv::StringRecord;
use plimsoll_cost::ChargeKind;

use super::kind;
use super::money::Decimal;

/// A kind of bill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Focus,
    /// Of `lineItem/UnblendedCost` and its like.
    Cur,
    /// The same as `line_item_unblended_cost`.
    Cur2,
}

/// The heading of a bill, by names that all spellings have in common.
pub(super) struct Heading {
    pub(super) format: Format,
    /// Where columns are: in lower case for FOCUS, in words joined by `_` for AWS.
    places: BTreeMap<String, usize>,
    columns: usize,
}

/// The columns that tell bills apart, as they are in [`Heading::places`].
const FOCUS_COST: &str = "billedcost";
const CUR_COST: &str = "line_item_unblended_cost";

/// Columns that a version of FOCUS brought, the latest first.
const FOCUS_SINCE: [(&str, &[&str]); 3] = [
    ("1.3", &["allocatedmethodid", "allocatedresourceid", "serviceprovidername"]),
    ("1.2", &["invoiceid", "pricingcurrency", "billingaccounttype"]),
    ("1.1", &["capacityreservationid", "commitmentdiscountquantity", "skumeter"]),
];

impl Heading {
    /// None where it is no bill that is known.
    pub(super) fn of(record: &StringRecord) -> Option<Self> {
        let spelled = |spell: fn(&str) -> String| -> BTreeMap<String, usize> {
            // The first of two columns with one name counts.
            let name = |i: usize| Some((spell(record.get(i)?.trim()), i));
            (0..record.len()).rev().filter_map(name).collect()
        };
        let columns = record.len();
        let focus = spelled(str::to_lowercase);
        if focus.contains_key(FOCUS_COST) {
            return Some(Self { format: Format::Focus, places: focus, columns });
        }
        let legacy = record.iter().any(|name| name.contains('/'));
        let format = if legacy { Format::Cur } else { Format::Cur2 };
        let places = spelled(joined);
        places.contains_key(CUR_COST).then_some(Self { format, places, columns })
    }

    /// How many columns a line has.
    pub(super) const fn columns(&self) -> usize {
        self.columns
    }

    /// What the bill is called.
    pub(super) fn name(&self) -> String {
        match self.format {
            Format::Focus => {
                let has = |columns: &[&str]| columns.iter().any(|name| self.has(name));
                let since = FOCUS_SINCE.iter().find(|(_, columns)| has(columns));
                format!("focus {}", since.map_or("1.0", |(version, _)| version))
            }
            Format::Cur => "aws-cur".to_owned(),
            Format::Cur2 => "aws-cur-2".to_owned(),
        }
    }

    /// The first column that must be there and is not, as its makers write it.
    pub(super) fn missing(&self) -> Option<&'static str> {
        let needed: &[(&str, &str)] = match self.format {
            Format::Focus => &[
                ("billingcurrency", "BillingCurrency"),
                ("chargecategory", "ChargeCategory"),
                ("chargeperiodstart", "ChargePeriodStart"),
                ("chargeperiodend", "ChargePeriodEnd"),
                ("servicename", "ServiceName"),
            ],
            Format::Cur => &[
                ("line_item_currency_code", "lineItem/CurrencyCode"),
                ("line_item_line_item_type", "lineItem/LineItemType"),
                ("line_item_usage_start_date", "lineItem/UsageStartDate"),
                ("line_item_usage_end_date", "lineItem/UsageEndDate"),
                ("line_item_product_code", "lineItem/ProductCode"),
            ],
            Format::Cur2 => &[
                ("line_item_currency_code", "line_item_currency_code"),
                ("line_item_line_item_type", "line_item_line_item_type"),
                ("line_item_usage_start_date", "line_item_usage_start_date"),
                ("line_item_usage_end_date", "line_item_usage_end_date"),
                ("line_item_product_code", "line_item_product_code"),
            ],
        };
        needed.iter().find(|(name, _)| !self.has(name)).map(|(_, written)| *written)
    }

    fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }
}

/// `lineItem/UnblendedCost` as `line_item_unblended_cost`; what is written so already stays.
fn joined(name: &str) -> String {
    let mut text = String::new();
    for (i, c) in name.char_indices() {
        if c == '/' {
            text.push('_');
        } else {
            if c.is_ascii_uppercase() && i > 0 && !name[..i].ends_with('/') {
                text.push('_');
            }
            text.push(c.to_ascii_lowercase());
        }
    }
    text
}

/// What a line says, before it is judged.
pub(super) struct Said<'a> {
    pub(super) kind: ChargeKind,
    /// Whether it charges for use, and so cannot be of less than nothing.
    pub(super) is_usage: bool,
    pub(super) from: &'a str,
    pub(super) until: &'a str,
    pub(super) effective: Effective<'a>,
    pub(super) list: (&'static str, &'a str),
    pub(super) quantity: (&'static str, &'a str),
    pub(super) unit: &'a str,
    pub(super) service: String,
    pub(super) description: String,
    pub(super) resource: &'a str,
    pub(super) region: &'a str,
    pub(super) account: &'a str,
    pub(super) pricing: Option<&'static str>,
    /// What else tells this charge from another of the same resource.
    pub(super) meter: String,
}

/// What a charge comes to once commitments are spread over their use.
pub(super) enum Effective<'a> {
    /// What was billed.
    Billed,
    /// What was billed, for want of a better answer.
    Unsaid,
    /// Nothing: other lines have it.
    Nothing,
    /// The sum of the first amounts less the others; each with its column.
    Sum(Vec<(&'static str, &'a str)>, Vec<(&'static str, &'a str)>),
}

/// One line under its heading.
pub(super) struct Line<'a> {
    pub(super) heading: &'a Heading,
    pub(super) record: &'a StringRecord,
}

impl<'a> Line<'a> {
    /// What a column says; empty where it says nothing, or is not there.
    fn get(&self, name: &str) -> &'a str {
        let place = self.heading.places.get(name);
        let text = place.and_then(|i| self.record.get(*i)).unwrap_or("").trim();
        if text.eq_ignore_ascii_case("null") { "" } else { text }
    }

    fn first_of(&self, names: &[&str]) -> &'a str {
        names.iter().map(|name| self.get(name)).find(|text| !text.is_empty()).unwrap_or("")
    }

    fn words(&self, names: &[&str]) -> String {
        let own: Vec<&str> =
            names.iter().map(|name| self.get(name)).filter(|text| !text.is_empty()).collect();
        own.join(", ")
    }

    /// The currency that it is in; empty where it does not say.
    pub(super) fn currency(&self) -> &'a str {
        match self.heading.format {
            Format::Focus => self.get("billingcurrency"),
            Format::Cur | Format::Cur2 => self.get("line_item_currency_code"),
        }
    }

    /// What was billed, with its column.
    pub(super) fn billed(&self) -> (&'static str, &'a str) {
        match self.heading.format {
            Format::Focus => ("BilledCost", self.get(FOCUS_COST)),
            Format::Cur => ("lineItem/UnblendedCost", self.get(CUR_COST)),
            Format::Cur2 => (CUR_COST, self.get(CUR_COST)),
        }
    }

    /// What it says, or why it cannot be understood.
    pub(super) fn said(&self) -> Result<Said<'a>, String> {
        match self.heading.format {
            Format::Focus => self.focus(),
            Format::Cur | Format::Cur2 => self.cur(),
        }
    }

    fn focus(&self) -> Result<Said<'a>, String> {
        let service = self.words(&["servicename", "servicecategory", "servicesubcategory"]);
        let meter = self.words(&["skumeter", "chargedescription", "consumedunit", "pricingunit"]);
        let (category, billed) = (self.get("chargecategory"), self.get(FOCUS_COST));
        let is_correction = self.get("chargeclass").eq_ignore_ascii_case("correction");
        let is_committed = !self.get("commitmentdiscountid").is_empty();
        let is_unused = self.get("commitmentdiscountstatus").eq_ignore_ascii_case("unused");
        let gives_back = billed.starts_with('-');
        let of_usage = || kind::of_usage(&service, &meter);
        let kind = match category.to_lowercase().as_str() {
            "tax" => ChargeKind::Tax,
            "credit" => ChargeKind::Credit,
            // What was charged too much before is given back.
            "usage" | "purchase" | "adjustment" if is_correction && gives_back => {
                ChargeKind::Credit
            }
            "usage" if is_unused => ChargeKind::Commitment,
            "usage" => of_usage(),
            "purchase" if is_committed => ChargeKind::Commitment,
            // Subscriptions and licences are what they are for.
            "purchase" => of_usage(),
            "adjustment" if gives_back => ChargeKind::Credit,
            "adjustment" => ChargeKind::Other,
            "" => return Err("`ChargeCategory` is missing".to_owned()),
            _ => {
                return Err(format!(
                    "`ChargeCategory` is `{category}`, which is none of Usage, Purchase, Tax, Credit and Adjustment"
                ));
            }
        };
        let effective = match self.get("effectivecost") {
            "" => Effective::Unsaid,
            cost => Effective::Sum(vec![("EffectiveCost", cost)], Vec::new()),
        };
        let consumed = self.get("consumedquantity");
        let (quantity, unit) = if consumed.is_empty() {
            (("PricingQuantity", self.get("pricingquantity")), self.get("pricingunit"))
        } else {
            (("ConsumedQuantity", consumed), self.get("consumedunit"))
        };
        Ok(Said {
            kind,
            is_usage: category.eq_ignore_ascii_case("usage") && !is_correction,
            from: self.get("chargeperiodstart"),
            until: self.get("chargeperiodend"),
            effective,
            list: ("ListCost", self.get("listcost")),
            quantity,
            unit,
            service: self.first_of(&["servicename", "servicecategory"]).to_owned(),
            description: self.first_of(&["chargedescription", "skumeter", "skuid"]).to_owned(),
            resource: self.first_of(&["resourceid", "resourcename"]),
            region: self.first_of(&["regionid", "regionname", "region"]),
            account: self.first_of(&["subaccountid", "billingaccountid"]),
            pricing: match self.get("pricingcategory").to_lowercase().as_str() {
                "standard" => Some(ON_DEMAND),
                "committed" => Some(RESERVED),
                "dynamic" => Some(SPOT),
                _ => None,
            },
            meter: self.words(&[
                "chargecategory",
                "chargeclass",
                "skuid",
                "skupriceid",
                "skumeter",
                "chargedescription",
                "commitmentdiscountid",
                "commitmentdiscountstatus",
                "listunitprice",
                "tags",
                "allocatedresourceid",
            ]),
        })
    }

    /// Effective costs are as AWS documents its amortised view: covered usage at what the plan or the reservation comes to, fees only
    /// with the part of them that nobody used, what takes covered usage back as nothing.
    fn cur(&self) -> Result<Said<'a>, String> {
        let (code, usage_type) =
            (self.get("line_item_product_code"), self.get("line_item_usage_type"));
        let described = self.get("line_item_line_item_description");
        let line_type = self.get("line_item_line_item_type");
        let is_reserved = !self.get("reservation_reservation_a_r_n").is_empty();
        // Spread by halves, a commitment would be counted twice or not at all: all columns are there, or none is used.
        let spread = |columns: &[&str], effective: Effective<'a>| {
            let all = columns.iter().all(|name| self.heading.has(name));
            if all { effective } else { Effective::Unsaid }
        };
        let plan = |effective| spread(&PLAN_COSTS, effective);
        let reservation = |effective| spread(&RESERVATION_COSTS, effective);
        let sum = |plus: &[&'static str], less: &[&'static str]| {
            let said = |names: &[&'static str]| -> Vec<(&'static str, &'a str)> {
                names.iter().map(|name| (*name, self.get(name))).collect()
            };
            let (plus, less) = (said(plus), said(less));
            let any = plus.iter().any(|(_, text)| !text.is_empty());
            if any { Effective::Sum(plus, less) } else { Effective::Unsaid }
        };
        let of_usage = || {
            let service = format!("{code}, {}", self.get("product_product_name"));
            let meter = format!("{usage_type}, {described}, {}", self.get("pricing_unit"));
            kind::of_usage(&service, &meter)
        };
        let (kind, effective) = match line_type {
            "Usage" => (of_usage(), Effective::Billed),
            "DiscountedUsage" => (of_usage(), reservation(sum(&RESERVATION_COSTS[..1], &[]))),
            "SavingsPlanCoveredUsage" => (of_usage(), plan(sum(&PLAN_COSTS[..1], &[]))),
            "SavingsPlanNegation" | "SavingsPlanUpfrontFee" => {
                (ChargeKind::Commitment, plan(Effective::Nothing))
            }
            "SavingsPlanRecurringFee" => {
                (ChargeKind::Commitment, plan(sum(&PLAN_COSTS[1..2], &PLAN_COSTS[2..])))
            }
            "RIFee" => (ChargeKind::Commitment, reservation(sum(&RESERVATION_COSTS[1..], &[]))),
            "Fee" if is_reserved => (ChargeKind::Commitment, reservation(Effective::Nothing)),
            "Fee" => (of_usage(), Effective::Billed),
            "Tax" => (ChargeKind::Tax, Effective::Billed),
            "Credit" | "Refund" => (ChargeKind::Credit, Effective::Billed),
            // `EdpDiscount`, `BundledDiscount`, `PrivateRateDiscount` and their like.
            other if other.ends_with("Discount") => (ChargeKind::Credit, Effective::Billed),
            "" => return Err("the type of the line item is missing".to_owned()),
            other => return Err(format!("`{other}` is no type of line item that is known")),
        };
        let pricing = match (line_type, self.get("pricing_term")) {
            ("DiscountedUsage" | "SavingsPlanCoveredUsage", _) | (_, "Reserved") => Some(RESERVED),
            _ if usage_type.contains("SpotUsage") => Some(SPOT),
            (_, "Spot") => Some(SPOT),
            (_, "OnDemand") => Some(ON_DEMAND),
            _ => None,
        };
        let name = self.get("product_product_name");
        Ok(Said {
            kind,
            is_usage: ["Usage", "DiscountedUsage", "SavingsPlanCoveredUsage"].contains(&line_type),
            from: self.get("line_item_usage_start_date"),
            until: self.get("line_item_usage_end_date"),
            effective,
            list: ("publicOnDemandCost", self.get("pricing_public_on_demand_cost")),
            quantity: ("UsageAmount", self.get("line_item_usage_amount")),
            unit: self.get("pricing_unit"),
            service: if name.is_empty() { code } else { name }.to_owned(),
            description: if described.is_empty() { usage_type } else { described }.to_owned(),
            resource: self.get("line_item_resource_id"),
            region: self.first_of(&["product_region_code", "product_region"]),
            account: self.first_of(&["line_item_usage_account_id", "bill_payer_account_id"]),
            pricing,
            meter: self.words(&[
                "line_item_line_item_type",
                "line_item_product_code",
                "line_item_usage_type",
                "line_item_operation",
                "line_item_line_item_description",
                "pricing_rate_code",
                "reservation_reservation_a_r_n",
                "savings_plan_savings_plan_a_r_n",
                "resource_tags",
            ]),
        })
    }
}

/// What covered usage comes to; and of the fee of a plan all of it, and the part that was used.
const PLAN_COSTS: [&str; 3] = [
    "savings_plan_savings_plan_effective_cost",
    "savings_plan_total_commitment_to_date",
    "savings_plan_used_commitment",
];
/// The same of a reservation, whose fee has two parts that nobody used.
const RESERVATION_COSTS: [&str; 3] = [
    "reservation_effective_cost",
    "reservation_unused_amortized_upfront_fee_for_billing_period",
    "reservation_unused_recurring_fee",
];

/// How a charge was bought.
const ON_DEMAND: &str = "on demand";
const RESERVED: &str = "reserved";
const SPOT: &str = "spot";

/// An amount in a column; none where nothing is written.
pub(super) fn amount((column, text): (&str, &str)) -> Result<Option<Decimal>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let problem = || format!("`{column}` is `{}`, which is no number", crate::value::clip(text));
    Decimal::parse(text).map(Some).ok_or_else(problem)
}
