//! Rows of a FOCUS 1.3 table.

use plimsoll_study::FocusRow;
use serde_json::json;

/// What all rows have in common.
pub struct FocusHead<'a> {
    /// Whose books these are.
    pub account: &'a str,
    /// The beginning of the period; none where nothing has a date.
    pub start: Option<&'a str>,
    /// Its end.
    pub end: Option<&'a str>,
}

/// The columns, in their order. Custom ones begin with `x_`, as FOCUS asks.
pub const FOCUS_COLUMNS: [&str; 55] = [
    "BilledCost",
    "EffectiveCost",
    "ListCost",
    "ContractedCost",
    "BillingCurrency",
    "BillingAccountId",
    "BillingAccountName",
    "SubAccountId",
    "SubAccountName",
    "BillingPeriodStart",
    "BillingPeriodEnd",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "ChargeCategory",
    "ChargeClass",
    "ChargeFrequency",
    "ChargeDescription",
    "ServiceCategory",
    "ServiceSubcategory",
    "ServiceName",
    "ServiceProviderName",
    "HostProviderName",
    "InvoiceIssuerName",
    "ProviderName",
    "PublisherName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "RegionId",
    "RegionName",
    "SkuId",
    "SkuMeter",
    "SkuPriceId",
    "SkuPriceDetails",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ConsumedQuantity",
    "ConsumedUnit",
    "CapacityReservationId",
    "CapacityReservationStatus",
    "CommitmentDiscountId",
    "CommitmentDiscountStatus",
    "Tags",
    "AllocatedMethodId",
    "AllocatedMethodDetails",
    "AllocatedResourceId",
    "AllocatedResourceName",
    "AllocatedTags",
    "x_Kind",
    "x_Line",
    "x_TaskCount",
    "x_SuccessfulTaskCount",
    "x_HeadroomCost",
    "x_Attempt",
];

/// The rows as CSV. Amounts are whole micro-dollars written as decimals, so that a sum of them is the sum of the books.
pub fn focus_csv(rows: &[FocusRow], head: &FocusHead<'_>) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(FOCUS_COLUMNS)?;
    for row in rows {
        writer.write_record(fields(row, head))?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn fields(row: &FocusRow, head: &FocusHead<'_>) -> [String; 55] {
    let usd = decimal(row.microusd);
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let (start, end) = (text(head.start), text(head.end));
    let usage = row.category == "Usage";
    let unused = row.reservation == Some("Unused");
    let place = text(row.place.as_deref());
    // Where nobody else is named, the books are those of whoever runs the service.
    let provider = if place.is_empty() { head.account.to_owned() } else { place.clone() };
    let hours = row.device_hours.filter(|_| usage);
    let (priced, unit) = match (hours, row.tokens) {
        (Some(hours), _) => (number(hours), "Hours"),
        (None, Some(tokens)) => (number(tokens), "Tokens"),
        _ => (String::new(), ""),
    };
    let consumed = row.tokens.filter(|_| usage && !unused);
    let sku = format!("{}/{}", row.line, row.meter);
    let allocated = row.method.map(|_| row.tenant.as_deref().unwrap_or("(none)"));
    let tags = json!({ "plimsoll/kind": row.kind }).to_string();
    let details = row.method.map_or(String::new(), |_| json!({ "by": row.why }).to_string());
    let headroom = if unused { usd.clone() } else { String::new() };
    [
        usd.clone(),
        usd.clone(),
        usd.clone(),
        usd,
        "USD".to_owned(),
        head.account.to_owned(),
        head.account.to_owned(),
        text(row.tenant.as_deref()),
        text(row.tenant.as_deref()),
        start.clone(),
        end.clone(),
        start,
        end,
        row.category.to_owned(),
        String::new(),
        "Usage-Based".to_owned(),
        row.description.clone(),
        "AI and Machine Learning".to_owned(),
        "Generative AI".to_owned(),
        "LLM inference".to_owned(),
        provider.clone(),
        provider.clone(),
        head.account.to_owned(),
        provider.clone(),
        provider,
        place.clone(),
        place.clone(),
        text(row.place_kind),
        text(row.region.as_deref()),
        text(row.region.as_deref()),
        if usage { sku.clone() } else { String::new() },
        if usage { row.meter.to_owned() } else { String::new() },
        if usage { sku } else { String::new() },
        String::new(),
        if usage { row.pricing.to_owned() } else { String::new() },
        priced,
        unit.to_owned(),
        consumed.map_or(String::new(), number),
        consumed.map_or(String::new(), |_| "Tokens".to_owned()),
        row.reservation.map_or(String::new(), |_| format!("{place}/{}", row.line)),
        text(row.reservation),
        String::new(),
        String::new(),
        tags.clone(),
        text(row.method),
        details,
        text(allocated),
        text(allocated),
        row.method.map_or(String::new(), |_| tags),
        row.kind.to_owned(),
        row.line.to_owned(),
        row.tasks.map_or(String::new(), |n| n.to_string()),
        row.successes.map_or(String::new(), |n| n.to_string()),
        headroom,
        text(row.end),
    ]
}

/// Whole micro-dollars as a decimal, digit by digit.
fn decimal(micros: i64) -> String {
    let (sign, size) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
    format!("{sign}{}.{:06}", size / 1_000_000, size % 1_000_000)
}

/// A quantity, in as many digits as a float has.
fn number(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}
