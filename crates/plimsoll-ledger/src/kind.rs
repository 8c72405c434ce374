//! The kinds of columns: what a value is in Rust, and what it is in Parquet.

use std::sync::Arc;

use jiff::Timestamp;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Value, json};

use crate::column::{Column, EMPTY_LIST, ITEM, KNOWN, Table, Texts, Values};

/// A kind of column.
pub trait Kind {
    /// What it is in Rust.
    type Value;
    /// Values that are known.
    type Known: Default;
    /// What it is in Parquet. Every column may be null: unknown is never zero.
    fn field(name: &str) -> TypePtr;
    /// Adds a value, with its levels.
    fn append(column: &mut Builder<Self>, value: &Self::Value);
    fn values(known: Self::Known) -> Values;
    /// The value as JSON.
    fn json(value: &Self::Value) -> Value;
    /// The values of a column of this kind; the caller has checked the kind.
    fn read(column: &Column) -> Vec<Option<Self::Value>>;
}

/// A column on its way. Values that are unknown are counted, and written with the next that is known.
pub struct Builder<K: Kind + ?Sized> {
    known: K::Known,
    levels: Vec<i16>,
    repeats: Vec<i16>,
    nulls: usize,
}

impl<K: Kind> Builder<K> {
    pub(crate) fn new() -> Self {
        Self { known: K::Known::default(), levels: Vec::new(), repeats: Vec::new(), nulls: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: Option<&K::Value>) {
        match value {
            None => self.nulls += 1,
            Some(value) => K::append(self, value),
        }
    }

    pub(crate) fn finish(self) -> Column {
        let Self { known, levels, repeats, nulls } = self;
        Column { values: K::values(known), levels, repeats, nulls }
    }
}

impl<K: Kind + ?Sized> Builder<K> {
    #[inline]
    fn level(&mut self, level: i16) {
        if self.nulls > 0 {
            self.levels.resize(self.levels.len() + self.nulls, 0);
            self.nulls = 0;
        }
        self.levels.push(level);
    }
}

fn primitive(name: &str, physical: Physical, logical: Option<LogicalType>) -> TypePtr {
    let field = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    Arc::new(field.build().expect("a type that Parquet has"))
}

/// The values of a column that is no list, with what is unknown in between.
fn spread<T>(column: &Column, mut known: impl Iterator<Item = T>) -> Vec<Option<T>> {
    let levels = column.levels.iter().map(|level| *level == KNOWN);
    let levels = levels.chain(std::iter::repeat_n(false, column.nulls));
    levels.map(|is_known| if is_known { known.next() } else { None }).collect()
}

macro_rules! primitive {
    ($(#[$about:meta])* $kind:ident, $value:ty, $known:ty, $variant:ident, $field:expr, $into:expr, $from:expr, $json:expr) => {
        $(#[$about])*
        pub struct $kind;

        impl Kind for $kind {
            type Value = $value;
            type Known = Vec<$known>;

            fn field(name: &str) -> TypePtr {
                let (physical, logical) = $field;
                primitive(name, physical, logical)
            }

            #[inline]
            fn append(column: &mut Builder<Self>, value: &$value) {
                let into: fn($value) -> $known = $into;
                column.level(KNOWN);
                column.known.push(into(*value));
            }

            fn values(known: Self::Known) -> Values {
                Values::$variant(known)
            }

            fn json(value: &$value) -> Value {
                let json: fn($value) -> Value = $json;
                json(*value)
            }

            fn read(column: &Column) -> Vec<Option<$value>> {
                let from: fn($known) -> $value = $from;
                match &column.values {
                    Values::$variant(known) => spread(column, known.iter().map(|v| from(*v))),
                    _ => vec![None; column.nulls],
                }
            }
        }
    };
}

/// Whole numbers of so many bits, without a sign.
fn unsigned(bit_width: i8) -> Option<LogicalType> {
    Some(LogicalType::integer(bit_width, false))
}

primitive!(
    /// Up to 65,535.
    Short, u16, i32, Ints, (Physical::INT32, unsigned(16)), i32::from, |n| n as u16, |n| json!(n)
);
primitive!(
    /// Tokens of a request.
    Number, u32, i32, Ints, (Physical::INT32, unsigned(32)), u32::cast_signed, i32::cast_unsigned, |n| json!(n)
);
primitive!(
    /// A line of a file.
    Small, u64, i64, Longs, (Physical::INT64, unsigned(64)), u64::cast_signed, i64::cast_unsigned, |n| json!(n)
);
primitive!(
    /// Seconds, dollars, weights.
    Real, f64, f64, Reals, (Physical::DOUBLE, None), |x| x, |x| x, |x| json!(x)
);
primitive!(
    /// A moment, in nanoseconds from 1970, UTC.
    Time,
    i64,
    i64,
    Longs,
    (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
    |ns| ns,
    |ns| ns,
    |ns| Timestamp::from_nanosecond(i128::from(ns)).map_or(Value::Null, |at| json!(at.to_string()))
);
primitive!(
    /// Yes or no.
    Flag, bool, bool, Flags, (Physical::BOOLEAN, None), |flag| flag, |flag| flag, |flag| json!(flag)
);

/// A name.
pub struct Text;

impl Kind for Text {
    type Value = String;
    type Known = Table;

    fn field(name: &str) -> TypePtr {
        primitive(name, Physical::BYTE_ARRAY, Some(LogicalType::String))
    }

    #[inline]
    fn append(column: &mut Builder<Self>, value: &String) {
        column.level(KNOWN);
        column.known.push(value);
    }

    fn values(plain: Table) -> Values {
        Values::Texts(Texts { plain, ..Texts::default() })
    }

    fn json(value: &String) -> Value {
        json!(value)
    }

    fn read(column: &Column) -> Vec<Option<String>> {
        match &column.values {
            Values::Texts(texts) => spread(column, texts.iter().map(str::to_owned)),
            _ => vec![None; column.nulls],
        }
    }
}

macro_rules! list {
    ($(#[$about:meta])* $kind:ident, $value:ty, $known:ty, $variant:ident, $item:ty, $into:expr, $from:expr) => {
        $(#[$about])*
        pub struct $kind;

        impl Kind for $kind {
            type Value = Vec<$value>;
            type Known = Vec<$known>;

            fn field(name: &str) -> TypePtr {
                list(name, <$item>::field("item"))
            }

            fn append(column: &mut Builder<Self>, values: &Vec<$value>) {
                let into: fn($value) -> $known = $into;
                column.level(if values.is_empty() { EMPTY_LIST } else { ITEM });
                column.repeats.resize(column.levels.len(), 0);
                for _ in values.iter().skip(1) {
                    column.levels.push(ITEM);
                    column.repeats.push(1);
                }
                column.known.extend(values.iter().map(|value| into(*value)));
            }

            fn values(known: Self::Known) -> Values {
                Values::$variant(known)
            }

            fn json(values: &Vec<$value>) -> Value {
                json!(values)
            }

            fn read(column: &Column) -> Vec<Option<Vec<$value>>> {
                let from: fn($known) -> $value = $from;
                match &column.values {
                    Values::$variant(known) => lists(column, known.iter().map(|v| from(*v))),
                    _ => vec![None; column.nulls],
                }
            }
        }
    };
}

fn list(name: &str, item: TypePtr) -> TypePtr {
    let group = |name: &str, repetition, logical, field| {
        let group = Type::group_type_builder(name)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .with_fields(vec![field]);
        Arc::new(group.build().expect("a type that Parquet has"))
    };
    let items = group("list", Repetition::REPEATED, None, item);
    group(name, Repetition::OPTIONAL, Some(LogicalType::List), items)
}

/// The lists of a column; items that are unknown are left out.
fn lists<T>(column: &Column, mut known: impl Iterator<Item = T>) -> Vec<Option<Vec<T>>> {
    let mut rows: Vec<Option<Vec<T>>> = Vec::new();
    for (level, repeat) in column.levels.iter().zip(&column.repeats) {
        if *repeat == 0 {
            rows.push((*level >= EMPTY_LIST).then(Vec::new));
        }
        if let (ITEM, Some(Some(row))) = (*level, rows.last_mut()) {
            row.extend(known.next());
        }
    }
    rows.extend(std::iter::repeat_with(|| None).take(column.nulls));
    rows
}

list!(
    /// Whole numbers in a row of their own, such as names of blocks.
    Names, u64, i64, Longs, Small, u64::cast_signed, i64::cast_unsigned
);
list!(
    /// Numbers in a row of their own, such as shares.
    Reals, f64, f64, Reals, Real, |x| x, |x| x
);
