//! The functions, what they take and what they give.

use super::ValueType::{self, Matrix, Scalar, String, Vector};

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub(super) args: &'static [ValueType],
    /// How many of them must be there.
    pub(super) least: usize,
    /// How many there may be; what the last one is holds for all that follow.
    pub(super) most: usize,
    /// What it gives.
    pub returns: ValueType,
}

/// The function of a name.
pub(super) fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// A function that takes all its arguments and gives a vector.
const fn plain(name: &'static str, args: &'static [ValueType]) -> Function {
    Function { name, args, least: args.len(), most: args.len(), returns: Vector }
}

const fn optional(
    name: &'static str,
    args: &'static [ValueType],
    least: usize,
    most: usize,
) -> Function {
    Function { name, args, least, most, returns: Vector }
}

const fn number(name: &'static str, args: &'static [ValueType]) -> Function {
    Function { name, args, least: args.len(), most: args.len(), returns: Scalar }
}

const V: &[ValueType] = &[Vector];
const M: &[ValueType] = &[Matrix];
const MANY: usize = usize::MAX;

/// Those of Prometheus 2.x and 3.x, the experimental ones included.
pub(super) static FUNCTIONS: &[Function] = &[
    plain("abs", V),
    plain("absent", V),
    plain("absent_over_time", M),
    plain("acos", V),
    plain("acosh", V),
    plain("asin", V),
    plain("asinh", V),
    plain("atan", V),
    plain("atanh", V),
    plain("avg_over_time", M),
    plain("ceil", V),
    plain("changes", M),
    plain("clamp", &[Vector, Scalar, Scalar]),
    plain("clamp_max", &[Vector, Scalar]),
    plain("clamp_min", &[Vector, Scalar]),
    plain("cos", V),
    plain("cosh", V),
    plain("count_over_time", M),
    optional("day_of_month", V, 0, 1),
    optional("day_of_week", V, 0, 1),
    optional("day_of_year", V, 0, 1),
    optional("days_in_month", V, 0, 1),
    plain("deg", V),
    plain("delta", M),
    plain("deriv", M),
    plain("double_exponential_smoothing", &[Matrix, Scalar, Scalar]),
    number("end", &[]),
    plain("exp", V),
    plain("first_over_time", M),
    plain("floor", V),
    plain("histogram_avg", V),
    plain("histogram_count", V),
    plain("histogram_fraction", &[Scalar, Scalar, Vector]),
    plain("histogram_quantile", &[Scalar, Vector]),
    optional("histogram_quantiles", &[Vector, String, Scalar, Scalar], 3, 12),
    plain("histogram_stddev", V),
    plain("histogram_stdvar", V),
    plain("histogram_sum", V),
    // As `double_exponential_smoothing` was called before 3.0.
    plain("holt_winters", &[Matrix, Scalar, Scalar]),
    optional("hour", V, 0, 1),
    plain("idelta", M),
    plain("increase", M),
    optional("info", &[Vector, Vector], 1, 2),
    optional("integral", &[Matrix, Scalar], 1, 2),
    plain("irate", M),
    optional("label_join", &[Vector, String, String, String], 3, MANY),
    plain("label_replace", &[Vector, String, String, String, String]),
    plain("last_over_time", M),
    plain("ln", V),
    plain("log10", V),
    plain("log2", V),
    plain("mad_over_time", M),
    plain("max_over_time", M),
    plain("min_over_time", M),
    optional("minute", V, 0, 1),
    optional("month", V, 0, 1),
    number("pi", &[]),
    plain("predict_linear", &[Matrix, Scalar]),
    plain("present_over_time", M),
    plain("quantile_over_time", &[Scalar, Matrix]),
    plain("rad", V),
    number("range", &[]),
    plain("rate", M),
    plain("resets", M),
    optional("round", &[Vector, Scalar], 1, 2),
    number("scalar", V),
    plain("sgn", V),
    plain("sin", V),
    plain("sinh", V),
    plain("sort", V),
    optional("sort_by_label", &[Vector, String], 1, MANY),
    optional("sort_by_label_desc", &[Vector, String], 1, MANY),
    plain("sort_desc", V),
    plain("sqrt", V),
    number("start", &[]),
    plain("stddev_over_time", M),
    plain("stdvar_over_time", M),
    number("step", &[]),
    plain("sum_over_time", M),
    plain("tan", V),
    plain("tanh", V),
    number("time", &[]),
    plain("timestamp", V),
    plain("ts_of_first_over_time", M),
    plain("ts_of_last_over_time", M),
    plain("ts_of_max_over_time", M),
    plain("ts_of_min_over_time", M),
    plain("vector", &[Scalar]),
    optional("year", V, 0, 1),
];
