//! Named starting points for a class.

use std::sync::OnceLock;

use toml::de::DeTable;

use crate::read::{Fallback, Reader, TableNode};

/// A profile of the catalogue.
pub struct Profile {
    /// Such as `chat`.
    pub name: &'static str,
    /// What it describes.
    pub title: &'static str,
    /// Where its numbers come from.
    pub source: &'static str,
    /// Their date.
    pub as_of: &'static str,
    /// The keys it sets, as a scenario would write them.
    pub keys: Vec<(String, String)>,
    class: &'static DeTable<'static>,
}

/// All of them.
pub fn profiles() -> &'static [Profile] {
    static PROFILES: OnceLock<Vec<Profile>> = OnceLock::new();
    PROFILES.get_or_init(|| {
        let list = document()["profile"].get_ref().as_array();
        let list = list.unwrap_or_else(|| panic!("profiles.toml: no profiles"));
        list.iter()
            .map(|entry| {
                let table =
                    entry.get_ref().as_table().unwrap_or_else(|| panic!("a profile is a table"));
                let text = |key: &str| {
                    table
                        .get(key)
                        .and_then(|v| v.get_ref().as_str())
                        .unwrap_or_else(|| panic!("a profile needs `{key}`"))
                };
                let class = table.get("class").and_then(|v| v.get_ref().as_table());
                let class =
                    class.unwrap_or_else(|| panic!("profile {} needs `class`", text("name")));
                let keys = class
                    .iter()
                    .map(|(k, v)| (k.get_ref().to_string(), crate::values::show_value(v.get_ref())))
                    .collect();
                Profile {
                    name: text("name"),
                    title: text("title"),
                    source: text("source"),
                    as_of: text("as_of"),
                    keys,
                    class,
                }
            })
            .collect()
    })
}

/// Read once and kept for the life of the process.
fn document() -> &'static DeTable<'static> {
    static DOCUMENT: OnceLock<DeTable<'static>> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let document = DeTable::parse(include_str!("profiles.toml"));
        document.unwrap_or_else(|e| panic!("profiles.toml: {e}")).into_inner()
    })
}

/// Their names.
pub(crate) fn names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| profiles().iter().map(|p| p.name).collect())
}

/// The profile that a class names, to fall back on.
pub(crate) fn profile_of(class: &TableNode<'_>, _: &mut Reader<'_>) -> Option<Fallback> {
    let name = class.text("profile")?;
    let profile = profiles().iter().find(|p| p.name == name)?;
    Some(Fallback { table: profile.class, name: profile.name, as_of: profile.as_of })
}
