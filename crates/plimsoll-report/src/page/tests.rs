use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::chart::{Draw, Ink};

fn sections() -> Vec<Section> {
    let name = "</script><b>chat</b>";
    let chart = Draw::new("hours", "requests/s")
        .line(name, Ink::Demand, &[(1.0, 2.0), (2.0, 3.0)])
        .done("demand", name, format!("{name} rises from 2 to 3 requests/s."));
    let mut table = Table::new("Classes", &["class", ">rate, /s"]);
    table.row(vec![Cell::from(name), Cell { text: "3".to_owned(), tone: Tone::Bad }]);
    let mut section = Section::new("demand", name);
    section.text("as `typed`");
    section.table(table);
    section.push(Block::Chart(Box::new(chart)));
    vec![section]
}

#[test]
fn names_cannot_end_what_they_are_in() {
    let page = page("<b>mine</b>", &sections());
    assert!(!page.contains("<b>"), "{page}");
    // The script, and no more.
    assert_eq!(page.matches("</script>").count(), 1);
    assert_eq!(page.matches("<h1").count(), 1);
    let (_, chart) = page.split_once("id=\"chart-demand\"").expect("there is a chart");
    assert!(chart.contains(
        "aria-label=\"&lt;/script&gt;&lt;b&gt;chat&lt;/b&gt; rises from 2 to 3 requests/s.\""
    ));
}

#[test]
fn only_what_is_there_may_run_and_nothing_is_loaded() {
    let page = page("mine", &sections());
    assert!(page.len() < 40_000, "{}", page.len());
    let (_, policy) = page.split_once("Content-Security-Policy\" content=\"").expect("a policy");
    let (policy, _) = policy.split_once('"').expect("its end");
    let hashes = |tag: &str| -> Vec<String> {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let texts =
            page.split(&open).skip(1).map(|rest| rest.split(&close).next().expect("its end"));
        let hash = |text| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
        texts.map(|text| format!("'sha256-{}'", hash(text))).collect()
    };
    let (scripts, styles) = (hashes("script"), hashes("style"));
    assert_eq!((scripts.len(), styles.len()), (1, 2));
    // Where this fails, the constants beside [`page`] are of an older style or script.
    let expect = format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        scripts.join(" "),
        styles.join(" ")
    );
    assert_eq!(policy.replace("&#39;", "'"), expect);
    assert!(!page.contains(" style=\"") && !page.contains(" onload"));
    // The one address is the name of a kind of element.
    let page = page.replace("'http://www.w3.org/2000/svg'", "");
    for load in ["http://", "https://", "src=\"", "@import", "url("] {
        assert!(!page.contains(load), "{load}");
    }
}

#[test]
fn a_page_without_charts_runs_nothing() {
    let mut section = Section::new("one", "One");
    section.text("that is all");
    let page = page("mine", &[section]);
    assert!(!page.contains("<script") && page.contains("script-src 'none'"));
}
