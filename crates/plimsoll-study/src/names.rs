//! Names of classes, as a scenario takes them.

/// What a scenario takes for a name: letters, digits, spaces and - _ / @ :, at most 64 bytes, and once.
pub fn class_name(name: &str, taken: &[String]) -> String {
    let mut plain = String::new();
    for c in name.chars() {
        let c = if c.is_alphanumeric() || "-_/@: ".contains(c) { c } else { '-' };
        if plain.len() + c.len_utf8() <= 64 {
            plain.push(c);
        }
    }
    let plain = match plain.trim() {
        "" => "class",
        some => some,
    };
    if taken.iter().all(|own| own != plain) {
        return plain.to_owned();
    }
    // Room for a number behind it.
    let mut head = String::new();
    for c in plain.chars() {
        if head.len() + c.len_utf8() <= 56 {
            head.push(c);
        }
    }
    (2..).map(|n| format!("{head}-{n}")).find(|own| !taken.contains(own)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_once() {
        assert_eq!(class_name("a.b\n", &[]), "a-b-");
        assert_eq!(class_name("chat", &["chat".to_owned()]), "chat-2");
        assert_eq!(class_name("  ", &[]), "class");
        let long = class_name(&"x".repeat(80), &[]);
        assert_eq!(long.len(), 64);
        assert!(class_name(&"x".repeat(80), &[long]).len() <= 64);
    }
}
