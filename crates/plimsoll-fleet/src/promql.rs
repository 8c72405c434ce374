//! PromQL, read as Prometheus reads it: a query is a tree whose types are checked, or a mistake with its place.
//!
//! It takes what a Prometheus 2.x or 3.x takes with its experimental functions switched on, and refuses what both refuse.
//! Syntax that only a feature flag brings (arithmetic on durations, `smoothed`, `anchored`, `fill`) is refused.
//!
//! ```
//! use plimsoll_fleet::promql::{self, Expr, ValueType};
//!
//! let query = promql::read("sum by (pod) (rate(calls_total[5m])) > 3")?;
//! assert!(matches!(&query, Expr::Binary(binary) if binary.op.compares()));
//! assert_eq!(query.value_type(), ValueType::Vector);
//!
//! let error = promql::read("rate(calls_total)").unwrap_err();
//! assert_eq!((error.at, error.message.as_str()), (5, "`rate` takes a range vector here, not an instant vector"));
//! # Ok::<(), promql::QueryError>(())
//! ```

mod functions;
mod lexer;
mod print;
mod reader;
mod regex;

pub use functions::Function;
pub use reader::read;

/// Why a text is no query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QueryError {
    /// What is wrong.
    pub message: String,
    /// Where, in characters from the start of the query.
    pub at: usize,
}

/// What an expression evaluates to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// One number.
    Scalar,
    /// A number for each series.
    Vector,
    /// Several numbers for each series.
    Matrix,
    /// A text.
    String,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number, or a duration in seconds; a sign before it is part of it.
    Number(f64),
    /// A text. Bytes that are not UTF-8 are replaced.
    Text(String),
    /// The latest values of series.
    Selector(Selector),
    /// The values of series over milliseconds.
    Range(Selector, i64),
    /// An expression evaluated again and again.
    Subquery(Box<Subquery>),
    /// Series combined into fewer.
    Aggregate(Box<Aggregate>),
    /// A function of arguments.
    Call(Call),
    /// An operator between two expressions.
    Binary(Box<Binary>),
    /// `-` or `+` before an expression that is no number.
    Unary(Sign, Box<Expr>),
    /// An expression in parentheses.
    Paren(Box<Expr>),
}

/// Which series, and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector {
    /// The metric before the braces. A name inside them is a matcher of `__name__`.
    pub name: Option<String>,
    /// What labels must be like.
    pub matchers: Vec<Matcher>,
    /// When it is looked at.
    pub time: Time,
}

/// What a label must be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    /// The label.
    pub label: String,
    /// How it is compared.
    pub op: MatchOp,
    /// What with.
    pub value: String,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Regex,
    /// `!~`
    NotRegex,
}

/// What `offset` and `@` say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Time {
    /// Milliseconds before the time that is asked for; negative ones are after it.
    pub offset: i64,
    /// A time of its own.
    pub at: Option<At>,
}

/// What `@` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Milliseconds since 1970.
    Time(i64),
    /// Where the question starts.
    Start,
    /// Where the question ends.
    End,
}

/// An expression evaluated again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    /// What is evaluated.
    pub expr: Expr,
    /// Over how many milliseconds.
    pub range: i64,
    /// Every how many milliseconds; the server's default where none is given.
    pub step: Option<i64>,
    /// When it is looked at.
    pub time: Time,
}

/// Series combined into fewer.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// How.
    pub op: AggregateOp,
    /// The `k`, quantile, ratio or label that the operator takes.
    pub param: Option<Expr>,
    /// What is combined.
    pub expr: Expr,
    /// `by` or `without`.
    pub grouping: Option<Labels>,
}

/// Labels that count, or that do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labels {
    /// `by` and `on`.
    Only(Vec<String>),
    /// `without` and `ignoring`.
    Except(Vec<String>),
}

/// A function of arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function.
    pub function: &'static Function,
    /// Its arguments.
    pub args: Vec<Expr>,
}

/// An operator between two expressions.
#[derive(Clone, Debug, PartialEq)]
pub struct Binary {
    /// The operator.
    pub op: BinaryOp,
    /// Before it.
    pub left: Expr,
    /// Behind it.
    pub right: Expr,
    /// Whether a comparison gives 0 or 1 instead of dropping series.
    pub returns_bool: bool,
    /// `on` or `ignoring`.
    pub matching: Option<Labels>,
    /// `group_left` or `group_right`.
    pub group: Option<Group>,
}

/// The side that may have several series for a match, and the labels that it takes from the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// `group_left`
    Left(Vec<String>),
    /// `group_right`
    Right(Vec<String>),
}

/// The sign before an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// `+`
    Plus,
    /// `-`
    Minus,
}

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = concat!("`", $word, "`")] $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// As it is written.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|each| each.word().eq_ignore_ascii_case(word))
            }
        }
    };
}

words! {
    /// How series are combined.
    AggregateOp {
        Sum = "sum", Avg = "avg", Count = "count", Min = "min", Max = "max", Group = "group", Stddev = "stddev",
        Stdvar = "stdvar", Topk = "topk", Bottomk = "bottomk", CountValues = "count_values", Quantile = "quantile",
        Limitk = "limitk", LimitRatio = "limit_ratio",
    }
}

words! {
    /// An operator between two expressions.
    BinaryOp {
        Or = "or", And = "and", Unless = "unless", Equal = "==", NotEqual = "!=", Less = "<", LessEqual = "<=",
        Greater = ">", GreaterEqual = ">=", Add = "+", Sub = "-", Mul = "*", Div = "/", Mod = "%", Atan2 = "atan2",
        Pow = "^",
    }
}

impl AggregateOp {
    /// What it takes besides a vector.
    fn param(self) -> Option<ValueType> {
        match self {
            Self::Topk | Self::Bottomk | Self::Quantile | Self::Limitk | Self::LimitRatio => {
                Some(ValueType::Scalar)
            }
            Self::CountValues => Some(ValueType::String),
            _ => None,
        }
    }
}

impl BinaryOp {
    /// Whether it compares.
    pub fn compares(self) -> bool {
        self.precedence() == 3
    }

    /// Whether it is for sets: `and`, `or`, `unless`.
    pub fn is_for_sets(self) -> bool {
        self.precedence() < 3
    }

    /// Operators of a higher one bind first.
    fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And | Self::Unless => 2,
            Self::Equal | Self::NotEqual => 3,
            Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual => 3,
            Self::Add | Self::Sub => 4,
            Self::Mul | Self::Div | Self::Mod | Self::Atan2 => 5,
            Self::Pow => 6,
        }
    }
}

impl Expr {
    /// What it evaluates to.
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::Number(_) => ValueType::Scalar,
            Self::Text(_) => ValueType::String,
            Self::Selector(_) | Self::Aggregate(_) => ValueType::Vector,
            Self::Range(..) | Self::Subquery(_) => ValueType::Matrix,
            Self::Call(call) => call.function.returns,
            Self::Binary(binary) => match (binary.left.value_type(), binary.right.value_type()) {
                (ValueType::Scalar, ValueType::Scalar) => ValueType::Scalar,
                _ => ValueType::Vector,
            },
            Self::Unary(_, inner) | Self::Paren(inner) => inner.value_type(),
        }
    }

    /// The expressions that it is made of, in the order they are written.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Aggregate(aggregate) => aggregate.param.iter().chain([&aggregate.expr]).collect(),
            Self::Unary(_, inner) | Self::Paren(inner) => vec![inner],
            Self::Binary(binary) => vec![&binary.left, &binary.right],
            Self::Subquery(subquery) => vec![&subquery.expr],
            Self::Call(call) => call.args.iter().collect(),
            Self::Number(_) | Self::Text(_) | Self::Selector(_) | Self::Range(..) => Vec::new(),
        }
    }

    /// All selectors in it, those of ranges too.
    pub fn selectors(&self) -> Vec<&Selector> {
        match self {
            Self::Selector(selector) | Self::Range(selector, _) => vec![selector],
            _ => self.children().into_iter().flat_map(Self::selectors).collect(),
        }
    }
}

impl Selector {
    /// The metric, wherever it is named.
    pub fn metric(&self) -> Option<&str> {
        self.name.as_deref().or_else(|| {
            let named =
                |matcher: &&Matcher| matcher.label == "__name__" && matcher.op == MatchOp::Equal;
            self.matchers.iter().find(named).map(|matcher| matcher.value.as_str())
        })
    }
}
