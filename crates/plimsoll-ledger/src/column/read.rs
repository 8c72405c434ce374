//! Column chunks of a Parquet file, read in batches that are aligned across columns.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, Encoding, Repetition, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, SchemaDescriptor, Type};

use super::{Column, Columns, KNOWN, Table, Texts, Values};
use crate::error::LedgerError;

/// A Parquet file that is open.
pub(crate) struct Opened<R> {
    pub(crate) source: Arc<R>,
    pub(crate) metadata: ParquetMetaData,
}

impl<R: ChunkReader + 'static> Opened<R> {
    pub(crate) fn new(source: R) -> Result<Self> {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&source)?;
        let chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
        for chunk in chunks {
            let refused = |problem: String| {
                Err(general(format!("column `{}` {problem}", chunk.column_path().string())))
            };
            let codec = match chunk.compression() {
                Compression::BROTLI(_) => Some("Brotli"),
                Compression::LZO => Some("LZO"),
                _ => None,
            };
            if let Some(codec) = codec {
                return refused(format!(
                    "is packed with {codec}, which is not read here: write it again with zstd, gzip, snappy or lz4"
                ));
            }
            // The page reader assumes that these are not negative.
            let begin = chunk.dictionary_page_offset().unwrap_or(0).min(chunk.data_page_offset());
            if begin.min(chunk.compressed_size()).min(chunk.num_values()) < 0 {
                return refused("begins before its file".to_owned());
            }
        }
        Ok(Self { source: Arc::new(source), metadata })
    }

    pub(crate) fn schema(&self) -> &SchemaDescriptor {
        self.metadata.file_metadata().schema_descr()
    }

    /// Some columns of a table of ours in a row group; those that the file lacks are left out.
    pub(crate) fn group(
        &self,
        group: usize,
        table: &SchemaDescriptor,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Group> {
        let metadata = self.metadata.row_group(group);
        let mut columns = Vec::new();
        for column in table.columns() {
            let name = first_part(column);
            let Some(place) = self.place(name).filter(|_| wanted(name)) else { continue };
            let chunk = &self.schema().column(place);
            if !is_alike(column, chunk) {
                let logical = chunk.logical_type_ref().map(|kind| format!(" ({kind:?})"));
                return Err(general(format!(
                    "`{name}` is a column of {}{}",
                    chunk.physical_type(),
                    logical.unwrap_or_default()
                )));
            }
            columns.push((name.to_owned(), Leaf::new(&self.source, metadata, place)?));
        }
        Ok(Group { rows: rows_of(metadata), columns })
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.schema().columns().iter().position(|column| first_part(column) == name)
    }

    /// Whether every column is one of the table's, as the table has it.
    pub(crate) fn is_of(&self, table: &SchemaDescriptor) -> bool {
        self.schema().columns().iter().all(|column| {
            let mut same =
                table.columns().iter().filter(|own| first_part(own) == first_part(column));
            same.any(|own| is_alike(own, column))
        })
    }

    pub(crate) fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }
}

impl Opened<std::fs::File> {
    /// Opens a file of the ledger.
    pub(crate) fn at(path: &Path) -> std::result::Result<Self, LedgerError> {
        let file = std::fs::File::open(path).map_err(|source| LedgerError::Disk {
            path: path.to_owned(),
            doing: "read",
            source,
        })?;
        Self::new(file).map_err(|error| LedgerError::damaged(path, error.to_string()))
    }
}

/// Hands on every row of a file of the ledger, in batches.
pub(crate) fn each_batch(
    path: &Path,
    table: &SchemaDescriptor,
    wanted: impl Fn(&str) -> bool,
    mut each: impl FnMut(Columns) -> std::result::Result<(), LedgerError>,
) -> std::result::Result<(), LedgerError> {
    let opened = Opened::at(path)?;
    let damaged = |error: ParquetError| LedgerError::damaged(path, error.to_string());
    for group in 0..opened.groups() {
        let mut group = opened.group(group, table, &wanted).map_err(damaged)?;
        while let Some(batch) = group.next().map_err(damaged)? {
            each(batch)?;
        }
    }
    Ok(())
}

/// Rows that are decoded at a time: they and what is made of them stay in the cache.
pub(crate) const BATCH_ROWS: usize = 8192;

/// Columns of a row group that are being read.
pub(crate) struct Group {
    rows: usize,
    columns: Vec<(String, Leaf)>,
}

impl Group {
    /// The next rows; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Columns>> {
        let rows = self.rows.min(BATCH_ROWS);
        Ok(if rows == 0 { None } else { Some(self.take(rows)?) })
    }

    /// So many rows.
    pub(crate) fn take(&mut self, rows: usize) -> Result<Columns> {
        self.rows -= rows;
        let columns = self.columns.iter_mut().map(|(name, leaf)| {
            let column = leaf.read(rows).map_err(|error| in_column(name, &error))?;
            Ok((name.clone(), column))
        });
        Ok(Columns { rows, columns: columns.collect::<Result<_>>()? })
    }

    /// Passes over so many rows.
    pub(crate) fn skip(&mut self, rows: usize) -> Result<()> {
        self.rows -= rows;
        self.columns.iter_mut().try_for_each(|(_, leaf)| leaf.skip(rows))
    }
}

pub(super) fn in_column(name: &str, error: &ParquetError) -> ParquetError {
    general(format!("column `{name}`: {error}"))
}

pub(super) fn general(problem: String) -> ParquetError {
    ParquetError::General(problem)
}

/// The name of the column of the table that a leaf is part of.
pub(super) fn first_part(column: &ColumnDescriptor) -> &str {
    column.path().parts().first().map_or("", String::as_str)
}

pub(super) fn rows_of(group: &RowGroupMetaData) -> usize {
    usize::try_from(group.num_rows()).unwrap_or(0)
}

/// Whether a column of a file is what a table of ours has. What is not a list may do without levels.
fn is_alike(own: &ColumnDescriptor, other: &ColumnDescriptor) -> bool {
    let logical = match other.logical_type_ref() {
        // Older writers only know converted types.
        None if other.converted_type() != ConvertedType::NONE => {
            own.converted_type() == other.converted_type()
        }
        logical => own.logical_type_ref() == logical,
    };
    let levels = if own.max_rep_level() > 0 {
        (own.max_rep_level(), own.max_def_level()) == (other.max_rep_level(), other.max_def_level())
    } else {
        other.path().parts().len() == 1 && other.max_rep_level() == 0
    };
    own.physical_type() == other.physical_type() && logical && levels
}

/// A column chunk that is being read.
enum Leaf {
    /// Its statistics say that no row says anything: nothing of it is read.
    Unknown,
    Flags(ColumnReaderImpl<BoolType>, bool),
    Ints(ColumnReaderImpl<Int32Type>, bool),
    Longs(ColumnReaderImpl<Int64Type>, bool),
    Reals(ColumnReaderImpl<DoubleType>, bool),
    Coded(Coded<Table>, bool),
    Texts(ColumnReaderImpl<ByteArrayType>, bool),
}

impl Leaf {
    fn new<R: ChunkReader + 'static>(
        source: &Arc<R>,
        group: &RowGroupMetaData,
        place: usize,
    ) -> Result<Self> {
        let chunk = group.column(place);
        let column = chunk.column_descr_ptr();
        let optional = column.max_def_level() > 0;
        let nulls = chunk.statistics().and_then(Statistics::null_count_opt);
        if column.max_rep_level() == 0 && nulls == Some(chunk.num_values().unsigned_abs()) {
            return Ok(Self::Unknown);
        }
        let pages = Pages::new(source, group, place)?;
        Ok(match column.physical_type() {
            Physical::BOOLEAN => Self::Flags(reader(column, pages), optional),
            Physical::INT32 => Self::Ints(reader(column, pages), optional),
            Physical::INT64 => Self::Longs(reader(column, pages), optional),
            Physical::DOUBLE => Self::Reals(reader(column, pages), optional),
            Physical::BYTE_ARRAY if chunk.encodings().all(is_plain_or_coded) => {
                Self::Coded(Coded::new(&column, pages)?, optional)
            }
            Physical::BYTE_ARRAY => Self::Texts(reader(column, pages), optional),
            other => return Err(general(format!("is a column of {other}"))),
        })
    }

    fn read(&mut self, rows: usize) -> Result<Column> {
        let (values, levels, repeats) = match self {
            Self::Unknown => return Ok(Column::unknown(rows)),
            Self::Flags(reader, optional) => {
                let (values, levels, repeats) = records(reader, rows, *optional)?;
                (Values::Flags(values), levels, repeats)
            }
            Self::Ints(reader, optional) => {
                let (values, levels, repeats) = records(reader, rows, *optional)?;
                (Values::Ints(values), levels, repeats)
            }
            Self::Longs(reader, optional) => {
                let (values, levels, repeats) = records(reader, rows, *optional)?;
                (Values::Longs(values), levels, repeats)
            }
            Self::Reals(reader, optional) => {
                let (values, levels, repeats) = records(reader, rows, *optional)?;
                (Values::Reals(values), levels, repeats)
            }
            Self::Coded(coded, optional) => {
                let CodedRows { dictionary, keys, plain, levels, repeats } =
                    coded.read(rows, *optional)?;
                (Values::Texts(Texts { dictionary, keys, plain }), levels, repeats)
            }
            Self::Texts(reader, optional) => {
                let (values, levels, repeats) = records(reader, rows, *optional)?;
                let mut plain = Table::default();
                for value in values {
                    plain.push(value.as_utf8()?);
                }
                (Values::Texts(Texts { plain, ..Texts::default() }), levels, repeats)
            }
        };
        Ok(Column { values, levels, repeats, nulls: 0 })
    }

    fn skip(&mut self, rows: usize) -> Result<()> {
        let skipped = decoded(|| match self {
            Self::Unknown => Ok(rows),
            Self::Flags(reader, _) => reader.skip_records(rows),
            Self::Ints(reader, _) => reader.skip_records(rows),
            Self::Coded(coded, _) => coded.numbers.skip_records(rows),
            Self::Longs(reader, _) => reader.skip_records(rows),
            Self::Reals(reader, _) => reader.skip_records(rows),
            Self::Texts(reader, _) => reader.skip_records(rows),
        })?;
        if skipped == rows { Ok(()) } else { Err(short(skipped, rows)) }
    }
}

fn short(read: usize, rows: usize) -> ParquetError {
    general(format!("has {read} of {rows} rows, and ends"))
}

pub(super) fn reader<T: DataType, R: ChunkReader + 'static>(
    column: ColumnDescPtr,
    pages: Pages<R>,
) -> ColumnReaderImpl<T> {
    ColumnReaderImpl::new(column, Box::new(pages))
}

/// Decoders of damaged pages may run over their ends: that is an error of the file.
fn decoded<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(general("has a page that is damaged".to_owned())))
}

/// Known values, definition levels and repetition levels.
type Records<T> = (Vec<T>, Vec<i16>, Vec<i16>);

/// So many rows. A column that is never null has the levels of one that never is.
pub(super) fn records<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    optional: bool,
) -> Result<Records<T::T>> {
    let mut values = Vec::with_capacity(rows);
    let mut levels = Vec::with_capacity(rows);
    let mut repeats = Vec::new();
    let (read, _, _) =
        decoded(|| reader.read_records(rows, Some(&mut levels), Some(&mut repeats), &mut values))?;
    if read != rows {
        return Err(short(read, rows));
    }
    if !optional {
        levels.resize(rows, KNOWN);
    }
    Ok((values, levels, repeats))
}

/// Pages of a column chunk, looked at before they are decoded: the decoders take it for granted that a dictionary comes first.
pub(super) struct Pages<R: ChunkReader> {
    pages: SerializedPageReader<R>,
    /// The highest repetition and definition levels.
    levels: (i16, i16),
    has_dictionary: bool,
    /// What takes texts out of pages, where numbers take their place.
    recode: Option<Arc<Mutex<dyn Recode>>>,
}

impl<R: ChunkReader + 'static> Pages<R> {
    pub(super) fn new(source: &Arc<R>, group: &RowGroupMetaData, place: usize) -> Result<Self> {
        let chunk = group.column(place);
        let column = chunk.column_descr();
        let pages = SerializedPageReader::new(Arc::clone(source), chunk, rows_of(group), None)?;
        let levels = (column.max_rep_level(), column.max_def_level());
        Ok(Self { pages, levels, has_dictionary: false, recode: None })
    }

    fn looked_at(&mut self, mut page: Page) -> Result<Page> {
        if let Page::DictionaryPage { buf, num_values, .. } = &mut page {
            self.has_dictionary = true;
            if let Some(recode) = &self.recode {
                *buf = lock(recode).dictionary(buf, *num_values)?;
            }
            return Ok(page);
        }
        let begin = self.values_begin(&page)?;
        let (Page::DataPage { buf, encoding, .. } | Page::DataPageV2 { buf, encoding, .. }) =
            &mut page
        else {
            return Ok(page);
        };
        let is_coded = matches!(*encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
        if is_coded && begin == buf.len() {
            // A page without a value may leave out even the width of numbers.
            *encoding = Encoding::PLAIN;
        } else if is_coded && !self.has_dictionary {
            return Err(general("has no dictionary for its values".to_owned()));
        } else if let Some(recode) = self.recode.as_ref().filter(|_| !is_coded) {
            if *encoding != Encoding::PLAIN {
                return Err(general(format!("has text in {encoding} without saying so")));
            }
            let numbers = lock(recode).plain(buf, begin)?;
            *buf = [&buf[..begin], &numbers].concat().into();
        }
        Ok(page)
    }

    /// Where the values of a page begin, after its levels.
    fn values_begin(&self, page: &Page) -> Result<usize> {
        let buf = page.buffer();
        let begin = match page {
            Page::DataPage { num_values, rep_level_encoding, def_level_encoding, .. } => {
                let levels =
                    [(self.levels.0, rep_level_encoding), (self.levels.1, def_level_encoding)];
                let levels = levels.into_iter().filter(|(most, _)| *most > 0);
                levels.into_iter().try_fold(0usize, |at, (most, encoding)| {
                    if *encoding == Encoding::RLE {
                        let size = buf.get(at..)?.first_chunk::<4>()?;
                        at.checked_add(4)?.checked_add(u32::from_le_bytes(*size) as usize)
                    } else {
                        let bits =
                            u64::from(*num_values) * u64::from(i16::BITS - most.leading_zeros());
                        at.checked_add(usize::try_from(bits.div_ceil(8)).ok()?)
                    }
                })
            }
            Page::DataPageV2 { rep_levels_byte_len, def_levels_byte_len, .. } => {
                (*rep_levels_byte_len as usize).checked_add(*def_levels_byte_len as usize)
            }
            Page::DictionaryPage { .. } => Some(0),
        };
        begin.filter(|begin| *begin <= buf.len()).ok_or_else(cut)
    }
}

impl<R: ChunkReader + 'static> Iterator for Pages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl<R: ChunkReader + 'static> PageReader for Pages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| self.looked_at(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

fn cut() -> ParquetError {
    general("a page is cut short".to_owned())
}

/// A column chunk of texts or bytes, read by the numbers that take their place while pages are decoded. To decode the values
/// themselves would make an object of each of them; most are of a few, and those who read them look each up once.
pub(super) struct Coded<T> {
    numbers: ColumnReaderImpl<Int32Type>,
    held: Arc<Mutex<Held<T>>>,
}

impl<T: Pieces> Coded<T> {
    pub(super) fn new<R: ChunkReader + 'static>(
        column: &ColumnDescriptor,
        pages: Pages<R>,
    ) -> Result<Self> {
        // A column of numbers with the levels of the one of texts.
        let number = Type::primitive_type_builder(column.name(), Physical::INT32)
            .with_repetition(Repetition::OPTIONAL)
            .build()?;
        let number = ColumnDescriptor::new(
            Arc::new(number),
            column.max_def_level(),
            column.max_rep_level(),
            column.path().clone(),
        );
        let held = Arc::new(Mutex::new(Held::<T>::default()));
        let recode: Arc<Mutex<dyn Recode>> = Arc::clone(&held) as _;
        let pages = Pages { recode: Some(recode), ..pages };
        Ok(Self { numbers: reader(Arc::new(number), pages), held })
    }

    /// So many rows: the dictionary, numbers, what they stand for beyond the dictionary, and levels.
    pub(super) fn read(&mut self, rows: usize, optional: bool) -> Result<CodedRows<T>> {
        let (keys, levels, repeats) = records(&mut self.numbers, rows, optional)?;
        let (dictionary, keys, plain) = lock(&self.held).take(keys)?;
        Ok(CodedRows { dictionary, keys, plain, levels, repeats })
    }
}

pub(super) struct CodedRows<T> {
    pub(super) dictionary: Arc<T>,
    pub(super) keys: Vec<i32>,
    pub(super) plain: T,
    pub(super) levels: Vec<i16>,
    pub(super) repeats: Vec<i16>,
}

/// Values one after the other.
pub(super) trait Pieces: Default + Send + Sync + 'static {
    fn count(&self) -> usize;
    /// Adds a piece of a page.
    fn add(&mut self, piece: Bytes) -> Result<()>;
    /// Adds one of others.
    fn copy(&mut self, others: &Self, place: usize);
}

impl Pieces for Table {
    fn count(&self) -> usize {
        self.len()
    }

    fn add(&mut self, piece: Bytes) -> Result<()> {
        let text = std::str::from_utf8(&piece);
        self.push(text.map_err(|_| general("has bytes that are no text".to_owned()))?);
        Ok(())
    }

    fn copy(&mut self, others: &Self, place: usize) {
        self.push(others.get(place));
    }
}

impl Pieces for Vec<ByteArray> {
    fn count(&self) -> usize {
        self.len()
    }

    fn add(&mut self, piece: Bytes) -> Result<()> {
        self.push(piece.into());
        Ok(())
    }

    fn copy(&mut self, others: &Self, place: usize) {
        self.push(others[place].clone());
    }
}

/// Takes values out of pages, and puts numbers in their place.
trait Recode: Send {
    fn dictionary(&mut self, page: &Bytes, count: u32) -> Result<Bytes>;
    fn plain(&mut self, page: &Bytes, begin: usize) -> Result<Vec<u8>>;
}

/// The values of a column chunk that numbers stand for.
#[derive(Default)]
struct Held<T> {
    dictionary: Arc<T>,
    /// Values of pages without a dictionary that are not handed on yet; their numbers follow those of the dictionary.
    plain: T,
    /// How many have been dropped before those.
    dropped: usize,
    /// How many have been handed on in all.
    taken: usize,
}

impl<T: Pieces> Recode for Held<T> {
    /// The dictionary is kept; numbers from zero on take its place.
    fn dictionary(&mut self, page: &Bytes, count: u32) -> Result<Bytes> {
        let mut pieces = T::default();
        add_pieces(page, 0, &mut pieces)?;
        if pieces.count() != count as usize {
            return Err(cut());
        }
        let numbers = numbers(0, pieces.count())?;
        self.dictionary = Arc::new(pieces);
        Ok(numbers.into())
    }

    fn plain(&mut self, page: &Bytes, begin: usize) -> Result<Vec<u8>> {
        let mut rest = T::default();
        (self.taken - self.dropped..self.plain.count()).for_each(|i| rest.copy(&self.plain, i));
        let before = rest.count();
        add_pieces(page, begin, &mut rest)?;
        (self.plain, self.dropped) = (rest, self.taken);
        numbers(self.dictionary.count() + self.dropped + before, self.plain.count() - before)
    }
}

impl<T: Pieces> Held<T> {
    /// What some numbers stand for. Plain values come in their order, and only once.
    fn take(&mut self, mut keys: Vec<i32>) -> Result<(Arc<T>, Vec<i32>, T)> {
        let count = self.dictionary.count();
        let mut plain = T::default();
        for key in &mut keys {
            let place = usize::try_from(*key).map_err(|_| cut())?;
            let Some(place) = place.checked_sub(count) else { continue };
            let held = place.checked_sub(self.dropped).filter(|own| *own < self.plain.count());
            *key = i32::try_from(count + plain.count()).map_err(|_| cut())?;
            plain.copy(&self.plain, held.ok_or_else(cut)?);
            self.taken = place + 1;
        }
        Ok((Arc::clone(&self.dictionary), keys, plain))
    }
}

fn lock<T: ?Sized>(held: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many numbers as Parquet writes them plainly.
fn numbers(first: usize, count: usize) -> Result<Vec<u8>> {
    let first = i32::try_from(first).map_err(|_| cut())?;
    let last = i32::try_from(count).ok().and_then(|count| first.checked_add(count));
    Ok((first..last.ok_or_else(cut)?).flat_map(i32::to_le_bytes).collect())
}

/// The values of a page that is written plainly: each after its length.
fn add_pieces(page: &Bytes, mut begin: usize, pieces: &mut impl Pieces) -> Result<()> {
    while begin < page.len() {
        let length = page[begin..].first_chunk::<4>().ok_or_else(cut)?;
        begin += 4;
        let end = begin.checked_add(u32::from_le_bytes(*length) as usize);
        let end = end.filter(|end| *end <= page.len()).ok_or_else(cut)?;
        pieces.add(page.slice(begin..end))?;
        begin = end;
    }
    Ok(())
}

pub(super) fn is_plain_or_coded(encoding: Encoding) -> bool {
    matches!(
        encoding,
        Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE | Encoding::RLE_DICTIONARY
    )
}
