//! Measured kernel times: one table for each device, engine, family of kernels and number format, and how times between samples are read.

mod curve;
mod file;
mod recipe;
mod tables;

/// The tables that come with the program; `cargo run -p tools --bin kernels` makes them.
static BUILT_IN: &[u8] = include_bytes!("../data/kernels.bin");

/// The tables that come with the program: of eight devices and three engines.
pub fn built_in() -> Result<KernelFile<'static>, KernelFileError> {
    KernelFile::read(BUILT_IN)
}

pub use self::curve::KernelCurve;
pub use self::file::{
    KernelColumn, KernelEntry, KernelFamily, KernelFile, KernelFileError, KernelFileWriter,
    KernelKey, KernelOrigin, KernelTable,
};
pub use self::recipe::{KernelRecipe, Routing};
pub use self::tables::{
    DecodeSurface, ExpertCurve, ExpertShape, HeadShape, KernelSource, KernelTables,
    PrefillAttention,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(family: KernelFamily, format: &str, key: &[KernelKey], at: u64) -> f64 {
        let file = built_in().expect("a file");
        let entry = file
            .entries()
            .iter()
            .find(|entry| {
                (&entry.device[..], &entry.engine[..]) == ("h200_sxm", "vllm")
                    && (entry.family, &entry.format[..]) == (family, format)
            })
            .expect("a table");
        let table = file.table(entry).expect("times");
        let column = table.columns.iter().find(|column| column.key == key).expect("a shape");
        let place = column.at.iter().position(|own| *own == at).expect("a sample");
        column.seconds[place]
    }

    /// As the wheel's Parquet has them, read by another program (pyarrow, 2026-11-20): on both sides of the edge at 128 tokens, too.
    #[test]
    fn samples_of_the_source() {
        let size = KernelKey::Size;
        let word = |text: &str| KernelKey::Word(text.to_owned());
        let near = |is: f64, ms: f64| assert!((is * 1e3 / ms - 1.0).abs() < 0.002_01, "{is} {ms}");
        let gemm = |format, m, n, k| seconds(KernelFamily::Gemm, format, &[size(n), size(k)], m);
        near(gemm("bfloat16", 16, 4096, 4096), 0.012_792_000_34);
        near(gemm("bfloat16", 17, 4096, 4096), 0.013_932_444_983);
        near(gemm("fp8", 128, 5120, 5120), 0.016_204_444_899);
        near(gemm("fp8", 129, 5120, 5120), 0.025_150_222_911);
        near(gemm("fp8", 4353, 5120, 5120), 0.277_051_554_786);
        let experts =
            [word("power_law_1.01"), size(1), size(1), size(2048), size(768), size(8), size(128)];
        near(seconds(KernelFamily::Experts, "bfloat16", &experts, 64), 0.291_628_789_902);
        let heads = [word("bfloat16"), size(0), size(128), size(32), size(8), size(64)];
        near(seconds(KernelFamily::DecodeAttention, "bfloat16", &heads, 8191), 0.490_763);
    }

    /// Every table opens, and all of them take no more than six mebibytes of the program.
    #[test]
    fn every_table_opens() {
        let file = built_in().expect("a file");
        assert!(BUILT_IN.len() <= 6 << 20, "{}", BUILT_IN.len());
        assert_eq!(file.origin().license, "Apache-2.0");
        let mut rows = 0;
        for entry in file.entries() {
            let table = file.table(entry).expect("a table");
            let own: u64 = table.columns.iter().map(|column| column.at.len() as u64).sum();
            assert_eq!(own, entry.rows, "{entry:?}");
            assert!(table.columns.iter().all(|column| column.seconds.iter().all(|s| *s > 0.0)));
            rows += own;
        }
        assert!(rows > 6_000_000, "{rows}");
    }
}
