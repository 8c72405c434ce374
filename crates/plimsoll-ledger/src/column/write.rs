//! Columns on their way into a Parquet file.
//!
//! Parquet wants the columns of a row group one after the other, and rows come a batch at a time: what is encoded of each column
//! is held until the group is full.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, SchemaDescPtr};

use super::read::first_part;
use super::{Column, Columns, Texts, Values};
use crate::row::SCHEMA_VERSION;

/// Rows of a row group: what a thread reads at a time.
const GROUP_ROWS: usize = 1 << 18;

/// A Parquet file that is being written.
pub(crate) struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    table: SchemaDescPtr,
    properties: WriterPropertiesPtr,
    /// The columns of the row group that is not full yet, and its rows.
    chunks: Vec<Chunk>,
    rows: usize,
}

impl<W: Write + Send> Writer<W> {
    pub(crate) fn new(sink: W, table: &SchemaDescPtr) -> Result<Self> {
        let version = KeyValue::new("plimsoll.schema".to_owned(), SCHEMA_VERSION.to_string());
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(vec![version]));
        // What is different in every row gains nothing from a dictionary.
        for (column, encoding) in [
            ("request_id", Encoding::PLAIN),
            ("ts_arrival", Encoding::DELTA_BINARY_PACKED),
            ("line", Encoding::DELTA_BINARY_PACKED),
        ] {
            let column = ColumnPath::from(column);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, encoding);
        }
        let properties = Arc::new(properties.build());
        let root = table.root_schema_ptr();
        let file = SerializedFileWriter::new(sink, root, Arc::clone(&properties))?;
        let table = Arc::clone(table);
        Ok(Self { file, table, properties, chunks: Vec::new(), rows: 0 })
    }

    /// Adds rows; columns that they lack are unknown.
    pub(crate) fn write(&mut self, rows: &Columns) -> Result<()> {
        let room = GROUP_ROWS - self.rows;
        if rows.rows > room {
            let mut keep: Vec<bool> = (0..rows.rows).map(|row| row < room).collect();
            self.write(&rows.filter(&keep))?;
            keep.iter_mut().for_each(|keep| *keep = !*keep);
            return self.write(&rows.filter(&keep));
        }
        self.chunks.resize_with(self.table.num_columns(), Chunk::default);
        for (chunk, column) in self.chunks.iter_mut().zip(self.table.columns()) {
            match rows.get(first_part(column)) {
                Some(values) => chunk.write(values, column, &self.properties)?,
                None => chunk.nulls += rows.rows,
            }
        }
        self.rows += rows.rows;
        if self.rows == GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    /// Writes the row group.
    fn flush(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for (mut chunk, column) in self.chunks.drain(..).zip(self.table.columns()) {
            chunk.settle(column, &self.properties)?;
            if let Some(writer) = chunk.writer {
                let closed = writer.close()?;
                let bytes = std::mem::take(&mut *lock(&chunk.bytes));
                group.append_column(&Bytes::from(bytes), closed)?;
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// Writes what is left, and the end of the file.
    pub(crate) fn finish(&mut self) -> Result<&mut W> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.file.finish()?;
        Ok(self.file.inner_mut())
    }
}

/// A column of a row group.
#[derive(Default)]
struct Chunk {
    /// None before the first known value.
    writer: Option<ColumnWriter<'static>>,
    /// Rows after those that are written that are unknown.
    nulls: usize,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Chunk {
    fn write(
        &mut self,
        column: &Column,
        of: &ColumnDescPtr,
        properties: &WriterPropertiesPtr,
    ) -> Result<()> {
        let writer = self.settle(of, properties)?;
        match &column.values {
            Values::Flags(values) => put::<BoolType>(writer, column, values),
            Values::Ints(values) => put::<Int32Type>(writer, column, values),
            Values::Longs(values) => put::<Int64Type>(writer, column, values),
            Values::Reals(values) => put::<DoubleType>(writer, column, values),
            Values::Texts(texts) => put::<ByteArrayType>(writer, column, &slices(texts)),
        }?;
        self.nulls = column.nulls;
        Ok(())
    }

    /// The writer, with what is unknown written to it.
    fn settle(
        &mut self,
        of: &ColumnDescPtr,
        properties: &WriterPropertiesPtr,
    ) -> Result<&mut ColumnWriter<'static>> {
        let writer = self.writer.get_or_insert_with(|| {
            let sink = TrackedWrite::new(Held(Arc::clone(&self.bytes)));
            get_column_writer(Arc::clone(of), Arc::clone(properties), Box::new(Pages(sink)))
        });
        if self.nulls > 0 {
            let levels = vec![0; std::mem::take(&mut self.nulls)];
            let repeats = (of.max_rep_level() > 0).then_some(levels.as_slice());
            match writer {
                ColumnWriter::BoolColumnWriter(own) => own.write_batch(&[], Some(&levels), repeats),
                ColumnWriter::Int32ColumnWriter(own) => {
                    own.write_batch(&[], Some(&levels), repeats)
                }
                ColumnWriter::Int64ColumnWriter(own) => {
                    own.write_batch(&[], Some(&levels), repeats)
                }
                ColumnWriter::DoubleColumnWriter(own) => {
                    own.write_batch(&[], Some(&levels), repeats)
                }
                ColumnWriter::ByteArrayColumnWriter(own) => {
                    own.write_batch(&[], Some(&levels), repeats)
                }
                _ => unreachable!("no table has a column of such a type"),
            }?;
        }
        Ok(writer)
    }
}

fn put<T: DataType>(writer: &mut ColumnWriter<'_>, column: &Column, values: &[T::T]) -> Result<()> {
    let repeats = (!column.repeats.is_empty()).then_some(column.repeats.as_slice());
    let writer = get_typed_column_writer_mut::<T>(writer);
    writer.write_batch(values, Some(&column.levels), repeats).map(|_| ())
}

/// Texts as Parquet takes them: pieces of one buffer.
fn slices(texts: &Texts) -> Vec<ByteArray> {
    if !texts.keys.is_empty() {
        return texts.iter().map(ByteArray::from).collect();
    }
    let text = Bytes::copy_from_slice(texts.plain.text.as_bytes());
    let mut begin = 0;
    let slice = |end: &usize| text.slice(std::mem::replace(&mut begin, *end)..*end).into();
    texts.plain.ends.iter().map(slice).collect()
}

/// Bytes that are held until the row group is full.
struct Held(Arc<Mutex<Vec<u8>>>);

fn lock(bytes: &Mutex<Vec<u8>>) -> std::sync::MutexGuard<'_, Vec<u8>> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Pages of a column chunk, one after the other.
struct Pages(TrackedWrite<Held>);

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        SerializedPageWriter::new(&mut self.0).write_page(page)
    }

    fn close(&mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}
