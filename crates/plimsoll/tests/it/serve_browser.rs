//! The page of `plimsoll serve` in a real browser, used as a person uses it.

use crate::browser::Browser;
use crate::common;
use crate::common::Scratch;
use crate::server::Server;
use plimsoll_testkit::skipped;
use serde_json::json;

const WINDOW: &str = "--window-size=1280,1400";
/// Nothing but what is on disk can be reached.
const OFFLINE: &str = "--host-resolver-rules=MAP * ~NOTFOUND";
const ANSWERED: &str = "document.querySelector('#basis').textContent === 'simulated'";

fn choose(browser: &Browser, name: &str) {
    browser.click(&format!("#scenario-select option[value='{name}']"));
    browser.until(&format!("document.title.startsWith('{name}')"));
    browser.until("document.querySelector('#problems-summary').textContent === 'No problems.'");
    browser.until(ANSWERED);
}

/// A log of a request each second.
fn log() -> String {
    let row = |i: u64| format!("{}000000000,{},{}\n", 1_700_000_000 + i, 100 + i, 20 + i % 7);
    "ts_arrival,prompt_tokens,output_tokens\n".to_owned() + &(0..120).map(row).collect::<String>()
}

#[test]
fn a_person_opens_moves_mistypes_uploads_cancels_and_downloads() {
    let Some(browser) = Browser::start("page", &[WINDOW]) else { return };
    let scratch = Scratch::new("serve-browser");
    let server = Server::start(&scratch.0);
    browser.open(&server.address);
    browser.until(ANSWERED);
    browser.screenshot_of_all("page-first", 1280);

    // An example.
    choose(&browser, "support-bot.toml");
    let rows = "document.querySelectorAll('#launch-table tbody tr').length";
    browser.until(&format!("{rows} >= 3"));
    browser.until("document.querySelector('#curve .plot path')");
    let demand = "#launch-table tbody tr:first-child td[data-label=Demand]";
    assert_eq!(browser.text(demand), "0.739");
    assert!(!browser.text("#cost").contains("unknown"), "{}", browser.text("#cost"));

    // A slider, by the keyboard: twenty steps of 0.05.
    browser.keys("#slider-demand", &"\u{e014}".repeat(20));
    assert_eq!(browser.text("#slider-demand-words"), "×2.00 demand");
    browser.until(&format!("document.querySelector('{demand}').textContent === '1.48'"));
    browser.until(ANSWERED);
    assert_eq!(browser.text(demand), "1.48");
    browser.screenshot_of_all("page-slider", 1280);
    browser.click("#reset-levers");
    browser.until(&format!("document.querySelector('{demand}').textContent === '0.739'"));

    // A mistake, and where it is.
    let text = server.scenario("support-bot.toml");
    let line = text.lines().count() + 1;
    browser.keys("#editor", "replcas = 2\n");
    let place = "#problems li:first-child button .place";
    browser.until(&format!("document.querySelector('{place}')"));
    assert_eq!(browser.text(place), format!("line {line}"));
    assert!(browser.text("#problems").contains("replcas"));
    let marked = "[...document.querySelectorAll('#gutter > div')].flatMap((each, i) => each.classList.contains('bad') ? [i + 1] : [])";
    assert_eq!(browser.run(&format!("return {marked}")), json!([line]));
    assert!(browser.text("#verdict").contains("1 problem"));
    browser.screenshot_of_all("page-mistake", 1280);
    browser.click("#problems li:first-child button");
    let caret = "const e = document.activeElement; return e.value.slice(0, e.selectionStart).split('\\n').length";
    assert_eq!(browser.run(caret), json!(line));
    browser.click("#revert");
    browser.until("document.querySelector('#problems').children.length === 0");
    browser.until(ANSWERED);

    // Two scenarios.
    browser.click("#compare-toggle");
    browser.until("document.querySelectorAll('#compare-table tbody tr').length > 3");
    browser.until(
        "document.querySelector('#compare-status').textContent.startsWith('Both simulated')",
    );
    let heads = browser.text("#compare-table thead");
    assert!(heads.contains("support-bot.toml") && heads.contains("launch-week.toml"), "{heads}");
    browser.screenshot_of_all("page-compare", 1280);
    browser.click("#compare-toggle");

    // A log.
    let log = scratch.file("log.csv", log());
    browser.keys("#upload", &log);
    browser.until("document.querySelector('#profile table')");
    assert!(browser.text("#profile table").contains("120"));
    browser.screenshot_of_all("page-profile", 1280);

    // A run that is cancelled: nothing works on it any more.
    choose(&browser, "launch-week.toml");
    browser.click("#run-review");
    browser.until("!document.querySelector('#cancel').hidden");
    browser.until("document.querySelector('#job-state').textContent.startsWith('Working')");
    browser.screenshot("page-working");
    browser.click("#cancel");
    browser.until("document.querySelector('#job-state').textContent === 'Cancelled.'");
    browser.until("!document.querySelector('#run-review').disabled");
    let idle = "fetch('/metrics').then((it) => it.text()).then((it) => it.includes('\\nplimsoll_jobs_running 0\\n'))";
    browser.until(idle);

    // A review, read here and taken home.
    choose(&browser, "support-bot.toml");
    browser.click("#run-review");
    browser.until("!document.querySelector('#download').hidden");
    let says = browser.text("#job-summary .verdict");
    browser.screenshot_of_all("page-review", 1280);
    browser.click("#download");
    let page = browser.downloaded("support-bot-review.html");

    for (name, width) in [("page-narrow", 400), ("page-dark", 1280)] {
        let scheme = if name == "page-dark" { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.devtools("Emulation.setEmulatedMedia", json!({ "features": features }));
        browser.size(width, 1400);
        browser.until("document.documentElement.scrollWidth <= innerWidth");
        // The chart is as wide as its place.
        let wide = "document.querySelector('#curve .plot').clientWidth - document.querySelector('#curve').clientWidth";
        browser.until(&format!("Math.abs({wide}) < 2"));
        browser.screenshot_of_all(name, width);
    }
    assert_eq!(browser.console(), [""; 0]);

    let Some(offline) = Browser::start("offline", &[WINDOW, OFFLINE]) else { return };
    // The quickest of three, because other tests run beside this one.
    let mut quickest = f64::INFINITY;
    for _ in 0..3 {
        offline.open(&format!("file://{}", page.display()));
        offline.until("performance.getEntriesByType('navigation')[0].loadEventEnd > 0");
        let took = offline.run("return performance.getEntriesByType('navigation')[0].loadEventEnd");
        quickest = quickest.min(common::number(&took));
    }
    println!("the review opens in {quickest:.0} ms");
    assert!(quickest < 1000.0, "{quickest} ms");
    assert!(offline.text("body").contains(&says), "{says}");
    assert!(offline.all_drawn() > 5);
    assert_eq!(offline.run("return performance.getEntriesByType('resource').length"), 0);
    offline.screenshot_of_all("review-offline", 1280);
    assert_eq!(offline.console(), [""; 0]);
}

#[test]
fn nobody_is_shut_out() {
    if std::env::var_os("PLIMSOLL_AXE").is_none() {
        skipped("no axe-core: set PLIMSOLL_AXE to its axe.min.js");
        return;
    }
    let Some(browser) = Browser::start("axe", &[WINDOW]) else { return };
    let scratch = Scratch::new("serve-axe");
    let server = Server::start(&scratch.0);
    browser.open(&server.address);
    browser.until(ANSWERED);
    choose(&browser, "support-bot.toml");
    // With everything that may be on the page: a second scenario, a profile, a review and a mistake.
    browser.click("#compare-toggle");
    browser.until("document.querySelectorAll('#compare-table tbody tr').length > 3");
    let log = scratch.file("log.csv", log());
    browser.keys("#upload", &log);
    browser.until("document.querySelector('#profile table')");
    browser.until("!document.querySelector('#run-review').disabled");
    browser.click("#run-review");
    browser.until("!document.querySelector('#download').hidden");
    browser.click("#download");
    let page = browser.downloaded("support-bot-review.html");
    let found = |scheme: &str| {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.devtools("Emulation.setEmulatedMedia", json!({ "features": features }));
        browser.shuts_out().expect("axe-core")
    };
    assert_eq!(found("light"), [""; 0]);
    assert_eq!(found("dark"), [""; 0]);
    browser.keys("#editor", "replcas = 2\n");
    browser.until("document.querySelector('#problems li')");
    assert_eq!(found("light"), [""; 0]);

    browser.open(&format!("file://{}", page.display()));
    browser.all_drawn();
    assert_eq!(found("light"), [""; 0]);
    assert_eq!(found("dark"), [""; 0]);
}
