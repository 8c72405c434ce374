//! Columns in memory as Parquet has them: the known values one after the other, and levels that say which rows have one.

pub(crate) mod foreign;
pub(crate) mod read;
pub(crate) mod write;

use std::sync::Arc;

/// The definition level of a known value in a column that is no list.
pub(crate) const KNOWN: i16 = 1;
/// That of an item of a list: the list is known, has an item, and the item is known.
pub(crate) const ITEM: i16 = 3;
/// That of a list without items.
pub(crate) const EMPTY_LIST: i16 = 1;

/// Columns of the same rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<(String, Column)>,
}

impl Columns {
    /// A column that says anything at all.
    pub(crate) fn get(&self, name: &str) -> Option<&Column> {
        let (_, column) = self.columns.iter().find(|(own, _)| own == name)?;
        (!column.levels.is_empty()).then_some(column)
    }

    /// The rows that are marked.
    pub(crate) fn filter(&self, keep: &[bool]) -> Self {
        let columns = self.columns.iter().map(|(name, column)| (name.clone(), column.filter(keep)));
        Self { rows: keep.iter().filter(|keep| **keep).count(), columns: columns.collect() }
    }
}

/// A column of a table of ours.
#[derive(Clone, Debug)]
pub struct Column {
    /// The known values, in the order of rows.
    pub(crate) values: Values,
    /// The definition level of each row, and of each item of a list.
    pub(crate) levels: Vec<i16>,
    /// The repetition levels of a list: zero where a row begins. Empty in other columns.
    pub(crate) repeats: Vec<i16>,
    /// Rows after those that are unknown: most columns of most logs are, throughout.
    pub(crate) nulls: usize,
}

/// Values, by what Parquet has them in.
#[derive(Clone, Debug)]
pub enum Values {
    /// Yes or no.
    Flags(Vec<bool>),
    /// Up to 32 bits.
    Ints(Vec<i32>),
    /// Up to 64 bits.
    Longs(Vec<i64>),
    /// Numbers that need not be whole.
    Reals(Vec<f64>),
    /// Text.
    Texts(Texts),
}

impl Column {
    /// A column that is unknown in all rows.
    pub(crate) fn unknown(rows: usize) -> Self {
        Self {
            values: Values::Flags(Vec::new()),
            levels: Vec::new(),
            repeats: Vec::new(),
            nulls: rows,
        }
    }

    fn filter(&self, keep: &[bool]) -> Self {
        let known = if self.repeats.is_empty() { KNOWN } else { ITEM };
        let (mut levels, mut repeats, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rows, mut place) = (0, 0);
        for (i, level) in self.levels.iter().enumerate() {
            let repeat = self.repeats.get(i).copied();
            if repeat.unwrap_or(0) == 0 {
                rows += 1;
            }
            if keep[rows - 1] {
                levels.push(*level);
                repeats.extend(repeat);
                places.extend((*level == known).then_some(place));
            }
            place += usize::from(*level == known);
        }
        let nulls = keep[rows..].iter().filter(|keep| **keep).count();
        Self { values: self.values.select(&places), levels, repeats, nulls }
    }

    /// The text of every row, where it is a column of text.
    pub(crate) fn texts(&self) -> Option<impl Iterator<Item = Option<&str>>> {
        let Values::Texts(texts) = &self.values else { return None };
        let mut place = 0..;
        let known = self.levels.iter().map(move |level| {
            if *level == KNOWN { place.next().map(|place| texts.get(place)) } else { None }
        });
        Some(known.chain(std::iter::repeat_n(None, self.nulls)))
    }
}

impl Values {
    fn select(&self, places: &[usize]) -> Self {
        fn of<T: Copy>(values: &[T], places: &[usize]) -> Vec<T> {
            places.iter().map(|place| values[*place]).collect()
        }
        match self {
            Self::Flags(values) => Self::Flags(of(values, places)),
            Self::Ints(values) => Self::Ints(of(values, places)),
            Self::Longs(values) => Self::Longs(of(values, places)),
            Self::Reals(values) => Self::Reals(of(values, places)),
            Self::Texts(texts) => {
                let mut plain = Table::default();
                places.iter().for_each(|place| plain.push(texts.get(*place)));
                Self::Texts(Texts { plain, ..Texts::default() })
            }
        }
    }
}

/// Texts by number: those of a dictionary come first, those that stand for themselves after them.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Shared by all batches of a row group.
    pub(crate) dictionary: Arc<Table>,
    /// The number of each value; without any, values are the plain ones in their order.
    pub(crate) keys: Vec<i32>,
    pub(crate) plain: Table,
}

impl Texts {
    fn get(&self, place: usize) -> &str {
        let key = self.keys.get(place).map_or(place, |key| *key as usize);
        match key.checked_sub(self.dictionary.len()) {
            None => self.dictionary.get(key),
            Some(key) => self.plain.get(key),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let count = if self.keys.is_empty() { self.plain.len() } else { self.keys.len() };
        (0..count).map(|place| self.get(place))
    }
}

/// Texts one after the other.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub(crate) text: String,
    pub(crate) ends: Vec<usize>,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    pub(crate) fn get(&self, place: usize) -> &str {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[place]]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|place| self.get(place))
    }
}
