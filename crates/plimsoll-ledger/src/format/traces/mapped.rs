//! `--map prompt_tokens=ctx`: any table and any JSON lines, with columns that the user names.

use super::own::{Pick, PickedJson, PickedTable, SLOTS, Slot, own_columns, own_keys};
use super::{Heading, Json, Table, find};
use crate::value::{MILLISECOND, SECOND};

/// A reader of a table whose columns the user names; the ledger's own names are read, too.
pub(crate) fn mapped_table(
    heading: &Heading<'_>,
    map: &[(String, String)],
) -> Result<Box<dyn Table>, String> {
    let is_column = |name: &str| find(heading, name).is_some();
    let mut picks = Vec::new();
    for pick in picks_of(map, &is_column)? {
        let Some(at) = find(heading, &pick.from) else {
            let names: Vec<&str> = heading.columns.iter().map(String::as_str).collect();
            return Err(format!(
                "the file has no column `{}`{}; it has: {}",
                pick.from,
                meant(&pick.from, &names),
                names.join(", ")
            ));
        };
        picks.push((at, pick));
    }
    let taken: Vec<&str> = picks.iter().map(|(_, pick)| pick.column).collect();
    let own = own_columns(heading, &taken);
    picks.extend(own);
    Ok(Box::new(PickedTable(picks)))
}

/// The same of JSON: `usage.prompt` is `prompt` in `usage`. A key that a record lacks is unknown there.
pub(crate) fn mapped_json(map: &[(String, String)]) -> Result<Box<dyn Json>, String> {
    let mut picks = picks_of(map, &|_| false)?;
    let taken: Vec<&str> = picks.iter().map(|pick| pick.column).collect();
    let own = own_keys(&taken);
    picks.extend(own);
    Ok(Box::new(PickedJson(picks)))
}

fn picks_of(
    map: &[(String, String)],
    is_column: &dyn Fn(&str) -> bool,
) -> Result<Vec<Pick>, String> {
    let mut picks: Vec<Pick> = Vec::with_capacity(map.len());
    for (column, from) in map {
        let Some((column, slot)) = SLOTS.iter().find(|(known, _)| known == column) else {
            return Err(unknown(column));
        };
        if let Some(other) = picks.iter().find(|pick| pick.column == *column) {
            return Err(format!("`{column}` is both `{}` and `{from}`: leave one out", other.from));
        }
        // A column may have a colon in its name.
        let (from, unit) = match from.rsplit_once(':').and_then(|(n, u)| Some((n, unit(u)?))) {
            Some((name, unit)) if !is_column(from) => (name, Some(unit)),
            _ => (from.as_str(), None),
        };
        let takes_units = matches!(slot, Slot::Time(_)) || column.ends_with("_s");
        if unit.is_some() && !takes_units {
            return Err(format!(
                "`{column}` is no time: only `ts_arrival` and seconds such as `e2e_s` have a unit"
            ));
        }
        if from.is_empty() {
            return Err(format!("`{column}=` names no column: write `{column}=COLUMN`"));
        }
        picks.push(Pick { column, slot, from: from.to_owned(), unit });
    }
    Ok(picks)
}

/// Nanoseconds.
fn unit(name: &str) -> Option<i128> {
    Some(match name {
        "s" => SECOND,
        "ms" => MILLISECOND,
        "us" => MILLISECOND / 1000,
        "ns" => 1,
        _ => return None,
    })
}

fn unknown(column: &str) -> String {
    if ["source", "file", "line"].contains(&column) {
        return format!("`{column}` is not read from a file: the ledger fills it in itself");
    }
    let names: Vec<&str> = SLOTS.iter().map(|(name, _)| *name).collect();
    let (meant, all) = (meant(column, &names), names.join(", "));
    format!("the ledger has no column `{column}`{meant}; its columns are: {all}")
}

/// The name that could be meant, where one is near.
fn meant(name: &str, known: &[&str]) -> String {
    // Long rubbish resembles nothing.
    let shown: String = name.chars().take(80).flat_map(char::to_lowercase).collect();
    let distance = |known: &str| strsim::damerau_levenshtein(&shown, &known.to_lowercase());
    let nearest = known.iter().map(|known| (distance(known), *known)).min();
    match nearest {
        Some((distance, nearest)) if distance <= 1 + shown.len() / 3 => {
            format!(", but `{nearest}`")
        }
        _ => String::new(),
    }
}
