//! Kernel tables: what there is, and where it comes from.

use std::collections::BTreeMap;

use plimsoll_perf::kernels::{KernelEntry, KernelFamily, KernelFile};
use plimsoll_units::grouped;
use serde_json::{Value, json};

use crate::text::aligned;

/// The tables of a file, or of one device of it; else the devices that there are.
fn wanted<'f>(
    file: &'f KernelFile<'_>,
    device: Option<&str>,
) -> Result<Vec<&'f KernelEntry>, Vec<String>> {
    let plain = |name: &str| name.to_lowercase().replace(['-', ' '], "_");
    let is_device = |entry: &&KernelEntry| {
        device.is_none_or(|device| {
            let (one, other) = (plain(&entry.device), plain(device));
            one == other || one.starts_with(&format!("{other}_"))
        })
    };
    let found: Vec<&KernelEntry> = file.entries().iter().filter(is_device).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut devices: Vec<String> =
        file.entries().iter().map(|entry| entry.device.clone()).collect();
    devices.dedup();
    Err(devices)
}

/// Kernel tables as a screen.
pub fn kernels_text(file: &KernelFile<'_>, device: Option<&str>) -> Result<String, Vec<String>> {
    let entries = wanted(file, device)?;
    let origin = file.origin();
    let mut out = match device {
        Some(_) => {
            let rows: Vec<Vec<String>> = entries
                .iter()
                .map(|entry| {
                    vec![
                        entry.device.clone(),
                        entry.engine.clone(),
                        entry.version.clone(),
                        entry.family.word().to_owned(),
                        entry.format.clone(),
                        grouped(entry.rows),
                    ]
                })
                .collect();
            aligned(&["device", "engine", "version", "kernels", "format", "samples"], &rows, &[5])
        }
        None => {
            let mut by: BTreeMap<(&str, &str), Vec<&KernelEntry>> = BTreeMap::new();
            for entry in entries {
                by.entry((&entry.device, &entry.engine)).or_default().push(entry);
            }
            let rows: Vec<Vec<String>> = by
                .into_iter()
                .map(|((device, engine), entries)| {
                    let of = |family: KernelFamily| {
                        let formats = entries.iter().filter(move |entry| entry.family == family);
                        let formats: Vec<&str> = formats.map(|entry| &entry.format[..]).collect();
                        if formats.is_empty() { "-".to_owned() } else { formats.join(", ") }
                    };
                    let gemm = entries.iter().find(|entry| entry.family == KernelFamily::Gemm);
                    vec![
                        device.to_owned(),
                        engine.to_owned(),
                        gemm.map_or("-".to_owned(), |entry| entry.version.clone()),
                        grouped(entries.iter().map(|entry| entry.rows).sum()),
                        of(KernelFamily::Gemm),
                        of(KernelFamily::Experts),
                    ]
                })
                .collect();
            let header = ["device", "engine", "version", "samples", "gemm", "experts"];
            aligned(&header, &rows, &[3])
        }
    };
    out.push_str(&format!(
        "\n{}, read {}, {}, sha256 {}\n{}\n",
        origin.source, origin.date, origin.license, origin.sha256, origin.copyright
    ));
    if device.is_none() {
        out.push_str("`plimsoll catalog kernels DEVICE` lists the tables of one device.\n");
    }
    Ok(out)
}

/// Kernel tables as a document.
pub fn kernels_json(file: &KernelFile<'_>, device: Option<&str>) -> Result<Value, Vec<String>> {
    let entries = wanted(file, device)?;
    let tables = entries.iter().map(|entry| {
        json!({
            "device": entry.device,
            "engine": entry.engine,
            "version": entry.version,
            "family": entry.family,
            "format": entry.format,
            "samples": entry.rows,
        })
    });
    let tables: Vec<Value> = tables.collect();
    Ok(json!({ "schema": "plimsoll/catalog/v1", "kernels": tables, "origin": file.origin() }))
}
