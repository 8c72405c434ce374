//! SQL over the ledger's files in this process, read-only.
//!
//! A [`Table`] is a list of files that the manifest vouches for, never a glob: a file that is not there is an error, since
//! DataFusion would take it for an empty folder and answer from the rest.

mod answer;

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, cast, ident};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};

use parquet::arrow::parquet_to_arrow_schema;
use plimsoll_ledger::{Answer, Ledger, QueryError, QueryInput};

pub(crate) use answer::Found;

/// The column that the day of a request's arrival is in.
const DAY: &str = "day";

/// A name in SQL, and the files behind it.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// What it is called in SQL.
    pub(crate) name: &'static str,
    /// Its columns, without [`DAY`]. One that a file lacks reads as null.
    pub(crate) schema: SchemaRef,
    /// The column of instants whose UTC date is the day of a row, where the table has the column [`DAY`].
    pub(crate) day_of: Option<&'static str>,
    /// The files that count. There may be none.
    pub(crate) files: Vec<PathBuf>,
    /// Rows that the manifest lists.
    #[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only a cluster is checked"))]
    pub(crate) rows: u64,
}

impl Table {
    /// The columns as SQL sees them.
    fn columns(&self) -> SchemaRef {
        if self.day_of.is_none() {
            return Arc::clone(&self.schema);
        }
        let mut fields = self.schema.fields().to_vec();
        fields.push(Arc::new(Field::new(DAY, DataType::Date32, true)));
        Arc::new(Schema::new(fields))
    }
}

/// The tables of a ledger, as its manifest had them when it was opened; requests come first.
pub(crate) fn tables(ledger: &Ledger) -> Result<Vec<Table>, QueryError> {
    let table = |own: plimsoll_ledger::LedgerTable| {
        let schema = parquet_to_arrow_schema(&own.schema, None)
            .map_err(|error| QueryError::Failed { message: first_line(&error.to_string()) })?;
        Ok(Table {
            name: own.name,
            schema: Arc::new(schema),
            day_of: (own.name == "requests").then_some("ts_arrival"),
            files: own.files,
            rows: own.rows,
        })
    };
    ledger.tables().into_iter().map(table).collect()
}

/// Answers one question over a ledger, in this process.
pub fn query(ledger: &Ledger, input: &QueryInput) -> Result<Answer, QueryError> {
    query_tables(&tables(ledger)?, input)
}

/// Answers one question over tables.
///
/// It is worked on in one part: what several hand on, they hand on in the order they end, and rows without an order and sums
/// of floats would be others in every run.
pub(crate) fn query_tables(tables: &[Table], input: &QueryInput) -> Result<Answer, QueryError> {
    wait_for(async {
        let config = SessionConfig::new().with_target_partitions(1).with_information_schema(true);
        let context = SessionContext::new_with_config(config);
        for table in tables {
            register(&context, table)?;
        }
        ask(&context, &input.sql, Some(input.rows_max)).await?.answer(input.rows_max)
    })
}

/// Waits for work on a thread of its own: whoever asks may be a task of a runtime, which must not be held up by another.
pub(crate) fn wait_for<T: Send>(
    work: impl Future<Output = Result<T, QueryError>> + Send,
) -> Result<T, QueryError> {
    let wait = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|source| QueryError::Runtime { source })?
            .block_on(work)
    };
    std::thread::scope(|scope| match scope.spawn(wait).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Makes `table` known to `context`, after a look at each of its files.
///
/// The day is worked out from the instant. DataFusion's own partition columns need a table path above the `day=` folders: with
/// files as table paths they are silently empty, and a filter on them silently drops the files. A union of a listing a day is
/// slow: on two executors, unoptimised, 400 days of one small file took 74 s, and 0.7 s as one listing.
pub(crate) fn register(context: &SessionContext, table: &Table) -> Result<(), QueryError> {
    let urls = table.files.iter().map(|path| url_of(path)).collect::<Result<Vec<_>, _>>()?;
    let provider = if urls.is_empty() {
        Arc::new(EmptyTable::new(table.columns()))
    } else if let Some(instant) = table.day_of {
        let columns = table.schema.fields().iter().map(|field| ident(field.name()));
        let day = cast(ident(instant), DataType::Date32).alias(DAY);
        let source = provider_as_source(listing(table, urls)?);
        let plan = LogicalPlanBuilder::scan(table.name, source, None)
            .and_then(|scan| scan.project(columns.chain([day])))
            .and_then(LogicalPlanBuilder::build)
            .map_err(|e| failed(&e))?;
        Arc::new(ViewTable::new(plan, None)) as Arc<dyn TableProvider>
    } else {
        listing(table, urls)?
    };
    context.register_table(table.name, provider).map_err(|e| failed(&e))?;
    Ok(())
}

fn listing(
    table: &Table,
    urls: Vec<ListingTableUrl>,
) -> Result<Arc<dyn TableProvider>, QueryError> {
    // The list is explicit, so a name may end as it likes.
    let options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("");
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(Arc::clone(&table.schema));
    Ok(Arc::new(ListingTable::try_new(config).map_err(|e| failed(&e))?))
}

/// The file as a URL, which has no glob in it even if the path has brackets or stars.
fn url_of(path: &Path) -> Result<ListingTableUrl, QueryError> {
    let unreadable = |source| QueryError::Unreadable { path: path.to_owned(), source };
    let not_parquet = || QueryError::NotParquet { path: path.to_owned() };
    if !has_a_footer(path).map_err(unreadable)? {
        return Err(not_parquet());
    }
    let whole = std::path::absolute(path).map_err(unreadable)?;
    let url = url::Url::from_file_path(whole).map_err(|()| not_parquet())?;
    ListingTableUrl::try_new(url, None).map_err(|_| not_parquet())
}

/// Whether the file ends as a Parquet file does, in a footer that fits. The reader subtracts the footer's length from the
/// file's without asking, and DataFusion leaves out a file of no bytes.
fn has_a_footer(path: &Path) -> std::io::Result<bool> {
    const MAGIC: &[u8; 4] = b"PAR1";
    let mut file = std::fs::File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() < 12 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-8))?;
    let mut tail = [0; 8];
    file.read_exact(&mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    Ok(&magic == MAGIC && u64::from(u32::from_le_bytes([a, b, c, d])) <= meta.len() - 12)
}

/// Runs one statement that only reads, for at most one row more than so many.
pub(crate) async fn ask(
    context: &SessionContext,
    sql: &str,
    rows_max: Option<usize>,
) -> Result<Found, QueryError> {
    let plan = context.state().create_logical_plan(sql).await.map_err(|e| wrong(&e))?;
    // The plan is checked apart from making it, so that a refusal is not taken for a mistake.
    let read_only =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    if let Err(refusal) = read_only.verify_plan(&plan) {
        let line = one_line(&refusal);
        let name = line.rsplit_once("not supported: ").map_or(line.as_str(), |(_, name)| name);
        return Err(QueryError::ReadOnly { statement: spaced(name) });
    }
    // What is told of a plan or a table stands alone.
    let alone = matches!(
        plan,
        LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_)
    );
    let mut frame = context.execute_logical_plan(plan).await.map_err(|e| wrong(&e))?;
    if let Some(most) = rows_max.filter(|_| !alone) {
        // A number that SQL has.
        let most = most.saturating_add(1).min(i64::MAX as usize);
        frame = frame.limit(0, Some(most)).map_err(|e| failed(&e))?;
    }
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await.map_err(|e| failed(&e))?;
    Ok(Found { schema, batches })
}

fn wrong(error: &DataFusionError) -> QueryError {
    QueryError::Wrong { message: one_line(error) }
}

pub(crate) fn failed(error: &DataFusionError) -> QueryError {
    QueryError::Failed { message: one_line(error) }
}

/// The innermost cause in a line, without DataFusion's names for its own layers.
fn one_line(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::SQL(error, _) => first_line(&error.to_string()),
        root => first_line(&root.strip_backtrace()),
    }
}

fn first_line(text: &str) -> String {
    const LAYERS: [&str; 10] = [
        "Error during planning: ",
        "Schema error: ",
        "SQL error: ",
        "sql parser error: ",
        "Internal error: ",
        "Execution error: ",
        "External error: ",
        "Arrow error: ",
        "Parquet error: ",
        "This feature is not implemented: ",
    ];
    let mut line = text.lines().next().unwrap_or_default().trim();
    while let Some(rest) = LAYERS.iter().find_map(|layer| line.strip_prefix(layer)) {
        line = rest;
    }
    // What each of a function's signatures would rather have had is no help.
    line = line.split_once(", errors: ").map_or(line, |(line, _)| line);
    line.trim_end_matches('.').replace("datafusion.public.", "")
}

/// A statement's name as SQL writes it: `DropTable` is `DROP TABLE`.
fn spaced(name: &str) -> String {
    let mut spaced = String::with_capacity(name.len() + 4);
    let mut after_lower = false;
    for letter in name.chars() {
        if letter.is_uppercase() && after_lower {
            spaced.push(' ');
        }
        after_lower = letter.is_lowercase();
        spaced.extend(letter.to_uppercase());
    }
    spaced
}
