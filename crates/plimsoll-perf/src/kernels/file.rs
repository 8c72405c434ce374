//! The file of kernel tables: an index, and a compressed frame for each table.
//!
//! Times are kept as whole steps of 0.4% of their logarithm, so that each is within 0.2% of its sample; samples themselves differ by 1 to 3% from run to run. A column is kept as
//! differences to the column before it where both have the same axis, and to its neighbour along the axis: what is left are small numbers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"PLIMKERN";
const VERSION: u32 = 1;
/// A step of the logarithm of a time.
const STEP: f64 = 0.004;
/// How hard frames are compressed: they are written once.
const LEVEL: i32 = 19;
/// The most that an index or a frame may unpack to, whatever the file says.
const UNPACKED_MOST: u64 = 256 << 20;

/// What kernels of a table do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelFamily {
    /// Matrix products by (n, k), against m.
    Gemm,
    /// What fp8 products with dynamic scales spend on quantising, by k, against m.
    Quantize,
    /// Fused experts, against tokens.
    Experts,
    /// Attention of prompts, against their length.
    PrefillAttention,
    /// Attention of decodes, against the context.
    DecodeAttention,
    /// Whole latent attention modules of prompts, against their length.
    LatentPrefill,
    /// Whole latent attention modules of decodes, against the context.
    LatentDecode,
    /// Products of latent attention, against tokens.
    LatentProduct,
    /// All-reduce among GPUs, against elements.
    AllReduce,
}

impl KernelFamily {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Gemm,
        Self::Quantize,
        Self::Experts,
        Self::PrefillAttention,
        Self::DecodeAttention,
        Self::LatentPrefill,
        Self::LatentDecode,
        Self::LatentProduct,
        Self::AllReduce,
    ];

    /// As documents say it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Quantize => "quantize",
            Self::Experts => "experts",
            Self::PrefillAttention => "prefill attention",
            Self::DecodeAttention => "decode attention",
            Self::LatentPrefill => "latent prefill",
            Self::LatentDecode => "latent decode",
            Self::LatentProduct => "latent product",
            Self::AllReduce => "all-reduce",
        }
    }
}

/// Where tables come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelOrigin {
    /// The package and its version.
    pub source: String,
    /// Its SHA-256.
    pub sha256: String,
    /// When it was read.
    pub date: String,
    /// Its licence.
    pub license: String,
    /// Its copyright line.
    pub copyright: String,
}

/// A table of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelEntry {
    /// The device, as the source names it: `h200_sxm`.
    pub device: String,
    /// `vllm`, `sglang` or `trtllm`.
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// What its kernels do.
    pub family: KernelFamily,
    /// The number format.
    pub format: String,
    /// Samples.
    pub rows: u64,
    offset: u64,
    length: u64,
    unpacked: u64,
}

/// A part of a column's name: a size or a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum KernelKey {
    /// A size.
    Size(u64),
    /// A word, such as a distribution of experts.
    Word(String),
}

impl fmt::Display for KernelKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(out, "{size}"),
            Self::Word(word) => out.write_str(word),
        }
    }
}

/// Times of one shape along one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelColumn {
    /// What shape, in the order of the table's keys.
    pub key: Vec<KernelKey>,
    /// Samples along the axis, ascending.
    pub at: Vec<u64>,
    /// Their times, in seconds.
    pub seconds: Vec<f64>,
}

/// Times of one family of kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTable {
    /// What columns are named by.
    pub keys: Vec<String>,
    /// Columns, in the order of their keys.
    pub columns: Vec<KernelColumn>,
}

/// Why a file cannot be read.
#[derive(Debug, Error)]
pub enum KernelFileError {
    /// It is something else, or of another version.
    #[error("is no file of kernel tables that this version reads")]
    Unknown,
    /// It is damaged.
    #[error("is damaged: {0}")]
    Damaged(&'static str),
}

#[derive(Serialize, Deserialize)]
struct Index {
    origin: KernelOrigin,
    entries: Vec<KernelEntry>,
}

#[derive(Serialize, Deserialize)]
struct FrameHead {
    keys: Vec<String>,
    /// What each key may be.
    words: Vec<Vec<KernelKey>>,
    axes: Vec<Vec<u64>>,
    columns: usize,
}

/// A file of kernel tables.
#[derive(Clone, Debug)]
pub struct KernelFile<'a> {
    origin: KernelOrigin,
    entries: Vec<KernelEntry>,
    frames: Cow<'a, [u8]>,
}

impl<'a> KernelFile<'a> {
    /// Reads the index; tables are unpacked when they are asked for.
    pub fn read(bytes: impl Into<Cow<'a, [u8]>>) -> Result<Self, KernelFileError> {
        let bytes = bytes.into();
        let word = |at: usize| -> Option<u64> {
            Some(u64::from(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)))
        };
        if bytes.get(..8) != Some(MAGIC) || word(8) != Some(u64::from(VERSION)) {
            return Err(KernelFileError::Unknown);
        }
        let (length, unpacked) =
            word(12).zip(word(16)).ok_or(KernelFileError::Damaged("its index is cut"))?;
        let end = usize::try_from(20 + length).unwrap_or(usize::MAX);
        let packed = bytes.get(20..end).ok_or(KernelFileError::Damaged("its index is cut"))?;
        let index = unpack(packed, unpacked)?;
        let index: Index = serde_json::from_slice(&index)
            .map_err(|_| KernelFileError::Damaged("its index cannot be read"))?;
        let frames = match bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[end..]),
            Cow::Owned(mut bytes) => Cow::Owned(bytes.split_off(end)),
        };
        Ok(Self { origin: index.origin, entries: index.entries, frames })
    }

    /// Where its tables come from.
    pub fn origin(&self) -> &KernelOrigin {
        &self.origin
    }

    /// Its tables.
    pub fn entries(&self) -> &[KernelEntry] {
        &self.entries
    }

    /// Unpacks a table.
    pub fn table(&self, entry: &KernelEntry) -> Result<KernelTable, KernelFileError> {
        let cut = || KernelFileError::Damaged("a table is cut");
        let from = usize::try_from(entry.offset).map_err(|_| cut())?;
        let length = usize::try_from(entry.length).map_err(|_| cut())?;
        let to = from.checked_add(length).ok_or_else(cut)?;
        let packed = self.frames.get(from..to).ok_or_else(cut)?;
        table(&unpack(packed, entry.unpacked)?)
    }
}

fn unpack(packed: &[u8], unpacked: u64) -> Result<Vec<u8>, KernelFileError> {
    if unpacked > UNPACKED_MOST {
        return Err(KernelFileError::Damaged("a part is larger than any may be"));
    }
    let most = usize::try_from(unpacked).unwrap_or(usize::MAX);
    let bytes = zstd::bulk::decompress(packed, most)
        .map_err(|_| KernelFileError::Damaged("a part cannot be unpacked"))?;
    match bytes.len() == most {
        true => Ok(bytes),
        false => Err(KernelFileError::Damaged("a part has another length than it says")),
    }
}

fn table(frame: &[u8]) -> Result<KernelTable, KernelFileError> {
    let cut = || KernelFileError::Damaged("a table is cut");
    let length = |at: usize| -> Option<usize> {
        usize::try_from(u32::from_le_bytes(frame.get(at..at + 4)?.try_into().ok()?)).ok()
    };
    let head_end = length(0).and_then(|n| n.checked_add(4)).ok_or_else(cut)?;
    let head = frame.get(4..head_end).ok_or_else(cut)?;
    let head: FrameHead = serde_json::from_slice(head)
        .map_err(|_| KernelFileError::Damaged("a table's head cannot be read"))?;
    // For each column what its keys are, and its axis: differences to the column before, key by key.
    let parts = head.keys.len() + 1;
    let codes_end = head
        .columns
        .checked_mul(2 * parts)
        .and_then(|n| n.checked_add(head_end))
        .ok_or_else(cut)?;
    let codes = frame.get(head_end..codes_end).ok_or_else(cut)?;
    let body = &frame[codes_end..];
    let (low, high) = body.split_at(body.len() / 2);
    if low.len() != high.len() || head.words.len() != head.keys.len() {
        return Err(cut());
    }
    let mut now = vec![0i32; parts];
    let mut columns = Vec::new();
    let mut at = 0usize;
    let mut before: Option<(usize, Vec<i64>)> = None;
    for column in 0..head.columns {
        for (part, code) in now.iter_mut().enumerate() {
            let from = 2 * (part * head.columns + column);
            *code += i32::from(i16::from_le_bytes([codes[from], codes[from + 1]]));
        }
        let which = |part: usize| usize::try_from(now[part]).ok();
        let key = (0..head.keys.len())
            .map(|part| head.words[part].get(which(part)?).cloned())
            .collect::<Option<Vec<KernelKey>>>()
            .ok_or_else(cut)?;
        let axis = which(parts - 1).ok_or_else(cut)?;
        let samples = head.axes.get(axis).ok_or_else(cut)?;
        let end = at.checked_add(samples.len()).filter(|end| *end <= low.len()).ok_or_else(cut)?;
        let mut sum = 0i64;
        let mut steps: Vec<i64> = (at..end)
            .map(|i| {
                let packed = i64::from(low[i]) | i64::from(high[i]) << 8;
                sum += packed >> 1 ^ -(packed & 1);
                sum
            })
            .collect();
        at = end;
        if let Some((_, last)) = before.as_ref().filter(|(last, _)| *last == axis) {
            steps.iter_mut().zip(last).for_each(|(step, last)| *step += last);
        }
        let seconds = steps.iter().map(|step| (*step as f64 * STEP).exp() / 1e3).collect();
        columns.push(KernelColumn { key, at: samples.clone(), seconds });
        before = Some((axis, steps));
    }
    match at == low.len() {
        true => Ok(KernelTable { keys: head.keys, columns }),
        false => Err(KernelFileError::Damaged("a table has more times than columns")),
    }
}

/// Writes a file of kernel tables.
#[derive(Debug)]
pub struct KernelFileWriter {
    index: Index,
    frames: Vec<u8>,
}

impl fmt::Debug for Index {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} tables of {}", self.entries.len(), self.origin.source)
    }
}

impl KernelFileWriter {
    /// A file without tables.
    pub fn new(origin: KernelOrigin) -> Self {
        Self { index: Index { origin, entries: Vec::new() }, frames: Vec::new() }
    }

    /// One more table. Its columns are sorted by their keys; times below a femtosecond or above a day are none.
    pub fn push(
        &mut self,
        (device, engine, version): (&str, &str, &str),
        (family, format): (KernelFamily, &str),
        mut table: KernelTable,
    ) -> Result<(), KernelFileError> {
        table.columns.sort_by(|a, b| a.key.cmp(&b.key));
        let frame = frame(&table)?;
        let packed = zstd::bulk::compress(&frame, LEVEL)
            .map_err(|_| KernelFileError::Damaged("a table cannot be packed"))?;
        self.index.entries.push(KernelEntry {
            device: device.to_owned(),
            engine: engine.to_owned(),
            version: version.to_owned(),
            family,
            format: format.to_owned(),
            rows: table.columns.iter().map(|column| column.at.len() as u64).sum(),
            offset: self.frames.len() as u64,
            length: packed.len() as u64,
            unpacked: frame.len() as u64,
        });
        self.frames.extend(packed);
        Ok(())
    }

    /// The file.
    pub fn finish(self) -> Result<Vec<u8>, KernelFileError> {
        let failed = || KernelFileError::Damaged("its index cannot be packed");
        let index = serde_json::to_vec(&self.index).map_err(|_| failed())?;
        let packed = zstd::bulk::compress(&index, LEVEL).map_err(|_| failed())?;
        let mut out = MAGIC.to_vec();
        for number in [VERSION as usize, packed.len(), index.len()] {
            out.extend(u32::try_from(number).map_err(|_| failed())?.to_le_bytes());
        }
        out.extend(packed);
        out.extend(self.frames);
        Ok(out)
    }
}

fn frame(table: &KernelTable) -> Result<Vec<u8>, KernelFileError> {
    let odd = KernelFileError::Damaged;
    let parts = table.keys.len();
    let words: Vec<Vec<KernelKey>> = (0..parts)
        .map(|part| {
            let mut all: Vec<KernelKey> =
                table.columns.iter().map(|column| column.key[part].clone()).collect();
            all.sort();
            all.dedup();
            all
        })
        .collect();
    let mut axes: BTreeMap<&[u64], usize> = BTreeMap::new();
    let mut order: Vec<Vec<u64>> = Vec::new();
    let (mut codes, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    let mut before: Option<(usize, Vec<i64>)> = None;
    for column in &table.columns {
        let axis = *axes.entry(&column.at).or_insert_with(|| {
            order.push(column.at.clone());
            order.len() - 1
        });
        let mut code = Vec::new();
        for (part, key) in column.key.iter().enumerate() {
            code.push(words[part].binary_search(key).map_err(|_| odd("a key is not known"))?);
        }
        code.push(axis);
        codes.push(code);
        let steps: Vec<i64> =
            column.seconds.iter().map(|s| ((s * 1e3).ln() / STEP).round() as i64).collect();
        let mut last = 0;
        for (i, step) in steps.iter().enumerate() {
            let base = before.as_ref().filter(|(last, _)| *last == axis).map_or(0, |(_, b)| b[i]);
            let here = step - base;
            let change = here - last;
            last = here;
            let packed = u16::try_from(change << 1 ^ change >> 63)
                .map_err(|_| odd("a time is below a femtosecond or above a day"))?;
            let [a, b] = packed.to_le_bytes();
            low.push(a);
            high.push(b);
        }
        before = Some((axis, steps));
    }
    let head = FrameHead { keys: table.keys.clone(), words, axes: order, columns: codes.len() };
    let head = serde_json::to_vec(&head).map_err(|_| odd("a head cannot be written"))?;
    let mut out =
        u32::try_from(head.len()).map_err(|_| odd("a head is too long"))?.to_le_bytes().to_vec();
    out.extend(head);
    for part in 0..=parts {
        let mut last = 0i32;
        for code in &codes {
            let here = i32::try_from(code[part]).map_err(|_| odd("too many keys"))?;
            let change = i16::try_from(here - last).map_err(|_| odd("too many keys"))?;
            last = here;
            out.extend(change.to_le_bytes());
        }
    }
    out.extend(low);
    out.extend(high);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::cases;
    use proptest::prelude::*;

    use super::*;

    fn origin() -> KernelOrigin {
        let text = |text: &str| text.to_owned();
        KernelOrigin {
            source: text("a test"),
            sha256: text("0"),
            date: text("2026-11-20"),
            license: text("Apache-2.0"),
            copyright: text("nobody"),
        }
    }

    fn written(table: &KernelTable) -> Vec<u8> {
        let mut writer = KernelFileWriter::new(origin());
        let format = (KernelFamily::Gemm, "bf16");
        writer.push(("h200_sxm", "vllm", "0.24.0"), format, table.clone()).expect("a table");
        writer.finish().expect("a file")
    }

    fn any_table() -> impl Strategy<Value = KernelTable> {
        let column = (1u64..9, 1u64..9, 0usize..3, prop::collection::vec(-14.0f64..5.0, 9));
        prop::collection::vec(column, 1..20).prop_map(|columns| {
            let columns = columns.into_iter().map(|(n, k, axis, logs)| {
                let at: Vec<u64> = [&[1u64, 2, 16, 17, 64][..], &[1, 4096], &[7]][axis].to_vec();
                let seconds = logs.iter().take(at.len()).map(|log| log.exp() / 1e3).collect();
                let key = vec![KernelKey::Size(n), KernelKey::Word(format!("k{k}"))];
                KernelColumn { key, at, seconds }
            });
            let mut columns: Vec<KernelColumn> = columns.collect();
            columns.sort_by(|a, b| a.key.cmp(&b.key));
            columns.dedup_by(|a, b| a.key == b.key);
            KernelTable { keys: vec!["n".to_owned(), "k".to_owned()], columns }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(256)))]

        /// What is written is read again: shapes and axes exactly, times within 0.2%.
        #[test]
        fn a_table_there_and_back(table in any_table()) {
            let bytes = written(&table);
            let file = KernelFile::read(&bytes[..]).expect("a file");
            let entry = &file.entries()[0];
            prop_assert_eq!((entry.family, &entry.format[..]), (KernelFamily::Gemm, "bf16"));
            let back = file.table(entry).expect("a table");
            prop_assert_eq!(&back.keys, &table.keys);
            prop_assert_eq!(back.columns.len(), table.columns.len());
            for (was, is) in table.columns.iter().zip(&back.columns) {
                prop_assert_eq!((&was.key, &was.at), (&is.key, &is.at));
                for (was, is) in was.seconds.iter().zip(&is.seconds) {
                    prop_assert!((is / was - 1.0).abs() < 0.002_01, "{} {}", was, is);
                }
            }
        }

        /// A file in which bytes are changed or cut off is an error or another table, and no panic.
        #[test]
        fn damage_is_no_panic(table in any_table(), at in 0.0f64..1.0, byte in any::<u8>(), cut in any::<bool>()) {
            let mut bytes = written(&table);
            let at = (at * bytes.len() as f64) as usize;
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            if let Ok(file) = KernelFile::read(&bytes[..]) {
                for entry in file.entries() {
                    let _ = file.table(entry);
                }
            }
        }
    }
}
