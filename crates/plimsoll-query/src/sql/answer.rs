//! What a query gave, on its way out of Arrow.

use arrow_array::cast::AsArray;
#[cfg(feature = "cluster")]
use arrow_array::types::Decimal128Type;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use plimsoll_ledger::{Answer, AnswerColumn, QueryError};
use serde_json::{Number, Value};

use super::first_line;

/// Batches of rows.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

impl Found {
    /// The rows as plain cells, at most so many.
    pub(super) fn answer(&self, rows_max: usize) -> Result<Answer, QueryError> {
        let columns = self.schema.fields().iter().map(|field| AnswerColumn {
            name: field.name().clone(),
            kind: kind(field.data_type()),
        });
        let columns: Vec<AnswerColumn> = columns.collect();
        let mut rows: Vec<Vec<Value>> = Vec::new();
        for batch in &self.batches {
            let cells = batch.columns().iter().map(cells).collect::<Result<Vec<_>, _>>();
            let cells = cells.map_err(|e| {
                let message = format!("its answer is unprintable: {}", first_line(&e.to_string()));
                QueryError::Failed { message }
            })?;
            let mut cells: Vec<_> = cells.into_iter().map(Vec::into_iter).collect();
            rows.extend((0..batch.num_rows()).map(|_| {
                cells.iter_mut().map(|column| column.next().unwrap_or_default()).collect()
            }));
        }
        let truncated = rows.len() > rows_max;
        rows.truncate(rows_max);
        Ok(Answer { columns, rows, truncated })
    }

    /// A column of whole numbers that is never null.
    #[cfg(feature = "cluster")]
    pub(crate) fn integers(&self, column: &str) -> Result<Vec<i64>, QueryError> {
        self.column(column, "whole numbers", &DataType::Int64, |array| {
            array.as_primitive_opt::<Int64Type>().map(|array| array.values().to_vec())
        })
    }

    /// A column of large whole numbers that is never null.
    #[cfg(feature = "cluster")]
    pub(crate) fn large(&self, column: &str) -> Result<Vec<i128>, QueryError> {
        self.column(column, "large whole numbers", &DataType::Decimal128(38, 0), |array| {
            array.as_primitive_opt::<Decimal128Type>().map(|array| array.values().to_vec())
        })
    }

    /// A column of numbers that is never null.
    #[cfg(feature = "cluster")]
    pub(crate) fn reals(&self, column: &str) -> Result<Vec<f64>, QueryError> {
        self.column(column, "numbers", &DataType::Float64, |array| {
            array.as_primitive_opt::<Float64Type>().map(|array| array.values().to_vec())
        })
    }

    #[cfg(feature = "cluster")]
    fn column<T>(
        &self,
        column: &str,
        wanted: &'static str,
        data_type: &DataType,
        read: impl Fn(&ArrayRef) -> Option<Vec<T>>,
    ) -> Result<Vec<T>, QueryError> {
        let missing = || QueryError::Column { column: column.to_owned(), wanted };
        let mut values = Vec::new();
        for batch in &self.batches {
            let array = batch.column_by_name(column).ok_or_else(missing)?;
            let array = arrow_cast::cast(array, data_type).map_err(|_| missing())?;
            if array.null_count() > 0 {
                return Err(missing());
            }
            values.extend(read(&array).ok_or_else(missing)?);
        }
        Ok(values)
    }

    /// A column of text that may be null.
    #[cfg(feature = "cluster")]
    pub(crate) fn texts(&self, column: &str) -> Result<Vec<Option<String>>, QueryError> {
        let missing = || QueryError::Column { column: column.to_owned(), wanted: "text" };
        let mut values = Vec::new();
        for batch in &self.batches {
            let array = batch.column_by_name(column).ok_or_else(missing)?;
            let array = arrow_cast::cast(array, &DataType::Utf8).map_err(|_| missing())?;
            let array = array.as_string_opt::<i32>().ok_or_else(missing)?;
            values.extend(array.iter().map(|text| text.map(str::to_owned)));
        }
        Ok(values)
    }
}

fn kind(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "boolean",
        of if of.is_integer() => "integer",
        of if of.is_numeric() => "number",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Timestamp(..) => "time",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "list",
        DataType::Dictionary(_, of) => kind(of),
        _ => "other",
    }
}

/// The cells of a column. What JSON has no form for is text.
fn cells(array: &ArrayRef) -> Result<Vec<Value>, ArrowError> {
    let to = |to: &DataType| arrow_cast::cast(array, to);
    Ok(match array.data_type() {
        DataType::Null => vec![Value::Null; array.len()],
        DataType::Boolean => array.as_boolean().iter().map(Value::from).collect(),
        of if of.is_unsigned_integer() => {
            to(&DataType::UInt64)?.as_primitive::<UInt64Type>().iter().map(Value::from).collect()
        }
        of if of.is_integer() => {
            to(&DataType::Int64)?.as_primitive::<Int64Type>().iter().map(Value::from).collect()
        }
        of if of.is_floating() => to(&DataType::Float64)?
            .as_primitive::<Float64Type>()
            .iter()
            .map(|x| x.map_or(Value::Null, real))
            .collect(),
        DataType::List(_) => array
            .as_list::<i32>()
            .iter()
            .map(|list| list.map_or(Ok(Value::Null), |list| cells(&list).map(Value::Array)))
            .collect::<Result<_, _>>()?,
        DataType::Dictionary(_, of) => cells(&to(of)?)?,
        _ => {
            let options = FormatOptions::default();
            let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
            (0..array.len())
                .map(|i| match array.is_null(i) {
                    true => Ok(Value::Null),
                    false => formatter.value(i).try_to_string().map(Value::String),
                })
                .collect::<Result<_, _>>()?
        }
    })
}

/// A number; one that is none, or has no end, is text.
fn real(x: f64) -> Value {
    Number::from_f64(x).map_or_else(|| Value::String(x.to_string()), Value::Number)
}
