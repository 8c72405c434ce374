//! Columns of a batch, ready to be asked for a row. One that is absent is unknown in all of them.

use std::rc::Rc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, TimestampNanosecondType, UInt16Type, UInt32Type};
use arrow_array::{
    Array, BooleanArray, DictionaryArray, Float64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt16Array, UInt32Array,
};

/// Tokens and counts.
pub(super) enum Numbers<'a> {
    Absent,
    Whole(&'a UInt32Array),
    Short(&'a UInt16Array),
}

impl<'a> Numbers<'a> {
    pub(super) fn of(batch: &'a RecordBatch, name: &str) -> Result<Self, String> {
        let Some(column) = known(batch, name) else { return Ok(Self::Absent) };
        column.as_primitive_opt::<UInt32Type>().map(Self::Whole).ok_or_else(|| wrong(name, column))
    }

    pub(super) fn short(batch: &'a RecordBatch, name: &str) -> Result<Self, String> {
        let Some(column) = known(batch, name) else { return Ok(Self::Absent) };
        column.as_primitive_opt::<UInt16Type>().map(Self::Short).ok_or_else(|| wrong(name, column))
    }

    pub(super) fn get(&self, i: usize) -> Option<u32> {
        match self {
            Self::Absent => None,
            Self::Whole(column) => column.is_valid(i).then(|| column.value(i)),
            Self::Short(column) => column.is_valid(i).then(|| u32::from(column.value(i))),
        }
    }
}

macro_rules! column {
    ($(#[$about:meta])* $name:ident, $array:ty, $value:ty, $opt:expr) => {
        $(#[$about])*
        pub(super) struct $name<'a>(Option<&'a $array>);

        impl<'a> $name<'a> {
            pub(super) fn of(batch: &'a RecordBatch, name: &str) -> Result<Self, String> {
                let Some(column) = known(batch, name) else { return Ok(Self(None)) };
                let open: fn(&'a dyn Array) -> Option<&'a $array> = $opt;
                open(column).map(|column| Self(Some(column))).ok_or_else(|| wrong(name, column))
            }

            pub(super) fn get(&self, i: usize) -> Option<$value> {
                self.0.filter(|column| column.is_valid(i)).map(|column| column.value(i))
            }
        }
    };
}

column!(
    /// Moments, in nanoseconds from 1970.
    Stamps, TimestampNanosecondArray, i64, |c| c.as_primitive_opt::<TimestampNanosecondType>()
);
column!(
    /// Seconds, weights.
    Reals, Float64Array, f64, |c| c.as_primitive_opt::<Float64Type>()
);
column!(
    /// Yes or no.
    Flags, BooleanArray, bool, |c| c.as_boolean_opt()
);

/// Names, each of which stands for something. A batch has few different ones, so that each is translated once.
pub(super) struct Codes<'a, T> {
    column: Option<&'a DictionaryArray<Int32Type>>,
    values: Rc<Vec<T>>,
}

/// What the names of a dictionary stand for, for as long as batches have the same one: those of a row group mostly do, and it may hold
/// many more names than a batch has rows.
pub(super) struct Translated<T> {
    names: Option<StringArray>,
    values: Rc<Vec<T>>,
}

impl<T> Default for Translated<T> {
    fn default() -> Self {
        Self { names: None, values: Rc::default() }
    }
}

impl<T> Translated<T> {
    fn is_of(&self, names: &StringArray) -> bool {
        // As long as it is held here, nobody else can be where it is.
        self.names.as_ref().is_some_and(|own| {
            own.len() == names.len()
                && own.value_offsets().as_ptr() == names.value_offsets().as_ptr()
                && own.value_data().as_ptr() == names.value_data().as_ptr()
        })
    }
}

impl<'a, T: Clone> Codes<'a, T> {
    pub(super) fn of(
        batch: &'a RecordBatch,
        name: &str,
        translate: impl FnMut(&str) -> T,
    ) -> Result<Self, String> {
        Self::again(batch, name, &mut Translated::default(), translate)
    }

    /// The same, where the names of the last batch may be those of this one.
    pub(super) fn again(
        batch: &'a RecordBatch,
        name: &str,
        known: &mut Translated<T>,
        translate: impl FnMut(&str) -> T,
    ) -> Result<Self, String> {
        let Some(column) = self::known(batch, name) else {
            return Ok(Self { column: None, values: Rc::default() });
        };
        let column = column.as_dictionary_opt::<Int32Type>().ok_or_else(|| wrong(name, column))?;
        let texts = column.values().as_string_opt::<i32>();
        let texts = texts.ok_or_else(|| format!("`{name}` is no column of text"))?;
        if !known.is_of(texts) {
            // What a dictionary holds is never null here: the keys are.
            let values = (0..texts.len()).map(|i| texts.value(i)).map(translate).collect();
            *known = Translated { names: Some(texts.clone()), values: Rc::new(values) };
        }
        Ok(Self { column: Some(column), values: Rc::clone(&known.values) })
    }

    pub(super) fn get(&self, i: usize) -> Option<T> {
        let key = self.column.filter(|column| column.is_valid(i))?.keys().value(i);
        self.values.get(usize::try_from(key).ok()?).cloned()
    }
}

/// A column that says anything at all.
fn known<'a>(batch: &'a RecordBatch, name: &str) -> Option<&'a dyn Array> {
    let column = batch.column_by_name(name)?;
    (column.null_count() < column.len()).then(|| column.as_ref())
}

fn wrong(name: &str, column: &dyn Array) -> String {
    format!("`{name}` is a column of {}", column.data_type())
}
