//! The review of every example as a page: what it says, in which order, and that its charts are drawn.

use crate::browser::Browser;
use crate::common;
use crate::common::reviews::review_of;
use plimsoll_testkit::runs_long;

/// What a page shows besides numbers: headings, what is folded, tables with their columns, charts with their titles.
fn skeleton(html: &str) -> String {
    let mut shown = String::new();
    let mut rest = html;
    while let Some((_, from)) = rest.split_once('<') {
        rest = from;
        let named = |tag: &str| rest.strip_prefix(tag).is_some_and(|r| r.starts_with([' ', '>']));
        if named("script") || named("style") {
            // What looks like markup in there is none.
            let end = if named("script") { "</script>" } else { "</style>" };
            rest = rest.split_once(end).map_or("", |(_, after)| after);
            continue;
        }
        let shapes = [
            ("h1", "# ", "</h1>"),
            ("h2", "## ", "</h2>"),
            ("h3", "### ", "</h3>"),
            ("summary", "fold: ", "</summary>"),
            ("figcaption", "chart: ", "</figcaption>"),
            ("caption", "table: ", "</caption>"),
            ("thead", "  columns: ", "</thead>"),
        ];
        for (tag, sign, end) in shapes {
            if !named(tag) {
                continue;
            }
            let inner = rest.split_once('>').map_or("", |(_, inner)| inner);
            let inner = inner.split_once(end).map_or(inner, |(inner, _)| inner);
            let line = format!("{sign}{}", numberless(&words(inner)));
            shown.push_str(line.trim_end());
            shown.push('\n');
        }
    }
    shown
}

/// The text of markup, cells apart.
fn words(markup: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in markup.replace("</th><th", "</th> | <th").chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"")
}

/// With `N` for every number, because those are told apart elsewhere. Those within names, such as `p95` and `llama-3.1-8b`, stay.
fn numberless(text: &str) -> String {
    let mut made = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let number = c.is_ascii_digit() || (matches!(c, '.' | ',') && before.is_ascii_digit());
        let parts = before != '-' || made.ends_with("N-");
        let begins = c.is_ascii_digit() && !before.is_alphanumeric() && parts;
        if begins {
            made.push('N');
        } else if !(number && made.ends_with('N')) {
            made.push(c);
        }
        before = c;
    }
    made
}

fn check(name: &str) {
    // These are reviewed in any case, for their first screens.
    let quick = ["launch-week", "support-bot"].contains(&name);
    if !quick && !runs_long(&format!("the review of {name}")) {
        return;
    }
    let reviewed = review_of(name);
    let (document, html, page) = (&reviewed.document, &reviewed.html, &reviewed.page);
    // 1 says that the answer is no, which is an answer.
    assert!(reviewed.code <= 1, "{}: {document}", reviewed.code);
    if !document["plan"].is_null() {
        crate::review::check(document);
    }
    assert!(html.len() < 600_000, "{} bytes", html.len());
    insta::assert_snapshot!(format!("review_page_{}", name.replace('-', "_")), skeleton(html));
    let says = document["verdict"]["says"].as_str().expect("a verdict");
    let lead = html.split_once("<p class=\"lead\">").and_then(|(_, rest)| rest.split_once("</p>"));
    // What stands between backticks is shown as it is typed, without them.
    let lead = words(lead.expect("a lead").0);
    assert!(lead.ends_with(&says.replace('`', "")), "{lead}");

    let arguments = ["--window-size=1280,1400", "--host-resolver-rules=MAP * ~NOTFOUND"];
    let Some(browser) = Browser::start(&format!("page-{name}"), &arguments) else { return };
    browser.open(&format!("file://{page}"));
    assert_eq!(browser.all_drawn(), html.matches("<figcaption>").count() as u64);
    // A chart without anything to show is drawn empty.
    let empty = "return [...document.querySelectorAll('.plot')].filter((own) => !own.querySelector('path:not([d=\"\"]), .block rect, .point circle')).map((own) => own.parentNode.id)";
    assert_eq!(browser.run(empty), serde_json::json!([]));
    readable(&browser);
    assert_eq!(browser.console(), [""; 0]);
    browser.screenshot_of_all(&format!("review-{name}"), 1280);
}

/// Pointing at a chart shows its values, its legend switches series by the keyboard, and no text runs out of the page.
fn readable(browser: &Browser) {
    let pointed = "const all = [...document.querySelectorAll('.plot')].filter((plot) => plot.querySelector('path[data-at]'));
        return all.map((plot) => {
            plot.scrollIntoView({ behavior: 'instant' });
            const ground = plot.querySelector('.ground');
            const box = ground.getBoundingClientRect();
            ground.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
            const tip = plot.parentNode.querySelector('.tip')?.innerText ?? '';
            return /: .*[0-9]/.test(tip) ? '' : plot.parentNode.id + ': ' + tip;
        }).filter(Boolean)";
    assert_eq!(browser.run(pointed), serde_json::json!([]));
    let shown = "return [...document.querySelectorAll('.chart:has(.legend) .s0')].filter((each) => getComputedStyle(each).display !== 'none').length";
    let before = browser.run(shown);
    browser.keys(".legend input", " ");
    assert_ne!(browser.run(shown), before, "the legend switches a series");
    browser.keys(".legend input", " ");
    assert_eq!(browser.run(shown), before);
    for width in [1280, 400] {
        browser.size(width, 1400);
        let out = "return [...document.querySelectorAll('.plot text')].filter((each) => { const box = each.getBoundingClientRect(); return box.width && (box.right > innerWidth + 1 || box.left < -1); }).map((each) => each.textContent)";
        assert_eq!(browser.run(out), serde_json::json!([]), "at {width} pixels");
    }
}

/// One test an example, so that they run side by side.
macro_rules! pages {
    ($($test:ident => $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                check($name);
            }
        )*

        #[test]
        fn no_example_is_left_out() {
            let mut named = vec![$(concat!($name, ".toml").to_owned()),*];
            named.sort_unstable();
            let mut lie: Vec<String> = std::fs::read_dir(common::repository().join("examples"))
                .expect("examples")
                .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
                .filter(|name| name.ends_with(".toml"))
                .collect();
            lie.sort_unstable();
            assert_eq!(named, lie);
        }
    };
}

pages! {
    bursty_ceiling => "bursty-ceiling",
    disaggregated => "disaggregated",
    launch_week => "launch-week",
    long_context => "long-context",
    measured_lines => "measured-lines",
    metastable => "metastable",
    provider_limits => "provider-limits",
    qwen3_32b_question => "qwen3-32b-question",
    support_bot => "support-bot",
    two_regions => "two-regions",
}
