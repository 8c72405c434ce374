use super::*;
use crate::chart::{Draw, Ink};

fn sections() -> Vec<Section> {
    let name = "</script><b>chat</b>";
    let chart = Draw::new("hours", "requests/s")
        .line(name, Ink::Demand, &[(1.0.into(), 2.0), (2.0.into(), 3.0)])
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
    let own = page.replace(plotly_script(), "").replace(SCRIPT, "");
    assert!(!own.contains("<b>"), "{own}");
    // The data of a chart, the two scripts, and no more.
    assert_eq!(own.matches("</script>").count(), 3);
    assert_eq!(own.matches("<h1").count(), 1);
    let data = own
        .split_once("data-for=\"chart-demand\">")
        .and_then(|(_, rest)| rest.split_once("</script>"));
    let (data, _) = data.expect("there is a chart");
    let chart: serde_json::Value = serde_json::from_str(data).expect("the data is JSON");
    assert!(chart["alt"].as_str().is_some_and(|alt| alt.contains("rises from 2 to 3")));
}

#[test]
fn only_the_scripts_that_are_there_may_run_and_nothing_is_loaded() {
    let page = page("mine", &sections());
    assert!(
        plotly_script().len() > 1_000_000 && !plotly_script().contains("MathJax=Object.assign")
    );
    assert!(page.len() < 8_000_000, "{}", page.len());
    let (_, policy) = page.split_once("Content-Security-Policy\" content=\"").expect("a policy");
    let (policy, _) = policy.split_once('"').expect("its end");
    let scripts: Vec<&str> = page
        .match_indices("<script>")
        .filter_map(|(at, tag)| page[at + tag.len()..].split_once("</script>"))
        .map(|(script, _)| script)
        .collect();
    assert_eq!(scripts.len(), 2);
    for script in scripts {
        let digest = Sha256::digest(script.as_bytes());
        let digest = base64::engine::general_purpose::STANDARD.encode(digest);
        assert!(policy.contains(&format!("sha256-{digest}")), "{policy}");
    }
    let own = page.replace(plotly_script(), "");
    for load in ["http://", "https://", "src=\"", "@import", "url("] {
        assert!(!own.contains(load), "{load}");
    }
}

#[test]
fn a_page_without_charts_runs_nothing() {
    let mut section = Section::new("one", "One");
    section.text("that is all");
    let page = page("mine", &[section]);
    assert!(!page.contains("<script") && page.contains("script-src 'none'"));
}
