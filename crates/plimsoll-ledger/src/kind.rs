//! The kinds of columns: what a value is in Rust, and what it is in Arrow.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, ListBuilder, StringBuilder, TimestampNanosecondBuilder,
    UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::{DataType, Field, TimeUnit};
use jiff::Timestamp;
use serde_json::{Value, json};

/// A kind of column.
pub trait Kind {
    /// What it is in Rust.
    type Value;
    type Builder;
    fn data_type() -> DataType;
    fn builder() -> Self::Builder;
    fn append(builder: &mut Self::Builder, value: Option<&Self::Value>);
    fn append_nulls(builder: &mut Self::Builder, count: usize);
    fn finish(builder: &mut Self::Builder) -> ArrayRef;
    /// The value as JSON.
    fn json(value: &Self::Value) -> Value;
    /// The values of an array of this kind, or of one that can be cast to it without loss.
    fn read(array: &ArrayRef) -> Result<Vec<Option<Self::Value>>, String>;
}

/// A column on its way. Most columns of most logs are unknown throughout: such values are counted, and written at once.
pub(crate) struct Column<K: Kind> {
    /// None before the first known value.
    builder: Option<K::Builder>,
    /// Unknown values after those in the builder.
    nulls: usize,
}

impl<K: Kind> Column<K> {
    pub(crate) fn new() -> Self {
        Self { builder: None, nulls: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: Option<&K::Value>) {
        match value {
            None => self.nulls += 1,
            known => K::append(
                Self::written(self.builder.get_or_insert_with(K::builder), &mut self.nulls),
                known,
            ),
        }
    }

    pub(crate) fn finish(&mut self) -> ArrayRef {
        match &mut self.builder {
            None => new_null_array(&K::data_type(), std::mem::take(&mut self.nulls)),
            Some(builder) => K::finish(Self::written(builder, &mut self.nulls)),
        }
    }

    /// The builder, with what is unknown written into it.
    #[inline]
    fn written<'a>(builder: &'a mut K::Builder, nulls: &mut usize) -> &'a mut K::Builder {
        if *nulls > 0 {
            K::append_nulls(builder, std::mem::take(nulls));
        }
        builder
    }
}

/// Casts an array, refusing what the new type cannot hold.
fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = arrow_cast::CastOptions { safe: false, ..arrow_cast::CastOptions::default() };
    arrow_cast::cast_with_options(array, to, &options)
        .map_err(|error| format!("is {}, not {to}: {error}", array.data_type()))
}

macro_rules! primitive {
    ($(#[$about:meta])* $kind:ident, $value:ty, $arrow:ty, $builder:ty, $data_type:expr, $json:expr) => {
        $(#[$about])*
        pub struct $kind;

        impl Kind for $kind {
            type Value = $value;
            type Builder = $builder;

            fn json(value: &$value) -> Value {
                let json: fn($value) -> Value = $json;
                json(*value)
            }

            fn data_type() -> DataType {
                $data_type
            }

            fn builder() -> Self::Builder {
                <$builder>::new().with_data_type($data_type)
            }

            fn append(builder: &mut Self::Builder, value: Option<&$value>) {
                builder.append_option(value.copied());
            }

            fn append_nulls(builder: &mut Self::Builder, count: usize) {
                builder.append_nulls(count);
            }

            fn finish(builder: &mut Self::Builder) -> ArrayRef {
                Arc::new(builder.finish())
            }

            fn read(array: &ArrayRef) -> Result<Vec<Option<$value>>, String> {
                let array = cast(array, &$data_type)?;
                Ok(array.as_primitive::<$arrow>().iter().collect())
            }
        }
    };
}

primitive!(
    /// Up to 65,535.
    Short, u16, UInt16Type, UInt16Builder, DataType::UInt16, |n| json!(n)
);
primitive!(
    /// Tokens of a request.
    Number, u32, UInt32Type, UInt32Builder, DataType::UInt32, |n| json!(n)
);
primitive!(
    /// A line of a file.
    Small, u64, UInt64Type, UInt64Builder, DataType::UInt64, |n| json!(n)
);
primitive!(
    /// Seconds, dollars, weights.
    Real, f64, Float64Type, Float64Builder, DataType::Float64, |x| json!(x)
);
primitive!(
    /// A moment, in nanoseconds from 1970, UTC.
    Time,
    i64,
    TimestampNanosecondType,
    TimestampNanosecondBuilder,
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
    |ns| Timestamp::from_nanosecond(i128::from(ns)).map_or(Value::Null, |at| json!(at.to_string()))
);

/// A name.
pub struct Text;

impl Kind for Text {
    type Value = String;
    type Builder = StringBuilder;

    fn json(value: &String) -> Value {
        json!(value)
    }

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn builder() -> StringBuilder {
        StringBuilder::new()
    }

    fn append(builder: &mut StringBuilder, value: Option<&String>) {
        builder.append_option(value);
    }

    fn append_nulls(builder: &mut StringBuilder, count: usize) {
        builder.append_nulls(count);
    }

    fn finish(builder: &mut StringBuilder) -> ArrayRef {
        Arc::new(builder.finish())
    }

    fn read(array: &ArrayRef) -> Result<Vec<Option<String>>, String> {
        let array = cast(array, &DataType::Utf8)?;
        Ok(array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect())
    }
}

/// Yes or no.
pub struct Flag;

impl Kind for Flag {
    type Value = bool;
    type Builder = BooleanBuilder;

    fn json(value: &bool) -> Value {
        json!(value)
    }

    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn builder() -> BooleanBuilder {
        BooleanBuilder::new()
    }

    fn append(builder: &mut BooleanBuilder, value: Option<&bool>) {
        builder.append_option(value.copied());
    }

    fn append_nulls(builder: &mut BooleanBuilder, count: usize) {
        builder.append_nulls(count);
    }

    fn finish(builder: &mut BooleanBuilder) -> ArrayRef {
        Arc::new(builder.finish())
    }

    fn read(array: &ArrayRef) -> Result<Vec<Option<bool>>, String> {
        let array = cast(array, &DataType::Boolean)?;
        Ok(array.as_boolean().iter().collect())
    }
}

macro_rules! list {
    ($(#[$about:meta])* $kind:ident, $value:ty, $arrow:ty, $builder:ty, $data_type:expr) => {
        $(#[$about])*
        pub struct $kind;

        impl Kind for $kind {
            type Value = Vec<$value>;
            type Builder = ListBuilder<$builder>;

            fn json(values: &Vec<$value>) -> Value {
                json!(values)
            }

            fn data_type() -> DataType {
                DataType::List(Arc::new(Field::new("item", $data_type, true)))
            }

            fn builder() -> Self::Builder {
                ListBuilder::new(<$builder>::new())
            }

            fn append(builder: &mut Self::Builder, value: Option<&Vec<$value>>) {
                if let Some(values) = value {
                    builder.values().append_slice(values);
                }
                builder.append(value.is_some());
            }

            fn append_nulls(builder: &mut Self::Builder, count: usize) {
                builder.append_nulls(count);
            }

            fn finish(builder: &mut Self::Builder) -> ArrayRef {
                Arc::new(builder.finish())
            }

            fn read(array: &ArrayRef) -> Result<Vec<Option<Vec<$value>>>, String> {
                let array = cast(array, &Self::data_type())?;
                let values = |list: ArrayRef| list.as_primitive::<$arrow>().iter().flatten().collect();
                Ok(array.as_list::<i32>().iter().map(|list| list.map(values)).collect())
            }
        }
    };
}

list!(
    /// Whole numbers in a row of their own, such as names of blocks.
    Names, u64, UInt64Type, UInt64Builder, DataType::UInt64
);
list!(
    /// Numbers in a row of their own, such as shares.
    Reals, f64, Float64Type, Float64Builder, DataType::Float64
);
