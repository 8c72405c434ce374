//! Parquet of others: columns of any type, nested as deep as they like, as the text that a table would have.

use std::fmt::Write as _;
use std::sync::Arc;

use csv::StringRecord;
use jiff::civil::{Date, Time};
use jiff::{Span, Timestamp, tz::Offset};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::{ByteArray, Int96};
use parquet::errors::Result;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::{ColumnDescPtr, Type, TypePtr};

use super::KNOWN;
use super::read::{
    Coded, CodedRows, Opened, Pages, in_column, is_plain_or_coded, records, rows_of,
};

/// Rows of a file of others.
pub(crate) struct Batch {
    pub(crate) rows: usize,
    fields: Arc<Vec<Node>>,
    leaves: Vec<Leaf>,
}

/// Passes on every row in batches, until the caller stops.
pub(crate) fn each_batch<R: ChunkReader + 'static>(
    opened: &Opened<R>,
    batch_rows: usize,
    mut each: impl FnMut(Batch) -> bool,
) -> Result<()> {
    let schema = opened.schema();
    let mut place = 0;
    let fields = schema.root_schema().get_fields().iter();
    let fields = Arc::new(fields.map(|field| Node::of(field, 0, 0, &mut place)).collect());
    for group in opened.metadata.row_groups() {
        let mut left = rows_of(group);
        let columns = schema.columns().iter().enumerate().map(|(place, column)| {
            let pages = Pages::new(&opened.source, group, place)?;
            let is_bytes = column.physical_type() == Physical::BYTE_ARRAY;
            let reader = if is_bytes && group.column(place).encodings().all(is_plain_or_coded) {
                Reader::Coded(Coded::new(column, pages)?)
            } else {
                Reader::Plain(get_column_reader(Arc::clone(column), Box::new(pages)))
            };
            Ok((Arc::clone(column), reader))
        });
        let mut columns: Vec<(ColumnDescPtr, Reader)> = columns.collect::<Result<_>>()?;
        while left > 0 {
            let rows = left.min(batch_rows);
            left -= rows;
            let leaves = columns.iter_mut().map(|(column, reader)| {
                Leaf::read(column, reader, rows)
                    .map_err(|error| in_column(&column.path().string(), &error))
            });
            let leaves = leaves.collect::<Result<_>>()?;
            if !each(Batch { rows, fields: Arc::clone(&fields), leaves }) {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl Batch {
    /// The rows as records of text, so that columns of any type are read by the one reader of tables.
    pub(crate) fn each_record(
        &self,
        mut each: impl FnMut(u64, std::result::Result<StringRecord, String>),
    ) {
        let mut cursors: Vec<Cursor<'_>> = self.leaves.iter().map(Cursor::new).collect();
        let mut text = String::new();
        for row in 0..self.rows as u64 {
            let mut record = StringRecord::new();
            let mut problem = None;
            for field in self.fields.iter() {
                text.clear();
                match field.show(&mut cursors, &mut text) {
                    Ok(()) => record.push_field(&text),
                    Err(error) => problem = Some(error),
                }
            }
            each(row, problem.map_or(Ok(record), Err));
        }
    }
}

/// A column chunk that is being read.
enum Reader {
    Plain(ColumnReader),
    Coded(Coded<Vec<ByteArray>>),
}

/// A field of a schema.
struct Node {
    shape: Shape,
    /// Below this definition level it is null.
    defined: i16,
    /// Leaves that it is made of.
    leaves: std::ops::Range<usize>,
}

enum Shape {
    Value,
    Group(Vec<(String, Node)>),
    /// Its items, and the level at which another of the same list follows.
    List(Box<Node>, i16),
    Map(Box<[Node; 2]>, i16),
}

impl Node {
    fn of(field: &TypePtr, defined: i16, repeats: i16, place: &mut usize) -> Self {
        match field.get_basic_info().has_repetition().then(|| field.get_basic_info().repetition()) {
            // Without a group around it, a repeated field is a list that is never null.
            Some(Repetition::REPEATED) => {
                let begin = *place;
                let item = Self::inside(field, defined + 1, repeats + 1, place);
                let shape = Shape::List(Box::new(item), repeats + 1);
                Self { shape, defined, leaves: begin..*place }
            }
            Some(Repetition::OPTIONAL) => Self::inside(field, defined + 1, repeats, place),
            _ => Self::inside(field, defined, repeats, place),
        }
    }

    /// The field without its own repetition.
    fn inside(field: &TypePtr, defined: i16, repeats: i16, place: &mut usize) -> Self {
        let begin = *place;
        let shape = match &**field {
            Type::PrimitiveType { .. } => {
                *place += 1;
                Shape::Value
            }
            Type::GroupType { fields, .. } => match (kind_of_group(field), fields.as_slice()) {
                (Some(ConvertedType::LIST), [items]) if is_repeated(items) => {
                    let item = match item_of(items) {
                        Some(item) => Self::of(item, defined + 1, repeats + 1, place),
                        None => Self::inside(items, defined + 1, repeats + 1, place),
                    };
                    Shape::List(Box::new(item), repeats + 1)
                }
                (Some(ConvertedType::MAP), [pairs]) if is_repeated(pairs) => match &**pairs {
                    Type::GroupType { fields, .. } if fields.len() == 2 => {
                        let mut of = |field| Self::of(field, defined + 1, repeats + 1, place);
                        Shape::Map(Box::new([of(&fields[0]), of(&fields[1])]), repeats + 1)
                    }
                    _ => {
                        let item = Self::inside(pairs, defined + 1, repeats + 1, place);
                        Shape::List(Box::new(item), repeats + 1)
                    }
                },
                (_, fields) => Shape::Group(
                    fields
                        .iter()
                        .map(|field| {
                            (field.name().to_owned(), Self::of(field, defined, repeats, place))
                        })
                        .collect(),
                ),
            },
        };
        Self { shape, defined, leaves: begin..*place }
    }

    /// Writes the next value; what is null is empty.
    fn show(
        &self,
        cursors: &mut [Cursor<'_>],
        text: &mut String,
    ) -> std::result::Result<(), String> {
        let own = self.leaves.clone();
        let level = cursors.get(own.start).map_or(0, Cursor::level);
        if let Shape::Value = self.shape {
            return cursors[own.start].show(text);
        }
        let ends = match self.shape {
            Shape::Group(_) | Shape::Map(..) => ('{', '}'),
            _ => ('[', ']'),
        };
        let has_items = match self.shape {
            Shape::Group(_) => level >= self.defined,
            _ => level > self.defined,
        };
        if level >= self.defined {
            text.push(ends.0);
        }
        if !has_items {
            cursors[own.clone()].iter_mut().for_each(Cursor::pass);
        } else {
            match &self.shape {
                Shape::Value => {}
                Shape::Group(fields) => {
                    for (i, (name, field)) in fields.iter().enumerate() {
                        let _ = write!(text, "{}{name}: ", if i > 0 { ", " } else { "" });
                        field.show(cursors, text)?;
                    }
                }
                Shape::List(item, again) => loop {
                    item.show(cursors, text)?;
                    if cursors[own.start].repeat() != *again {
                        break;
                    }
                    text.push_str(", ");
                },
                Shape::Map(pair, again) => loop {
                    pair[0].show(cursors, text)?;
                    text.push_str(": ");
                    pair[1].show(cursors, text)?;
                    if cursors[own.start].repeat() != *again {
                        break;
                    }
                    text.push_str(", ");
                },
            }
        }
        if level >= self.defined {
            text.push(ends.1);
        }
        Ok(())
    }
}

fn is_repeated(field: &Type) -> bool {
    field.get_basic_info().has_repetition()
        && field.get_basic_info().repetition() == Repetition::REPEATED
}

fn kind_of_group(field: &Type) -> Option<ConvertedType> {
    match (field.get_basic_info().logical_type_ref(), field.get_basic_info().converted_type()) {
        (Some(LogicalType::List), _) | (None, ConvertedType::LIST) => Some(ConvertedType::LIST),
        (Some(LogicalType::Map), _) | (None, ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE) => {
            Some(ConvertedType::MAP)
        }
        _ => None,
    }
}

/// The item within the repeated group of a list; none where older writers made the group itself the item.
fn item_of(items: &Type) -> Option<&TypePtr> {
    match items {
        Type::GroupType { fields, .. } => match fields.as_slice() {
            [item] if items.name() != "array" && !items.name().ends_with("_tuple") => Some(item),
            _ => None,
        },
        Type::PrimitiveType { .. } => None,
    }
}

/// A column of values, and how they are shown.
struct Leaf {
    values: Raw,
    show: Show,
    levels: Vec<i16>,
    repeats: Vec<i16>,
    /// The definition level of a known value.
    known: i16,
}

enum Raw {
    Flags(Vec<bool>),
    Ints(Vec<i32>),
    Longs(Vec<i64>),
    Moments(Vec<Int96>),
    Floats(Vec<f32>),
    Reals(Vec<f64>),
    Bytes(Vec<ByteArray>),
}

#[derive(Clone, Copy)]
enum Show {
    Plain,
    Unsigned,
    Decimal(usize),
    Date,
    /// Of a day, with so many nanoseconds to one.
    Time(i64),
    /// Moments with so many nanoseconds to one; whether they are of UTC or of no zone.
    Moment(i64, bool),
    Text,
    Half,
}

impl Show {
    fn of(column: &ColumnDescPtr) -> Self {
        let ns = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => 1_000_000,
            TimeUnit::MICROS => 1000,
            TimeUnit::NANOS => 1,
        };
        let scale = || usize::try_from(column.type_scale()).unwrap_or(0);
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Integer(int)), _) if !int.is_signed => Self::Unsigned,
            (Some(LogicalType::Decimal(_)), _) => Self::Decimal(scale()),
            (Some(LogicalType::Date), _) => Self::Date,
            (Some(LogicalType::Time(time)), _) => Self::Time(ns(&time.unit)),
            (Some(LogicalType::Timestamp(at)), _) => {
                Self::Moment(ns(&at.unit), at.is_adjusted_to_u_t_c)
            }
            (Some(LogicalType::String | LogicalType::Json | LogicalType::Enum), _) => Self::Text,
            (Some(LogicalType::Float16), _) => Self::Half,
            (Some(_), _) => Self::Plain,
            (
                None,
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64,
            ) => Self::Unsigned,
            (None, ConvertedType::DECIMAL) => Self::Decimal(scale()),
            (None, ConvertedType::DATE) => Self::Date,
            (None, ConvertedType::TIME_MILLIS) => Self::Time(1_000_000),
            (None, ConvertedType::TIME_MICROS) => Self::Time(1000),
            (None, ConvertedType::TIMESTAMP_MILLIS) => Self::Moment(1_000_000, true),
            (None, ConvertedType::TIMESTAMP_MICROS) => Self::Moment(1000, true),
            (None, ConvertedType::UTF8 | ConvertedType::JSON | ConvertedType::ENUM) => Self::Text,
            (None, _) if column.physical_type() == Physical::INT96 => Self::Moment(1, false),
            (None, _) => Self::Plain,
        }
    }

    fn whole(self, value: i64, bits: u32, text: &mut String) -> std::result::Result<(), String> {
        let far = |what: &str| format!("has {what} {value}, which no calendar has");
        match self {
            Self::Unsigned if bits == 32 => {
                let _ = write!(text, "{}", value as u32);
            }
            Self::Unsigned => {
                let _ = write!(text, "{}", value.cast_unsigned());
            }
            Self::Decimal(scale) => decimal(i128::from(value), scale, text),
            Self::Date => {
                let day = Span::new().try_days(value).ok();
                let day = day.and_then(|days| Date::constant(1970, 1, 1).checked_add(days).ok());
                let _ = write!(text, "{}", day.ok_or_else(|| far("the day"))?);
            }
            Self::Time(unit) => {
                let ns = value.checked_mul(unit).map(|ns| Span::new().try_nanoseconds(ns));
                let time = ns.and_then(|ns| Time::midnight().checked_add(ns.ok()?).ok());
                let _ = write!(text, "{}", time.ok_or_else(|| far("the time"))?);
            }
            Self::Moment(unit, utc) => {
                let at = Timestamp::from_nanosecond(i128::from(value) * i128::from(unit));
                let at = at.map_err(|_| far("the moment"))?;
                let _ = if utc {
                    write!(text, "{at}")
                } else {
                    write!(text, "{}", Offset::UTC.to_datetime(at))
                };
            }
            Self::Plain | Self::Text | Self::Half => {
                let _ = write!(text, "{value}");
            }
        }
        Ok(())
    }

    fn bytes(self, value: &[u8], text: &mut String) -> std::result::Result<(), String> {
        match self {
            Self::Text => {
                text.push_str(std::str::from_utf8(value).map_err(|_| "is no text".to_owned())?)
            }
            Self::Decimal(scale) => decimal(big_endian(value)?, scale, text),
            Self::Half if value.len() == 2 => {
                let _ = write!(text, "{:?}", half(u16::from_le_bytes([value[0], value[1]])));
            }
            _ => value.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02x}");
            }),
        }
        Ok(())
    }
}

/// A whole number in two's complement, of as many bytes as it has.
fn big_endian(bytes: &[u8]) -> std::result::Result<i128, String> {
    let sign = if bytes.first().is_some_and(|byte| *byte >= 0x80) { 0xff } else { 0 };
    let spare = bytes.len().saturating_sub(16);
    let mut whole = [sign; 16];
    whole[16 - (bytes.len() - spare)..].copy_from_slice(&bytes[spare..]);
    let number = i128::from_be_bytes(whole);
    if bytes[..spare].iter().any(|byte| *byte != sign) || (number < 0) != (sign == 0xff) {
        return Err("is a decimal of more than 38 digits".to_owned());
    }
    Ok(number)
}

fn decimal(value: i128, scale: usize, text: &mut String) {
    let digits = format!("{:0width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    let _ = write!(text, "{sign}{whole}{point}{fraction}");
}

/// A number of 16 bits: five of them are its exponent.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction > 0.0 => f32::NAN,
        31 => f32::INFINITY,
        _ => (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

impl Leaf {
    fn read(column: &ColumnDescPtr, reader: &mut Reader, rows: usize) -> Result<Self> {
        let optional = column.max_def_level() > 0;
        macro_rules! raw {
            ($reader:expr, $raw:expr) => {{
                let (values, levels, repeats) = records($reader, rows, optional)?;
                ($raw(values), levels, repeats)
            }};
        }
        use ColumnReader as C;
        let (values, levels, repeats) = match reader {
            Reader::Coded(coded) => {
                let CodedRows { dictionary, keys, plain, levels, repeats } =
                    coded.read(rows, optional)?;
                let value = |key: i32| {
                    let key = key as usize;
                    dictionary.get(key).unwrap_or_else(|| &plain[key - dictionary.len()]).clone()
                };
                (Raw::Bytes(keys.into_iter().map(value).collect()), levels, repeats)
            }
            Reader::Plain(C::BoolColumnReader(reader)) => raw!(reader, Raw::Flags),
            Reader::Plain(C::Int32ColumnReader(reader)) => raw!(reader, Raw::Ints),
            Reader::Plain(C::Int64ColumnReader(reader)) => raw!(reader, Raw::Longs),
            Reader::Plain(C::Int96ColumnReader(reader)) => raw!(reader, Raw::Moments),
            Reader::Plain(C::FloatColumnReader(reader)) => raw!(reader, Raw::Floats),
            Reader::Plain(C::DoubleColumnReader(reader)) => raw!(reader, Raw::Reals),
            Reader::Plain(C::ByteArrayColumnReader(reader)) => raw!(reader, Raw::Bytes),
            Reader::Plain(C::FixedLenByteArrayColumnReader(reader)) => {
                raw!(reader, |values: Vec<parquet::data_type::FixedLenByteArray>| {
                    Raw::Bytes(values.into_iter().map(ByteArray::from).collect())
                })
            }
        };
        let known = column.max_def_level().max(KNOWN);
        Ok(Self { values, show: Show::of(column), levels, repeats, known })
    }
}

/// A place in a leaf.
struct Cursor<'a> {
    leaf: &'a Leaf,
    at: usize,
    value: usize,
}

impl<'a> Cursor<'a> {
    fn new(leaf: &'a Leaf) -> Self {
        Self { leaf, at: 0, value: 0 }
    }

    fn level(&self) -> i16 {
        self.leaf.levels.get(self.at).copied().unwrap_or(0)
    }

    /// The repetition level of what comes next: zero where a row begins.
    fn repeat(&self) -> i16 {
        self.leaf.repeats.get(self.at).copied().unwrap_or(0)
    }

    fn pass(&mut self) {
        self.value += usize::from(self.level() == self.leaf.known);
        self.at += 1;
    }

    fn show(&mut self, text: &mut String) -> std::result::Result<(), String> {
        let (show, value) = (self.leaf.show, self.value);
        let known = self.level() == self.leaf.known;
        self.pass();
        if !known {
            return Ok(());
        }
        match &self.leaf.values {
            Raw::Flags(values) => {
                let _ = write!(text, "{}", values[value]);
            }
            Raw::Floats(values) => {
                let _ = write!(text, "{:?}", values[value]);
            }
            Raw::Reals(values) => {
                let _ = write!(text, "{:?}", values[value]);
            }
            Raw::Ints(values) => show.whole(values[value].into(), 32, text)?,
            Raw::Longs(values) => show.whole(values[value], 64, text)?,
            Raw::Moments(values) => show.whole(values[value].to_nanos(), 64, text)?,
            Raw::Bytes(values) => show.bytes(values[value].data(), text)?,
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "foreign_tests.rs"]
pub(crate) mod tests;
