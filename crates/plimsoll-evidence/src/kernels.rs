//! Kernel timings of `aiconfigurator-core`, as its wheel or an unpacked folder of it has them: `systems/data/DEVICE/FAMILY/ENGINE/VERSION/*.parquet`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use plimsoll_perf::kernels::{KernelColumn, KernelFamily, KernelKey, KernelTable};
use thiserror::Error;

/// The folder of a wheel that holds the tables.
const FOLDER: &str = "aiconfigurator_core/systems/data/";
/// No table is larger.
const FILE_MOST: u64 = 256 << 20;
/// A number format whose smallest products take so many times those of bf16 was timed with the host's launches.
const LAUNCH_TIMED: f64 = 4.0;
/// The shape and the tokens by which that is told.
const SMALL: ([u64; 2], u64) = ([1024, 1024], 16);

/// Where a family stands, and what its columns are called.
struct Layout {
    family: KernelFamily,
    folder: &'static str,
    file: &'static str,
    format: &'static str,
    keys: &'static [&'static str],
    axis: &'static str,
}

const HEADS: &[&str] =
    &["attn_dtype", "window_size", "head_dim", "num_heads", "num_key_value_heads", "batch_size"];
const EXPERTS: &[&str] = &[
    "distribution",
    "moe_tp_size",
    "moe_ep_size",
    "hidden_size",
    "inter_size",
    "topk",
    "num_experts",
];

const LAYOUTS: [Layout; 9] = {
    const fn of(
        family: KernelFamily,
        (folder, file): (&'static str, &'static str),
        format: &'static str,
        keys: &'static [&'static str],
        axis: &'static str,
    ) -> Layout {
        Layout { family, folder, file, format, keys, axis }
    }
    use KernelFamily as Of;
    [
        of(Of::Gemm, ("gemm", "gemm_perf"), "gemm_dtype", &["n", "k"], "m"),
        of(Of::Quantize, ("quantize", "computescale_perf"), "quant_dtype", &["k"], "m"),
        of(Of::Experts, ("moe", "moe_perf"), "moe_dtype", EXPERTS, "num_tokens"),
        of(
            Of::PrefillAttention,
            ("attention", "context_attention_perf"),
            "kv_cache_dtype",
            HEADS,
            "isl",
        ),
        of(
            Of::DecodeAttention,
            ("attention", "generation_attention_perf"),
            "kv_cache_dtype",
            HEADS,
            "step",
        ),
        of(
            Of::LatentPrefill,
            ("mla", "mla_context_module_perf"),
            "gemm_type",
            &["kv_cache_dtype", "num_heads", "batch_size"],
            "isl",
        ),
        of(
            Of::LatentDecode,
            ("mla", "mla_generation_module_perf"),
            "gemm_type",
            &["kv_cache_dtype", "num_heads", "batch_size"],
            "step",
        ),
        of(
            Of::LatentProduct,
            ("mla_bmm", "mla_bmm_perf"),
            "bmm_dtype",
            &["op_name", "num_heads"],
            "num_tokens",
        ),
        of(
            Of::AllReduce,
            ("comm", "custom_allreduce_perf"),
            "allreduce_dtype",
            &["num_gpus", "backend"],
            "message_size",
        ),
    ]
};

/// A table that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadKernels {
    /// The device, as the source names it.
    pub device: String,
    /// The engine.
    pub engine: String,
    /// Its version.
    pub version: String,
    /// What the kernels do.
    pub family: KernelFamily,
    /// The number format.
    pub format: String,
    /// Their times.
    pub table: KernelTable,
}

/// What was read, and what was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelReading {
    /// Tables, by device, engine, family and number format.
    pub tables: Vec<ReadKernels>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

/// Which tables are wanted: those of all devices, engines or versions where it names none. Without a version the newest of each family is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedKernels {
    /// Devices.
    pub devices: Vec<String>,
    /// Engines.
    pub engines: Vec<String>,
    /// The version.
    pub version: Option<String>,
}

/// Why tables cannot be read.
#[derive(Debug, Error)]
pub enum KernelReadError {
    /// A file cannot be opened or read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A wheel cannot be unpacked.
    #[error("{}: is no wheel: {source}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// Why.
        source: zip::result::ZipError,
    },
    /// A table cannot be read.
    #[error("{name}: is no table of kernel times: {message}")]
    Table {
        /// The table.
        name: String,
        /// Why.
        message: String,
    },
    /// There are no tables.
    #[error("{}: has no tables that are wanted (`aiconfigurator_core/systems/data/DEVICE/FAMILY/ENGINE/VERSION/*.parquet`)", .0.display())]
    Nothing(PathBuf),
}

/// A wheel, or a folder that one was unpacked into.
enum Archive {
    Wheel(PathBuf, Box<zip::ZipArchive<File>>),
    Folder(PathBuf),
}

impl Archive {
    fn open(path: &Path) -> Result<Self, KernelReadError> {
        if path.is_dir() {
            let inside = path.join(FOLDER);
            return Ok(Self::Folder(if inside.is_dir() { inside } else { path.to_owned() }));
        }
        let file = File::open(path)
            .map_err(|source| KernelReadError::Io { path: path.to_owned(), source })?;
        let archive = zip::ZipArchive::new(file)
            .map_err(|source| KernelReadError::Archive { path: path.to_owned(), source })?;
        Ok(Self::Wheel(path.to_owned(), Box::new(archive)))
    }

    /// Files below the folder of tables, as `DEVICE/FAMILY/ENGINE/VERSION/FILE`.
    fn names(&self) -> Result<BTreeSet<String>, KernelReadError> {
        match self {
            Self::Wheel(_, archive) => Ok(archive
                .file_names()
                .filter_map(|name| Some(name.ok()?.strip_prefix(FOLDER)?.to_owned()))
                .collect()),
            Self::Folder(folder) => {
                let mut names = BTreeSet::new();
                below(folder, "", 5, &mut names)?;
                Ok(names)
            }
        }
    }

    fn read(&mut self, name: &str) -> Result<Vec<u8>, KernelReadError> {
        let mut bytes = Vec::new();
        match self {
            Self::Wheel(path, archive) => {
                let failed = |source| KernelReadError::Archive { path: path.clone(), source };
                let file = archive.by_name(&format!("{FOLDER}{name}")).map_err(failed)?;
                file.take(FILE_MOST)
                    .read_to_end(&mut bytes)
                    .map_err(|source| KernelReadError::Io { path: path.clone(), source })?;
            }
            Self::Folder(folder) => {
                let path = folder.join(name);
                let failed = |source| KernelReadError::Io { path: path.clone(), source };
                let file = File::open(&path).map_err(failed)?;
                file.take(FILE_MOST).read_to_end(&mut bytes).map_err(failed)?;
            }
        }
        Ok(bytes)
    }
}

/// The names of files below a folder, at most so deep.
fn below(
    folder: &Path,
    prefix: &str,
    depth: u32,
    names: &mut BTreeSet<String>,
) -> Result<(), KernelReadError> {
    let failed = |source| KernelReadError::Io { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            if depth > 1 {
                below(&entry.path(), &format!("{name}/"), depth - 1, names)?;
            }
        } else {
            names.insert(name);
        }
    }
    Ok(())
}

/// A version as its numbers, for comparing.
fn numbers(version: &str) -> Vec<u64> {
    let digits = version.split(['.', '-', '+']).map(|part| {
        part.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
    });
    digits.take(3).collect()
}

/// Reads the tables of a wheel or a folder.
pub fn read_kernels(path: &Path, wanted: &WantedKernels) -> Result<KernelReading, KernelReadError> {
    let mut archive = Archive::open(path)?;
    let names = archive.names()?;
    // By device, engine and family: the newest version, or the one that is asked for.
    let mut chosen: BTreeMap<(String, String, usize), (String, String)> = BTreeMap::new();
    for name in &names {
        let parts: Vec<&str> = name.split('/').collect();
        let [device, folder, engine, version, file] = parts[..] else { continue };
        let has = |all: &[String], one: &str| all.is_empty() || all.iter().any(|own| own == one);
        if !has(&wanted.devices, device) || !has(&wanted.engines, engine) {
            continue;
        }
        let layout = LAYOUTS.iter().position(|layout| {
            layout.folder == folder && file.strip_suffix(".parquet") == Some(layout.file)
        });
        let Some(layout) = layout else { continue };
        match &wanted.version {
            Some(wanted) if wanted != version => continue,
            None if version.contains("dev") => continue,
            _ => {}
        }
        let key = (device.to_owned(), engine.to_owned(), layout);
        let newer = chosen.get(&key).is_none_or(|(known, _)| numbers(version) > numbers(known));
        if newer {
            chosen.insert(key, (version.to_owned(), name.clone()));
        }
    }
    if chosen.is_empty() {
        return Err(KernelReadError::Nothing(path.to_owned()));
    }
    let mut reading = KernelReading::default();
    for ((device, engine, layout), (version, name)) in chosen {
        let bytes = archive.read(&name)?;
        let found = rows(&LAYOUTS[layout], bytes)
            .map_err(|message| KernelReadError::Table { name: name.clone(), message })?;
        let small = |table: &KernelTable| {
            let key = SMALL.0.map(KernelKey::Size);
            let column = table.columns.iter().find(|column| column.key == key)?;
            let at = column.at.iter().position(|at| *at == SMALL.1)?;
            Some(column.seconds[at])
        };
        let family = LAYOUTS[layout].family;
        let plain = found.get("bfloat16").and_then(&small);
        for (format, table) in found {
            let launched =
                small(&table).zip(plain).is_some_and(|(own, plain)| own > LAUNCH_TIMED * plain);
            if family == KernelFamily::Gemm && launched {
                reading.left_out.push(format!(
                    "{device} {engine} {version} gemm {format}: timed with the host's launches (a product of {} x {} takes over {LAUNCH_TIMED} times bf16's)",
                    SMALL.0[0], SMALL.0[1]
                ));
                continue;
            }
            let (device, engine) = (device.clone(), engine.clone());
            reading.tables.push(ReadKernels {
                device,
                engine,
                version: version.clone(),
                family,
                format,
                table,
            });
        }
    }
    Ok(reading)
}

/// The tables of a file, by number format. Of several times for a sample the least counts: an engine takes the fastest kernel. Times that are not above zero are none.
fn rows(layout: &Layout, bytes: Vec<u8>) -> Result<BTreeMap<String, KernelTable>, String> {
    let reader =
        SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(|error| error.to_string())?;
    let fields = reader.metadata().file_metadata().schema().get_fields().to_vec();
    let has = |name: &str| fields.iter().any(|field| field.name() == name);
    for name in [layout.axis, "latency"] {
        if !has(name) {
            return Err(format!("there is no column `{name}`"));
        }
    }
    let keys: Vec<&str> = layout.keys.iter().copied().filter(|key| has(key)).collect();
    type Samples = BTreeMap<u64, f64>;
    let mut found: BTreeMap<String, BTreeMap<Vec<KernelKey>, Samples>> = BTreeMap::new();
    for row in reader.get_row_iter(None).map_err(|error| error.to_string())? {
        let row = row.map_err(|error| error.to_string())?;
        let mut format = "any".to_owned();
        let mut key = vec![None; keys.len()];
        let (mut at, mut latency) = (None, None);
        for (name, field) in row.get_column_iter() {
            if name == layout.format {
                if let Field::Str(text) = field {
                    format.clone_from(text);
                }
            } else if name == layout.axis {
                at = size(field);
            } else if name == "latency" {
                latency = time(field);
            } else if let Some(i) = keys.iter().position(|key| key == name) {
                key[i] = match field {
                    Field::Str(text) => Some(KernelKey::Word(text.clone())),
                    other => size(other).map(KernelKey::Size),
                };
            }
        }
        let key: Option<Vec<KernelKey>> = key.into_iter().collect();
        let (Some(key), Some(at), Some(ms)) = (key, at, latency.filter(|ms| *ms > 0.0)) else {
            continue;
        };
        let least = found.entry(format).or_default().entry(key).or_default();
        let sample = least.entry(at).or_insert(f64::INFINITY);
        *sample = sample.min(ms / 1e3);
    }
    let table = |columns: BTreeMap<Vec<KernelKey>, Samples>| KernelTable {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        columns: columns
            .into_iter()
            .map(|(key, samples)| {
                let (at, seconds) = samples.into_iter().unzip();
                KernelColumn { key, at, seconds }
            })
            .collect(),
    };
    Ok(found.into_iter().map(|(format, columns)| (format, table(columns))).collect())
}

fn size(field: &Field) -> Option<u64> {
    match field {
        Field::Long(value) => u64::try_from(*value).ok(),
        Field::Int(value) => u64::try_from(*value).ok(),
        Field::ULong(value) => Some(*value),
        Field::UInt(value) => Some(u64::from(*value)),
        // Some tables have sizes as floats.
        Field::Double(value) if value.fract() == 0.0 && *value >= 0.0 && *value < 1e15 => {
            Some(*value as u64)
        }
        _ => None,
    }
}

fn time(field: &Field) -> Option<f64> {
    match field {
        Field::Double(value) => Some(*value).filter(|value| value.is_finite()),
        Field::Float(value) => Some(f64::from(*value)).filter(|value| value.is_finite()),
        _ => None,
    }
}
