//! Makes `crates/plimsoll-perf/data/kernels.bin` from the wheel of `aiconfigurator-core`:
//!
//!     cargo run --release -p tools --bin kernels -- WHEEL SHA256 DATE
//!
//! and says what each table takes, and what was left out.

#![expect(clippy::print_stdout, reason = "a tool prints what it finds")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use plimsoll_evidence::{WantedKernels, read_kernels};
use plimsoll_perf::kernels::{KernelFile, KernelFileWriter, KernelOrigin};

const DEVICES: [&str; 8] = [
    "a100_sxm",
    "b200_sxm",
    "b300_sxm",
    "gb200",
    "h100_sxm",
    "h200_sxm",
    "l40s",
    "rtx_pro_6000_server",
];
const ENGINES: [&str; 3] = ["sglang", "trtllm", "vllm"];
const OUT: &str = "crates/plimsoll-perf/data/kernels.bin";
/// A time is within this share of its sample.
const WITHIN: f64 = 0.002_01;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [wheel, sha256, date] = arguments.as_slice() else {
        return Err("give the wheel, its SHA-256 and today's date".into());
    };
    let wheel = Path::new(wheel);
    let name = wheel.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let origin = KernelOrigin {
        source: name,
        sha256: sha256.clone(),
        date: date.clone(),
        license: "Apache-2.0".to_owned(),
        copyright: "Copyright (c) 2025-2026 NVIDIA CORPORATION & AFFILIATES. All rights reserved."
            .to_owned(),
    };
    let wanted = WantedKernels {
        devices: DEVICES.map(str::to_owned).to_vec(),
        engines: ENGINES.map(str::to_owned).to_vec(),
        version: None,
    };
    let reading = read_kernels(wheel, &wanted)?;
    let mut writer = KernelFileWriter::new(origin);
    for read in &reading.tables {
        let kernel = (&read.device[..], &read.engine[..], &read.version[..]);
        writer.push(kernel, (read.family, &read.format), read.table.clone())?;
    }
    let bytes = writer.finish()?;
    // What is written is read again, and held against what was read.
    let file = KernelFile::read(&bytes[..])?;
    let mut by: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let (mut rows, mut worst) = (0, 0.0f64);
    for (entry, read) in file.entries().iter().zip(&reading.tables) {
        let table = file.table(entry)?;
        for (was, is) in read.table.columns.iter().zip(&table.columns) {
            assert_eq!((&was.key, &was.at), (&is.key, &is.at));
            for (was, is) in was.seconds.iter().zip(&is.seconds) {
                worst = worst.max((is / was - 1.0).abs());
            }
        }
        rows += entry.rows;
        *by.entry((&entry.engine, &entry.device)).or_default() += entry.rows;
    }
    assert!(worst < WITHIN, "a time is off by {worst}");
    std::fs::write(OUT, &bytes)?;
    for ((engine, device), rows) in by {
        println!("{engine} {device}: {rows} rows");
    }
    for left_out in &reading.left_out {
        println!("left out: {left_out}");
    }
    let tables = file.entries().len();
    println!(
        "{OUT}: {tables} tables, {rows} rows, {} bytes, worst error {:.4}%",
        bytes.len(),
        worst * 100.0
    );
    Ok(())
}
