//! Columns of a batch, ready to be asked for a row. One that is absent is unknown in all of them.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use crate::column::{Column, Columns, KNOWN, Table, Values};
use crate::kind::{self, Kind as _};

/// A value for each row; what it is where the row has none does not matter.
struct Spread<'a, T: Copy> {
    levels: &'a [i16],
    values: Cow<'a, [T]>,
}

impl<'a, T: Copy + Default> Spread<'a, T> {
    const ABSENT: Self = Self { levels: &[], values: Cow::Borrowed(&[]) };

    fn new(column: &'a Column, known: &'a [T]) -> Self {
        let rows = column.levels.len();
        let values = if known.len() == rows {
            Cow::Borrowed(known)
        } else {
            // Without a branch for each row: the next known value is there before it is known whose it is.
            let mut next = 0;
            let value = |level: &i16| {
                let value = known.get(next).copied().unwrap_or_default();
                next += usize::from(*level == KNOWN);
                value
            };
            Cow::Owned(column.levels.iter().map(value).collect())
        };
        Self { levels: &column.levels, values }
    }

    #[inline]
    fn get(&self, i: usize) -> Option<T> {
        let known = *self.levels.get(i)? == KNOWN;
        if known { self.values.get(i).copied() } else { None }
    }
}

macro_rules! column {
    ($(#[$about:meta])* $name:ident, $known:ty, $variant:ident, $value:ty, $from:expr) => {
        $(#[$about])*
        pub(super) struct $name<'a>(Spread<'a, $known>);

        impl<'a> $name<'a> {
            pub(super) fn of(batch: &'a Columns, name: &str) -> Result<Self, String> {
                Ok(Self(match batch.get(name) {
                    None => Spread::ABSENT,
                    Some(column) => match &column.values {
                        Values::$variant(known) => Spread::new(column, known),
                        _ => return Err(wrong(name)),
                    },
                }))
            }

            #[inline]
            pub(super) fn get(&self, i: usize) -> Option<$value> {
                let from: fn($known) -> $value = $from;
                self.0.get(i).map(from)
            }
        }
    };
}

column!(
    /// Tokens and counts.
    Numbers, i32, Ints, u32, i32::cast_unsigned
);
column!(
    /// Moments, in nanoseconds from 1970.
    Stamps, i64, Longs, i64, |ns| ns
);
column!(
    /// Seconds, weights.
    Reals, f64, Reals, f64, |x| x
);
column!(
    /// Yes or no.
    Flags, bool, Flags, bool, |flag| flag
);

/// Names in a row of their own.
pub(super) struct Lists(Vec<Option<Vec<u64>>>);

impl Lists {
    pub(super) fn of(batch: &Columns, name: &str) -> Self {
        Self(batch.get(name).map(kind::Names::read).unwrap_or_default())
    }

    pub(super) fn get(&self, i: usize) -> Option<&Vec<u64>> {
        self.0.get(i)?.as_ref()
    }
}

/// Names, each of which stands for something. A batch has few different ones, so that each is translated once.
pub(super) struct Codes<'a, T> {
    keys: Spread<'a, i32>,
    /// What those of the dictionary stand for.
    values: Rc<Vec<T>>,
    /// What the others stand for, after them.
    plain: Vec<T>,
}

/// What the names of a dictionary stand for, for as long as batches have the same one: those of a row group do, and it may hold
/// many more names than a batch has rows.
pub(super) struct Translated<T> {
    names: Arc<Table>,
    values: Rc<Vec<T>>,
}

impl<T> Default for Translated<T> {
    fn default() -> Self {
        Self { names: Arc::default(), values: Rc::default() }
    }
}

impl<'a, T: Clone> Codes<'a, T> {
    pub(super) fn of(
        batch: &'a Columns,
        name: &str,
        translate: impl FnMut(&str) -> T,
    ) -> Result<Self, String> {
        Self::again(batch, name, &mut Translated::default(), translate)
    }

    /// The same, where the names of the last batch may be those of this one.
    pub(super) fn again(
        batch: &'a Columns,
        name: &str,
        known: &mut Translated<T>,
        mut translate: impl FnMut(&str) -> T,
    ) -> Result<Self, String> {
        let Some(column) = batch.get(name) else {
            return Ok(Self { keys: Spread::ABSENT, values: Rc::default(), plain: Vec::new() });
        };
        let Values::Texts(texts) = &column.values else { return Err(wrong(name)) };
        // As long as it is held here, nobody else can be where it is.
        if !Arc::ptr_eq(&known.names, &texts.dictionary) {
            let values = texts.dictionary.iter().map(&mut translate).collect();
            let names = Arc::clone(&texts.dictionary);
            *known = Translated { names, values: Rc::new(values) };
        }
        let keys = Spread::new(column, &texts.keys);
        let plain = texts.plain.iter().map(translate).collect();
        Ok(Self { keys, values: Rc::clone(&known.values), plain })
    }

    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<T> {
        let key = self.keys.get(i)? as usize;
        let value = self.values.get(key);
        value.or_else(|| self.plain.get(key.checked_sub(self.values.len())?)).cloned()
    }
}

fn wrong(name: &str) -> String {
    format!("`{name}` is a column of another kind")
}
