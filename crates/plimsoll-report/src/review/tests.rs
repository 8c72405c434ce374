use super::sample::{NAME, review};
use super::*;
use crate::chart::Chart;
use crate::page::{Block, Section};
use crate::text::Heading;

fn charts(sections: &[Section]) -> Vec<Chart> {
    let blocks = sections.iter().flat_map(|own| &own.blocks);
    blocks
        .filter_map(|block| match block {
            Block::Chart(chart) => Some((**chart).clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn the_page_is_one_file_that_says_it_in_order() {
    let page = review_html(&review(), "0.1.0");
    assert!(page.len() < 200_000, "{}", page.len());
    let own = page.replace(crate::CHART_SCRIPT, "");
    assert_eq!(own.matches("<h1").count(), 1);
    assert!(!own.contains("<b>") && !own.contains("<img"));
    for load in ["http://", "https://", "src=\"", "@import"] {
        assert!(!own.contains(load), "{load}");
    }
    let order = [
        "verdict",
        "launch",
        "plan",
        "stress",
        "cost",
        "curve",
        "memory",
        "ahead",
        "windows",
        "tornado",
        "cost-tree",
        "register",
        "signals",
        "questions",
        "assumptions",
        "method",
    ];
    let places: Vec<usize> =
        order.iter().map(|id| own.find(&format!("<section id=\"{id}\"")).expect(id)).collect();
    assert!(places.is_sorted(), "{places:?}");
    // Every id is there once, and every link of the contents leads to one.
    let ids: Vec<&str> =
        own.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let mut once = ids.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), ids.len());
    for link in own.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&link), "{link}");
    }
}

#[test]
fn every_chart_says_its_numbers_and_has_units() {
    let charts = charts(&sections(&review(), "0.1.0"));
    let ids: Vec<&str> = charts.iter().map(|chart| chart.id.as_str()).collect();
    let expect = [
        "ahead-requests",
        "reserve-0",
        "stress",
        "curve",
        "latency",
        "memory",
        "windows",
        "tornado",
        "cost-tree",
    ];
    assert_eq!(ids, expect);
    for chart in &charts {
        let (alt, html) = (&chart.alt, chart.html().into_string());
        assert!(alt.chars().any(|letter| letter.is_ascii_digit()) || chart.id == "stress", "{alt}");
        let drawn = [" d=\"M", "class=\"block", "class=\"point"];
        assert!(drawn.iter().any(|mark| html.contains(mark)), "{}", chart.id);
        assert!(html.contains("<text class=\"of"), "{} has no axis with a name", chart.id);
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    }
    // The demand ahead stands at its dates, against both lines.
    let fan = &charts[0];
    let (at, _) = fan.series("p50").pop().expect("the median");
    assert_eq!(at.split(' ').nth(63), Some("3780"));
    // 63 hours before 2026-11-18 15:00 UTC.
    assert!(fan.html().into_string().contains("data-low=\"1794787200\""));
    let levels = fan.levels();
    assert!(levels.contains(&48.0) && levels.contains(&82.0), "{levels:?}");
}

#[test]
fn the_first_screen_fits_and_says_as_much_without_colour() {
    let mut review = review();
    let plain = review_text(&review, Heading::Plain, 80);
    insta::assert_snapshot!(plain);
    assert!(plain.lines().count() <= 45, "{}", plain.lines().count());
    let coloured = review_text(&review, Heading::Bold, 80);
    assert!(coloured.contains("\x1b[1;31mSHORTFALL\x1b[0m"));
    let mut without = coloured;
    for code in ["\x1b[1;31m", "\x1b[1m", "\x1b[0m"] {
        without = without.replace(code, "");
    }
    assert_eq!(without, plain);
    // Whatever it is called, and whatever is not known.
    review.name = "n".repeat(200);
    review.verdict.says = format!("{} {}", "w".repeat(170), "é ".repeat(90));
    for text in [review_text(&review, Heading::Plain, 80), plain] {
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}");
    }
    (review.plan, review.stress, review.cost) = (None, None, None);
    assert!(review_text(&review, Heading::Plain, 80).contains("demand of the busiest hours"));
    assert!(review_html(&review, "0.1.0").contains("id=\"launch\""));
}

/// A wide terminal also shows what is carried, what is left with a loss, and the cause; no cell is cut.
#[test]
fn a_wide_screen() {
    let wide = review_text(&review(), Heading::Plain, 132);
    let widest = wide.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(120) && widest > Some(80), "{widest:?}");
    // Only a name of the user's own is shortened.
    assert!(
        wide.lines().all(|line| !line.contains('…') || line.contains("very long name")),
        "{wide}"
    );
    insta::assert_snapshot!(wide);
}

#[test]
fn markdown_says_the_same_and_escapes_names() {
    let text = review_markdown(&review(), "0.1.0");
    assert!(
        text.starts_with("# Capacity review: chat &lt;/script&gt;&lt;b&gt;launch"),
        "{}",
        &text[..80]
    );
    assert!(!text.contains(NAME) && !text.contains("<img"));
    // Every row of a table has as many cells as its head.
    let mut cells = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            cells = None;
            continue;
        }
        let own = line.replace("\\|", "").matches('|').count();
        assert_eq!(*cells.get_or_insert(own), own, "{line}");
    }
    for title in ["## Verdict", "## The launch table", "## Service curve", "## Method"] {
        assert!(text.contains(title), "{title}");
    }
}

#[test]
fn hard_times_have_a_page_of_their_own() {
    let review = review();
    let result = review.stress.as_ref().expect("there is one");
    let document = crate::StressDocument {
        name: NAME,
        file: "chat.toml",
        as_of: "2026-11-15",
        seed: 7,
        attainment: 0.99,
        quantile: 0.95,
        result,
        resources: false,
    };
    let page = crate::stress_html(&document, "0.1.0");
    let own = page.replace(crate::CHART_SCRIPT, "");
    assert!(
        own.contains("chart-tornado")
            && own.contains("chart-stress")
            && own.contains("retry storm")
    );
    assert!(!own.contains("<b>"));
}
