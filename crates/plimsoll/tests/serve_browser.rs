//! The page of `plimsoll serve` in a real browser, used as a person uses it.

mod browser;
mod common;
mod server;

use browser::Browser;
use common::Scratch;
use serde_json::json;
use server::{Server, skipped};

const WINDOW: &str = "--window-size=1280,1400";
/// Nothing but what is on disk can be reached.
const OFFLINE: &str = "--host-resolver-rules=MAP * ~NOTFOUND";
const ANSWERED: &str = "document.querySelector('#basis').textContent === 'simulated'";

async fn choose(browser: &Browser, name: &str) {
    browser.click(&format!("#scenario-select option[value='{name}']")).await;
    browser.until(&format!("document.title.startsWith('{name}')")).await;
    browser
        .until("document.querySelector('#problems-summary').textContent === 'No problems.'")
        .await;
    browser.until(ANSWERED).await;
}

/// A log of a request each second.
fn log() -> String {
    let row = |i: u64| format!("{}000000000,{},{}\n", 1_700_000_000 + i, 100 + i, 20 + i % 7);
    "ts_arrival,prompt_tokens,output_tokens\n".to_owned() + &(0..120).map(row).collect::<String>()
}

#[tokio::test]
async fn a_person_opens_moves_mistypes_uploads_cancels_and_downloads() {
    let Some(browser) = Browser::start("page", &[WINDOW]).await else { return };
    let scratch = Scratch::new("serve-browser");
    let server = Server::start(&scratch.0);
    browser.open(&server.address).await;
    browser.until(ANSWERED).await;
    browser.screenshot_of_all("page-first", 1280).await;

    // An example.
    choose(&browser, "support-bot.toml").await;
    let rows = "document.querySelectorAll('#launch-table tbody tr').length";
    browser.until(&format!("{rows} >= 3")).await;
    browser.until("document.querySelector('#curve .plot path')").await;
    let demand = "#launch-table tbody tr:first-child td[data-label=Demand]";
    assert_eq!(browser.text(demand).await, "0.75");
    assert!(!browser.text("#cost").await.contains("unknown"), "{}", browser.text("#cost").await);

    // A slider, by the keyboard: twenty steps of 0.05.
    browser.keys("#slider-demand", &"\u{e014}".repeat(20)).await;
    assert_eq!(browser.text("#slider-demand-words").await, "×2.00 demand");
    browser.until(&format!("document.querySelector('{demand}').textContent === '1.5'")).await;
    browser.until(ANSWERED).await;
    assert_eq!(browser.text(demand).await, "1.5");
    browser.screenshot_of_all("page-slider", 1280).await;
    browser.click("#reset-levers").await;
    browser.until(&format!("document.querySelector('{demand}').textContent === '0.75'")).await;

    // A mistake, and where it is.
    let text = server.scenario("support-bot.toml").await;
    let line = text.lines().count() + 1;
    browser.keys("#editor", "replcas = 2\n").await;
    let place = "#problems li:first-child button .place";
    browser.until(&format!("document.querySelector('{place}')")).await;
    assert_eq!(browser.text(place).await, format!("line {line}"));
    assert!(browser.text("#problems").await.contains("replcas"));
    let marked = "[...document.querySelectorAll('#gutter > div')].flatMap((each, i) => each.classList.contains('bad') ? [i + 1] : [])";
    assert_eq!(browser.run(&format!("return {marked}")).await, json!([line]));
    assert!(browser.text("#verdict").await.contains("1 problem"));
    browser.screenshot_of_all("page-mistake", 1280).await;
    browser.click("#problems li:first-child button").await;
    let caret = "const e = document.activeElement; return e.value.slice(0, e.selectionStart).split('\\n').length";
    assert_eq!(browser.run(caret).await, json!(line));
    browser.click("#revert").await;
    browser.until("document.querySelector('#problems').children.length === 0").await;
    browser.until(ANSWERED).await;

    // Two scenarios.
    browser.click("#compare-toggle").await;
    browser.until("document.querySelectorAll('#compare-table tbody tr').length > 3").await;
    browser
        .until("document.querySelector('#compare-status').textContent.startsWith('Both simulated')")
        .await;
    let heads = browser.text("#compare-table thead").await;
    assert!(heads.contains("support-bot.toml") && heads.contains("launch-week.toml"), "{heads}");
    browser.screenshot_of_all("page-compare", 1280).await;
    browser.click("#compare-toggle").await;

    // A log.
    let log = scratch.file("log.csv", log());
    browser.keys("#upload", &log).await;
    browser.until("document.querySelector('#profile table')").await;
    assert!(browser.text("#profile table").await.contains("120"));
    browser.screenshot_of_all("page-profile", 1280).await;

    // A run that is cancelled: nothing works on it any more.
    choose(&browser, "launch-week.toml").await;
    browser.click("#run-review").await;
    browser.until("!document.querySelector('#cancel').hidden").await;
    browser.until("document.querySelector('#job-state').textContent.startsWith('Working')").await;
    browser.screenshot("page-working").await;
    browser.click("#cancel").await;
    browser.until("document.querySelector('#job-state').textContent === 'Cancelled.'").await;
    browser.until("!document.querySelector('#run-review').disabled").await;
    let idle = "fetch('/metrics').then((it) => it.text()).then((it) => it.includes('\\nplimsoll_jobs_running 0\\n'))";
    browser.until(idle).await;

    // A review, read here and taken home.
    choose(&browser, "support-bot.toml").await;
    browser.click("#run-review").await;
    browser.until("!document.querySelector('#download').hidden").await;
    let says = browser.text("#job-summary .verdict").await;
    browser.screenshot_of_all("page-review", 1280).await;
    browser.click("#download").await;
    let page = browser.downloaded("support-bot-review.html").await;

    for (name, width) in [("page-narrow", 400), ("page-dark", 1280)] {
        let scheme = if name == "page-dark" { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
        browser.size(width, 1400).await;
        browser.until("document.documentElement.scrollWidth <= innerWidth").await;
        // The chart is as wide as its place.
        let wide = "document.querySelector('#curve .plot').clientWidth - document.querySelector('#curve').clientWidth";
        browser.until(&format!("Math.abs({wide}) < 2")).await;
        browser.screenshot_of_all(name, width).await;
    }
    assert_eq!(browser.console().await, [""; 0]);

    let Some(offline) = Browser::start("offline", &[WINDOW, OFFLINE]).await else { return };
    // The quickest of three, because other tests run beside this one.
    let mut quickest = f64::INFINITY;
    for _ in 0..3 {
        offline.open(&format!("file://{}", page.display())).await;
        offline.until("performance.getEntriesByType('navigation')[0].loadEventEnd > 0").await;
        let took =
            offline.run("return performance.getEntriesByType('navigation')[0].loadEventEnd").await;
        quickest = quickest.min(common::number(&took));
    }
    println!("the review opens in {quickest:.0} ms");
    assert!(quickest < 1000.0, "{quickest} ms");
    assert!(offline.text("body").await.contains(&says), "{says}");
    assert!(offline.all_drawn().await > 5);
    assert_eq!(offline.run("return performance.getEntriesByType('resource').length").await, 0);
    offline.screenshot_of_all("review-offline", 1280).await;
    assert_eq!(offline.console().await, [""; 0]);
}

#[tokio::test]
async fn nobody_is_shut_out() {
    if std::env::var_os("PLIMSOLL_AXE").is_none() {
        skipped("no axe-core: set PLIMSOLL_AXE to its axe.min.js");
        return;
    }
    let Some(browser) = Browser::start("axe", &[WINDOW]).await else { return };
    let scratch = Scratch::new("serve-axe");
    let server = Server::start(&scratch.0);
    browser.open(&server.address).await;
    browser.until(ANSWERED).await;
    choose(&browser, "support-bot.toml").await;
    // With everything that may be on the page: a second scenario, a profile, a review and a mistake.
    browser.click("#compare-toggle").await;
    browser.until("document.querySelectorAll('#compare-table tbody tr').length > 3").await;
    let log = scratch.file("log.csv", log());
    browser.keys("#upload", &log).await;
    browser.until("document.querySelector('#profile table')").await;
    browser.until("!document.querySelector('#run-review').disabled").await;
    browser.click("#run-review").await;
    browser.until("!document.querySelector('#download').hidden").await;
    browser.click("#download").await;
    let page = browser.downloaded("support-bot-review.html").await;
    let found = async |scheme: &str| {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
        browser.shuts_out().await.expect("axe-core")
    };
    assert_eq!(found("light").await, [""; 0]);
    assert_eq!(found("dark").await, [""; 0]);
    browser.keys("#editor", "replcas = 2\n").await;
    browser.until("document.querySelector('#problems li')").await;
    assert_eq!(found("light").await, [""; 0]);

    browser.open(&format!("file://{}", page.display())).await;
    browser.all_drawn().await;
    assert_eq!(found("light").await, [""; 0]);
    assert_eq!(found("dark").await, [""; 0]);
}
